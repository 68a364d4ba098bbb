"""A tf.data.Dataset has what grainstore holds, epoch after epoch, and goes on from any state."""

import json
import os
import pathlib
import re
import subprocess
import sys

import numpy as np
import pytest

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")
import tensorflow as tf  # noqa: E402

import grainstore  # noqa: E402
import grainstore.tensorflow  # noqa: E402

ROOT = pathlib.Path(__file__).parents[2]
COUNT = 300
SCHEMA = {"image": "bytes", "caption": "str", "x": "float32[2,3]", "label": "int64", "small": "uint8", "even": "bool"}


def image_of(number):
    """Ends in zeros, which must not get lost, and may be empty."""
    return (bytes([number % 256]) + b"\0\0") * (number % 4)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    path = tmp_path_factory.mktemp("tensorflow") / "numbered.grain"
    with grainstore.Writer(path, SCHEMA) as writer:
        for number in range(COUNT):
            writer.write(
                key=f"k{number}",
                image=image_of(number),
                caption=f"é{number}",
                x=np.full((2, 3), number, np.float32),
                label=number,
                small=number % 256,
                even=number % 2 == 0,
            )
    return grainstore.open(path, keys=True)


@pytest.fixture(scope="module")
def holed(tmp_path_factory):
    """Sample i of these lacks its i-th value."""
    path = tmp_path_factory.mktemp("tensorflow") / "holed.grain"
    whole = {"image": b"x", "caption": "x", "x": np.ones(2, np.float32), "label": 1}
    schema = {"image": "bytes", "caption": "str", "x": "float32[2]", "label": "int64"}
    with grainstore.Writer(path, schema, keyed=False) as writer:
        for missing in schema:
            writer.write(**{name: None if name == missing else value for name, value in whole.items()})
    return grainstore.open(path)


def labels(elements):
    return [int(label) for element in elements for label in np.atleast_1d(element["label"])]


def check(sample):
    number = int(sample["label"])
    assert sample["key"] == b"k%d" % number
    assert sample["image"] == image_of(number)
    assert sample["caption"].decode() == f"é{number}"
    assert np.array_equal(sample["x"], np.full((2, 3), number))
    assert (sample["small"], sample["even"]) == (number % 256, number % 2 == 0)


def spec_of(shape):
    return {
        "key": tf.TensorSpec(shape, tf.string),
        "image": tf.TensorSpec(shape, tf.string),
        "caption": tf.TensorSpec(shape, tf.string),
        "x": tf.TensorSpec((*shape, 2, 3), tf.float32),
        "label": tf.TensorSpec(shape, tf.int64),
        "small": tf.TensorSpec(shape, tf.uint8),
        "even": tf.TensorSpec(shape, tf.bool),
    }


@pytest.mark.parametrize(
    ("options", "shape", "cardinality"),
    [
        ({"batch_size": 32}, (None,), 10),
        ({"batch_size": 32, "drop_last": True}, (32,), 9),
        ({"batch_size": 32, "tail": "pad"}, (32,), 10),
        ({"batch_size": 32, "rank": 1, "world_size": 3}, (None,), 4),
        ({"batch_size": None}, (), COUNT),
        ({"batch_size": None, "rank": 1, "world_size": 3}, (), 100),
    ],
)
def test_the_spec_is_that_of_the_schema_and_the_cardinality_that_of_an_epoch(dataset, options, shape, cardinality):
    made = grainstore.tensorflow.dataset(grainstore.Loader(dataset, **options))
    assert made.element_spec == spec_of(shape)
    assert made.cardinality().numpy() == cardinality
    assert len(list(made)) == cardinality


def test_batches_hold_every_sample_once_with_all_it_has(dataset):
    made = grainstore.tensorflow.dataset(grainstore.Loader(dataset, 64, seed=3))
    batches = list(made.as_numpy_iterator())
    assert sorted(labels(batches)) == list(range(COUNT))
    for batch in batches:
        for place in range(len(batch["label"])):
            check({name: column[place] for name, column in batch.items()})


def test_samples_one_by_one_are_the_same(dataset):
    samples = list(grainstore.tensorflow.dataset(grainstore.Loader(dataset, None, seed=3)).as_numpy_iterator())
    assert sorted(labels(samples)) == list(range(COUNT))
    for sample in samples:
        check(sample)


