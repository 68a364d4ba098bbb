"""grainstore.torch.ImageFolder against torchvision's."""

import pickle
import random
import subprocess
import sys

import numpy as np
import PIL.Image
import pytest
import torchvision
from torch.utils.data import DataLoader

import grainstore
from grainstore.torch import ImageFolder

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Pictures in names, formats and modes as people have them, and a file that is no picture."""
    folder = tmp_path_factory.mktemp("pictures") / "train"
    noise = random.Random(3)
    for class_name, files in {
        "zebra": ["10.png", "9.png", "a b.JPG", "B.jpeg", "_.png"],
        "Ant": ["x.bmp", "x.y.png", "é.png"],
        "cat-2": ["1.webp", "-1.png"],
        "cat": ["grey.png", "alpha.png", "palette.gif.png", "notes.txt"],
    }.items():
        (folder / class_name).mkdir(parents=True)
        for name in files:
            pixels = np.frombuffer(noise.randbytes(9 * 7 * 4), np.uint8).reshape(9, 7, 4)
            picture = PIL.Image.fromarray(pixels if name == "alpha.png" else pixels[:, :, 0] if "grey" in name else pixels[:, :, :3])
            if name.endswith(".txt"):
                (folder / class_name / name).write_text("no picture")
            else:
                picture.save(folder / class_name / name)
    return folder


@pytest.fixture(scope="module")
def path(folder):
    path = folder.parent / "train.grain"
    grainstore.convert(folder, path)
    return path


def size_of(picture):
    return picture.size


def as_tensor(picture):
    return torchvision.transforms.functional.to_tensor(picture)


def negative(target):
    return -target


def refuse_grey(picture):
    if picture.getpixel((0, 0)) == (0, 0, 0):
        raise ValueError("black")
    return picture


def test_samples_refuse_to_be_changed_and_targets_do_not(path):
    ours = ImageFolder(path)
    for change in (
        lambda: ours.samples.__setitem__(0, ("x", 1)),
        lambda: ours.samples.append(("x", 1)),
        lambda: ours.imgs.sort(),
        lambda: setattr(ours, "samples", []),
    ):
        with pytest.raises(TypeError, match=r"cannot be changed: set targets\[i\].*ds.select"):
            change()
    with pytest.raises(TypeError):
        ours.samples += [("x", 1)]
    again = pickle.loads(pickle.dumps(ours))
    assert again.samples == ours.samples and len(again) == len(ours.samples[:]) == len(ours.targets)
    again.targets[0] = 7
    assert again[0][1] == 7 and ours[0][1] != 7


def test_everything_is_as_torchvisions(folder, path):
    theirs, ours = torchvision.datasets.ImageFolder(folder), ImageFolder(path)
    assert ours.classes == theirs.classes == ["Ant", "cat", "cat-2", "zebra"]
    assert ours.class_to_idx == theirs.class_to_idx
    assert ours.targets == theirs.targets
    relative = [(str(file).removeprefix(f"{folder}/"), target) for file, target in theirs.samples]
    assert ours.samples == ours.imgs == relative
    assert len(ours) == len(theirs) == 13
    for index in range(-13, 13):
        (our_picture, our_target), (their_picture, their_target) = ours[index], theirs[index]
        assert our_picture.mode == their_picture.mode == "RGB" and our_target == their_target
        assert np.array_equal(np.asarray(our_picture), np.asarray(their_picture))
    with pytest.raises(IndexError):
        ours[13]


def test_several_are_read_together(path):
    folder = ImageFolder(path)
    for (picture, target), index in zip(folder.__getitems__([5, 0, -1, 5]), (5, 0, 12, 5), strict=True):
        assert target == folder.targets[index]
        assert np.array_equal(np.asarray(picture), np.asarray(folder[index][0]))


def test_transforms_and_a_loader_of_ones_own_are_used(path):
    folder = ImageFolder(path, transform=size_of, target_transform=negative)
    assert folder[12] == ((7, 9), -3)
    assert ImageFolder(path, loader=len)[0][0] == len(grainstore.open(path)["Ant/x.bmp"]["data"])


@pytest.mark.parametrize("start_method", ["fork", "spawn"])
def test_it_goes_to_workers(folder, path, start_method):
    both = [torchvision.datasets.ImageFolder(folder, as_tensor), ImageFolder(path, as_tensor)]
    options = {"batch_size": 5, "num_workers": 1, "multiprocessing_context": start_method}
    theirs, ours = DataLoader(both[0], batch_size=5), DataLoader(both[1], **options)
    for (their_pictures, their_targets), (our_pictures, our_targets) in zip(theirs, ours, strict=True):
        assert our_targets.tolist() == their_targets.tolist() and bool((our_pictures == their_pictures).all())


def test_a_view_and_a_pickled_one_are_taken(path):
    with grainstore.open(path) as dataset:
        cats = ImageFolder(dataset.filter("label == 1"))
        again = pickle.loads(pickle.dumps(cats))
        assert cats.samples == again.samples == [(f"cat/{name}.png", 1) for name in ("alpha", "grey", "palette.gif")]
        assert [target for _, target in map(again.__getitem__, range(3))] == [1, 1, 1]


def test_what_a_loader_or_a_transform_raises_names_the_sample(path):
    def refuse(_):
        raise ValueError("not today")

    for what, options in {
        "the loader": {"loader": refuse},
        "the transform": {"transform": refuse},
        "the target_transform": {"target_transform": refuse},
    }.items():
        with pytest.raises(grainstore.TransformFailed, match=f'.key "cat/grey.png".: {what} raised ValueError: not') as caught:
            ImageFolder(path, **options)[4]
        assert caught.value.key == b"cat/grey.png"


def test_names_without_an_extension_are_taken_for_pictures(tmp_path, folder):
    path = tmp_path / "bare.grain"
    picture = (folder / "zebra/9.png").read_bytes()
    names = {"class_names": ["a", "b"]}
    with grainstore.Writer(path, schema={"data": "bytes", "label": "int64"}, metadata=names) as writer:
        writer.write(key="b/1", data=picture, label=1)
        writer.write(key="a/2", data=picture, label=0)
    assert ImageFolder(path).samples == [("a/2", 0), ("b/1", 1)]
    assert ImageFolder(path)[0][0].size == (7, 9)


def test_a_dataset_of_something_else_is_refused_by_what_it_lacks(tmp_path):
    def written(number, schema, metadata, keyed=True, **values):
        path = tmp_path / f"{number}.grain"
        with grainstore.Writer(path, schema=schema, metadata=metadata, keyed=keyed) as writer:
            writer.write(**values)
        return path

    names = {"class_names": ["a", "b"]}
    whole = {"image": "bytes", "label": "int64"}
    for number, (lack, path) in enumerate(
        {
            "no keys": ({"schema": whole, "metadata": names, "keyed": False, "image": b"", "label": 0}),
            "no label .it has image": ({"schema": {"image": "bytes"}, "metadata": names, "key": "a", "image": b""}),
            "no list class_names": ({"schema": whole, "metadata": {}, "key": "a", "image": b"", "label": 0}),
            "label of sample 0 is 2, of 2 classes": (
                {"schema": whole, "metadata": names, "key": "a", "image": b"", "label": 2}
            ),
            "label of sample 0 is none": ({"schema": whole, "metadata": names, "key": "a", "image": b"", "label": None}),
            "2 fields of bytes": (
                {"schema": {"x": "bytes", "y": "bytes", "label": "int64"}, "metadata": names}
                | {"key": "a", "x": b"", "y": b"", "label": 0}
            ),
        }.items()
    ):
        with pytest.raises(grainstore.InvalidOption, match=f"{number}.grain: .*{lack}.*expected keys, an attribute label"):
            ImageFolder(written(number, **path))


def test_without_pillow_the_error_names_what_to_install(path):
    code = f"import sys; sys.modules['PIL'] = None; from grainstore.torch import ImageFolder; ImageFolder({str(path)!r})"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 1 and "ImportError: ImageFolder needs Pillow" in ended.stderr
    assert "pip install pillow" in ended.stderr