def test_each_iteration_is_the_next_epoch_and_a_broken_one_is_not_counted(dataset):
    loader, same = grainstore.Loader(dataset, 32, seed=3), grainstore.Loader(dataset, 32, seed=3)
    made = grainstore.tensorflow.dataset(loader)
    assert labels(made.take(2)) == labels(batch for _, batch in zip(range(2), same))
    first = labels(made)
    assert [first, labels(made.prefetch(2))] == [labels(same), labels(same)]
    assert loader.epoch == 2


def test_who_never_asks_for_the_end_gets_another_order_all_the_same(dataset):
    loader = grainstore.Loader(dataset, 32, seed=3)
    # As it is, TensorFlow may look for the end by itself, or may not be in time.
    options = tf.data.Options()
    options.experimental_optimization.inject_prefetch = False
    made = grainstore.tensorflow.dataset(loader).with_options(options)
    orders = []
    for _ in range(2):
        iterator = iter(made)
        orders.append(labels(next(iterator) for _ in range(10)))
    assert sorted(orders[0]) == sorted(orders[1]) == list(range(COUNT))
    assert orders[0] != orders[1]


@pytest.mark.parametrize("batch_size", [30, None])
def test_keras_trains_on_one_epoch_after_the_other(dataset, batch_size):
    loader = grainstore.Loader(dataset, batch_size, seed=3)
    made = grainstore.tensorflow.dataset(loader, columns=["x", "label"])
    made = made.map(lambda sample: (sample["x"] / COUNT, sample["label"]))
    seen = []
    made = made if batch_size else made.batch(30)
    model = tf.keras.Sequential([tf.keras.layers.Flatten(), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    record = tf.keras.callbacks.LambdaCallback(on_epoch_end=lambda *_: seen.append(loader.epoch))
    history = model.fit(made.prefetch(2), epochs=3, shuffle=False, verbose=0, callbacks=[record]).history
    assert seen == [1, 2, 3]
    assert len(history["loss"]) == 3 and np.isfinite(history["loss"]).all()


def test_jpegs_are_decoded_by_tensorflow(tmp_path):
    with grainstore.Writer(tmp_path / "jpegs.grain", {"image": "bytes"}, keyed=False) as writer:
        for number in range(20):
            writer.write(image=tf.io.encode_jpeg(np.full((8, 8, 3), 10 * number, np.uint8), quality=100).numpy())
    loader = grainstore.Loader(grainstore.open(tmp_path / "jpegs.grain"), None, seed=1)
    made = grainstore.tensorflow.dataset(loader).map(lambda sample: tf.io.decode_jpeg(sample["image"]), num_parallel_calls=2)
    assert sorted(int(image[0, 0, 0]) for image in made) == [10 * number for number in range(20)]


@pytest.fixture(scope="module")
def pictures(tmp_path_factory):
    """Picture i is all of colour 10 * i; one that does not decode follows the eight."""
    path = tmp_path_factory.mktemp("tensorflow") / "pictures.grain"
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}, keyed=False) as writer:
        for number in range(8):
            writer.write(image=tf.io.encode_png(np.full((20, 24, 3), 10 * number, np.uint8)).numpy(), label=number)
        writer.write(image=b"no picture", label=8)
    return grainstore.open(path)


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("batch_size", "tail", "dimensions"), [(4, "drop", (4,)), (3, None, (None,)), (None, None, ())])
def test_pictures_that_the_loader_decodes_are_tensors_of_pixels(pictures, batch_size, tail, dimensions, layout):
    image = grainstore.Image((12, 16), layout=layout)
    loader = grainstore.Loader(pictures[:8], batch_size, seed=1, tail=tail, decode=image)
    made = grainstore.tensorflow.dataset(loader)
    shape = (12, 16, 3) if layout == "NHWC" else (3, 12, 16)
    assert made.element_spec["image"] == tf.TensorSpec((*dimensions, *shape), tf.uint8)
    elements = list(made.as_numpy_iterator())
    assert sorted(labels(elements)) == list(range(8))
    for element in elements:
        colours = 10 * np.atleast_1d(element["label"])[:, None, None, None]
        assert element["image"].dtype == np.uint8
        assert (element["image"].reshape(-1, *shape) == colours).all()


@pytest.mark.parametrize(("batch_size", "tail", "dimensions"), [(3, "drop", (None,)), (None, None, ())])
def test_pictures_that_are_skipped_promise_no_full_batch_and_no_count(pictures, batch_size, tail, dimensions):
    image = grainstore.Image(8, on_error="skip")
    made = grainstore.tensorflow.dataset(grainstore.Loader(pictures, batch_size, tail=tail, decode=image))
    assert made.element_spec["image"] == tf.TensorSpec((*dimensions, 8, 8, 3), tf.uint8)
    assert made.cardinality().numpy() == (3 if batch_size else tf.data.UNKNOWN_CARDINALITY)
    assert sorted(labels(made)) == list(range(8))


def test_only_the_columns_that_are_wanted_come(dataset):
    made = grainstore.tensorflow.dataset(grainstore.Loader(dataset, 32), columns=("label", "x"))
    assert list(made.element_spec) == ["label", "x"]
    with pytest.raises(grainstore.NoSuchName, match='"lable"'):
        grainstore.tensorflow.dataset(grainstore.Loader(dataset, 32), columns=["lable"])
    with pytest.raises(TypeError, match="not the one name 'label'"):
        grainstore.tensorflow.dataset(grainstore.Loader(dataset, 32), columns="label")


@pytest.mark.parametrize("batch_size", [32, 60, None])
def test_the_state_that_comes_with_an_element_is_exact_whatever_is_read_ahead(dataset, batch_size):
    loader = grainstore.Loader(dataset, batch_size, seed=3)
    made = list(grainstore.tensorflow.dataset(loader, states=True).prefetch(4))
    whole = labels(element for element, _ in made)
    assert sorted(whole) == list(range(COUNT))
    step = 1 if batch_size else 77
    for place, (_, state) in list(enumerate(made))[::step]:
        again = grainstore.Loader(dataset, batch_size, seed=3)
        again.load_state_dict(json.loads(state.numpy()))
        rest = grainstore.tensorflow.dataset(again)
        before = labels(element for element, _ in made[: place + 1])
        if place + 1 < len(made):
            assert rest.cardinality() == tf.data.UNKNOWN_CARDINALITY
            assert before + labels(rest) == whole
        # After what was left comes a whole epoch, the next.
        assert again.epoch == 1
        assert sorted(labels(rest)) == list(range(COUNT))
    assert json.loads(made[-1][1].numpy())["epoch"] == 1


def test_a_state_loaded_too_late_is_refused_and_does_not_end_in_a_wrong_count(dataset):
    loader = grainstore.Loader(dataset, 32, seed=3)
    made = grainstore.tensorflow.dataset(loader)
    other = grainstore.Loader(dataset, 32, seed=3)
    batches = iter(other)
    next(batches)
    loader.load_state_dict(other.state_dict())
    with pytest.raises(tf.errors.InvalidArgumentError, match="call grainstore.tensorflow.dataset after load_state_dict"):
        list(made)


def halved(sample):
    return {"x": sample["x"] / 2, "label": sample["label"]}


@pytest.mark.parametrize("batch_size", [32, None])
def test_what_a_transform_makes_has_the_given_signature(dataset, batch_size):
    shape = (None,) if batch_size else ()
    signature = {"x": tf.TensorSpec((*shape, 2, 3), tf.float32), "label": tf.TensorSpec(shape, tf.int64)}
    loader = grainstore.Loader(dataset, batch_size, seed=3, transform=halved)
    made = grainstore.tensorflow.dataset(loader, output_signature=signature, states=True)
    assert made.element_spec == (signature, tf.TensorSpec((), tf.string))
    elements = [element for element, _ in made.as_numpy_iterator()]
    assert sorted(labels(elements)) == list(range(COUNT))
    for element in elements:
        assert np.array_equal(2 * element["x"][..., 0, 0], element["label"])


@pytest.mark.parametrize("batch_size", [4, None])
@pytest.mark.parametrize(("name", "number"), [("image", 0), ("caption", 1), ("x", 2), ("label", 3)])
def test_a_missing_value_is_refused_and_never_a_zero(holed, batch_size, name, number):
    others = [other for other in holed.schema if other != name]
    fill = {"image": b"none", "caption": "none", "x": -1, "label": -1}
    loader = grainstore.Loader(holed, batch_size, order="sequential")
    made = grainstore.tensorflow.dataset(loader, fill={other: fill[other] for other in others})
    with pytest.raises(tf.errors.InvalidArgumentError, match=f"InvalidOption: column '{name}': 1 of 4 samples lack a value"):
        list(made)


@pytest.mark.parametrize("batch_size", [4, None])
def test_a_missing_value_is_replaced_by_the_given_one(holed, batch_size):
    fill = {"image": b"no\0", "caption": "né", "x": [2, 3], "label": -7}
    loader = grainstore.Loader(holed, batch_size, order="sequential")
    made = grainstore.tensorflow.dataset(loader, fill=fill)
    batch = next(iter((made if batch_size else made.batch(4)).as_numpy_iterator()))
    assert batch["image"].tolist() == [b"no\0", b"x", b"x", b"x"]
    assert batch["caption"].tolist() == [b"x", "né".encode(), b"x", b"x"]
    assert batch["x"].tolist() == [[1, 1], [1, 1], [2, 3], [1, 1]]
    assert batch["label"].tolist() == [1, 1, 1, -7]


@pytest.mark.parametrize(
    "fill", [{"label": 0.5}, {"label": "none"}, {"label": float("nan")}, {"small": -1}, {"image": 0}, {"lable": 0}]
)
def test_what_could_not_stand_there_is_refused_at_once(dataset, fill):
    with pytest.raises(grainstore.InvalidOption, match=f"fill: .*{next(iter(fill))}"):
        grainstore.tensorflow.dataset(grainstore.Loader(dataset, 4), fill=fill)


def test_options_that_do_not_go_together_are_refused(dataset):
    signature = {"label": tf.TensorSpec((None,), tf.int64)}
    transformed = grainstore.Loader(dataset, 4, transform=halved)
    with pytest.raises(TypeError, match="grainstore.Loader, not Dataset"):
        grainstore.tensorflow.dataset(dataset)
    with pytest.raises(grainstore.InvalidOption, match="output_signature is missing"):
        grainstore.tensorflow.dataset(transformed)
    with pytest.raises(grainstore.InvalidOption, match="the loader has neither"):
        grainstore.tensorflow.dataset(grainstore.Loader(dataset, 4), output_signature=signature)
    with pytest.raises(grainstore.InvalidOption, match="columns and fill"):
        grainstore.tensorflow.dataset(transformed, output_signature=signature, columns=["label"])


def test_an_epoch_of_ranks_with_unequally_many_batches_is_refused_at_once(dataset):
    ranks = [grainstore.Loader(dataset[:17], 8, rank=rank, world_size=2) for rank in range(2)]
    for loader in ranks:
        with pytest.raises(grainstore.InvalidOption, match="2 ranks would not have equally many batches"):
            grainstore.tensorflow.dataset(loader)
    loader = grainstore.Loader(dataset[:17], 8, rank=1, world_size=2, tail="short")
    assert len(list(grainstore.tensorflow.dataset(loader))) == 1


def test_an_error_of_the_transform_names_the_sample(dataset):
    loader = grainstore.Loader(dataset, 4, order="sequential", transform=lambda sample: 1 // (sample["label"] - 5))
    made = grainstore.tensorflow.dataset(loader, output_signature=tf.TensorSpec((None,), tf.int64))
    with pytest.raises(tf.errors.OpError, match="the transform raised ZeroDivisionError"):
        list(made)


LEAVES = """
import sys, time
import tensorflow as tf, grainstore, grainstore.tensorflow
def slow(samples):
    time.sleep(0.2)  # Work: some of it is under way whenever the interpreter ends.
    return len(samples)
loader = grainstore.Loader(grainstore.open(sys.argv[1]), 4, collate=slow)
iterator = iter(grainstore.tensorflow.dataset(loader, output_signature=tf.TensorSpec((), tf.int64)).prefetch(3))
print(next(iterator).numpy())
"""


def test_a_process_that_leaves_in_mid_epoch_ends(dataset):
    # TensorFlow reads ahead all the time: its thread is in the loader when the interpreter ends.
    command = [sys.executable, "-c", LEAVES, dataset.paths[0]]
    done = subprocess.run(command, capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout) == (0, "4\n"), done.stderr


def test_without_tensorflow_the_import_names_what_to_install():
    code = "import sys; sys.modules['tensorflow'] = None; import grainstore.tensorflow"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=100)
    expected = "ImportError: grainstore.tensorflow needs TensorFlow, which is not installed: pip install tensorflow"
    assert expected in done.stderr


def test_the_code_of_the_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python/tensorflow.md").read_text(), re.DOTALL)
    assert len(blocks) == 7
    page = {}
    for block in blocks:
        exec(compile(block, "tensorflow.md", "exec"), page)
        if "columns=" in block:
            assert (page["batches"].element_spec["x"].shape, page["batches"].cardinality()) == ((32, 8), 9)
        if "states=True" in block:
            assert len(labels(page["rest"])) == 300 - 3 * 32
    assert len(list(page["batches"])) == 4


def test_the_example_runs():
    script = ROOT / "examples/tensorflow_dataset.py"
    done = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "400 samples" in done.stdout
    assert "the next epoch is number 3" in done.stdout
    assert float(re.findall(r"\d\.\d\d", done.stdout)[-1]) > 0.9
