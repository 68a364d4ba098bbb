"""Writing datasets: what is there when, what is refused, and that nothing half-made has the dataset's name."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore
from grainstore import Writer

SCHEMA = {"image": "bytes", "label": "int64"}


def read(path: Path) -> list[dict[str, Any]]:
    with grainstore.open(path) as ds:
        return list(ds)


def write(path: Path, *samples: dict[str, Any], **options: Any) -> list[dict[str, Any]]:
    with Writer(path, SCHEMA, **options) as writer:
        for sample in samples:
            writer.write(**sample)
    return read(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "d.grain"


def test_what_was_written_is_read(path: Path) -> None:
    samples = [{"image": bytes([number]) * number, "label": number} for number in range(100)]
    with Writer(path, SCHEMA) as writer:
        for number, sample in enumerate(samples):
            writer.write(key=str(number), **sample)
            assert writer.count == number + 1
        assert not path.exists()
    assert read(path) == samples


def test_samples_are_written_as_columns_too(path: Path) -> None:
    with Writer(path, made.SCHEMA) as writer:
        for start in range(0, 100, 30):
            numbers = range(start, min(100, start + 30))
            columns = {name: [made.sample(number)[name] for number in numbers] for name in made.SCHEMA}
            writer.write_batch(key=[made.key(number) for number in numbers], **columns)
        assert writer.count == 100
    for number, sample in enumerate(read(path)):
        made.assert_same(sample, made.sample(number))


def test_columns_are_arrays_lists_or_what_a_batch_has(path: Path, plain: grainstore.Dataset) -> None:
    batch = plain.get_batch(range(100))
    with Writer(path, SCHEMA, keyed=False) as writer:
        writer.write_batch(image=batch["image"], label=batch["label"])
        writer.write_batch(image=np.zeros((3, 7), np.uint8), label=(1, 2, 3))
        writer.write_batch(image=[], label=[])
        writer.write_batch()
    assert read(path) == plain.__getitems__(range(100)) + [{"image": bytes(7), "label": label} for label in (1, 2, 3)]


def test_columns_of_unequal_lengths_are_refused(path: Path) -> None:
    with Writer(path, SCHEMA) as writer:
        with pytest.raises(grainstore.InvalidOption, match="label: 1 values"):
            writer.write_batch(key=["a", "b"], image=[b"", b""], label=[1])
        writer.write(key="c", image=b"c")
    assert read(path) == [{"image": b"c", "label": None}]


def test_a_value_that_is_omitted_or_none_is_missing(path: Path) -> None:
    schema = {"image": "bytes", "mask": "bytes", "label": "int64", "weight": "float32"}
    with Writer(path, schema, keyed=False) as writer:
        writer.write(image=b"a", label=1)
        writer.write(image=b"b", mask=b"", label=None, weight=0.5)
        writer.write()
    assert read(path) == [
        {"image": b"a", "mask": None, "label": 1, "weight": None},
        {"image": b"b", "mask": b"", "label": None, "weight": 0.5},
        {"image": None, "mask": None, "label": None, "weight": None},
    ]


def test_keys_are_text_or_bytes_and_there_once(path: Path) -> None:
    keys = ["a", b"b", b"\xff", "\udcfe", "é", "a\0", "x" * 65535]
    with Writer(path, SCHEMA) as writer:
        for key in keys:
            writer.write(key=key, image=b"")
    with grainstore.open(path) as ds:
        assert ds.keys().tolist() == ["a", "b", "\udcff", "\udcfe", "é", "a\0", "x" * 65535]


@pytest.mark.parametrize("key", ["", b"", "x" * 65536])
def test_a_key_that_cannot_be_is_refused(path: Path, key: Any) -> None:
    with pytest.raises(grainstore.InvalidSample, match="key") as raised:
        write(path, {"key": "a", "image": b""}, {"key": key, "image": b""})
    assert raised.value.ordinal == 1
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize("key", [None, 3, 1.5, bytearray(b"a"), ["a"]])
def test_a_key_that_is_no_key_is_a_type_error(path: Path, key: Any) -> None:
    with pytest.raises(TypeError, match="key"):
        write(path, {"key": key, "image": b""})
    assert os.listdir(path.parent) == []


def test_keys_are_given_where_there_are_keys_and_only_there(path: Path) -> None:
    with pytest.raises(TypeError, match="key is missing"):
        write(path, {"image": b""})
    with pytest.raises(TypeError, match="keyed=False"):
        write(path, {"key": "a", "image": b""}, keyed=False)


def test_a_repeated_key_is_refused(path: Path) -> None:
    with pytest.raises(grainstore.InvalidSample, match="samples 1 and 2") as raised:
        write(path, *({"key": key, "image": b""} for key in ("a", "b", "b", "c")))
    assert (raised.value.ordinal, raised.value.key) == (2, b"b")
    assert os.listdir(path.parent) == []


def test_unknown_names_are_refused_and_known_ones_listed(path: Path) -> None:
    with pytest.raises(TypeError, match=r'"nope" is not in the schema \(there are: image, label\)'):
        write(path, {"key": "a", "image": b"", "nope": 1})
    with pytest.raises(TypeError, match="nope"):
        write(path, {"key": "a", "nope": 1})


def test_a_sample_that_was_refused_is_not_there(path: Path) -> None:
    with Writer(path, SCHEMA) as writer:
        writer.write(key="a", image=b"a", label=1)
        with pytest.raises(TypeError):
            writer.write(key="b", image=b"b", label="one")
        with pytest.raises(TypeError):
            writer.write_batch(key=["c", "d"], image=[b"c", 4])
        assert writer.count == 1
        writer.write(key="b", image=b"bb", label=2)
    assert read(path) == [{"image": b"a", "label": 1}, {"image": b"bb", "label": 2}]


@pytest.mark.parametrize("kind", [ValueError, KeyboardInterrupt, SystemExit])
def test_nothing_appears_where_the_block_raises(path: Path, kind: type[BaseException]) -> None:
    with pytest.raises(kind), Writer(path, SCHEMA) as writer:
        writer.write(key="a", image=bytes(1 << 20))
        raise kind
    assert os.listdir(path.parent) == []


def test_nothing_appears_of_a_writer_that_is_let_go_of_or_discarded(path: Path) -> None:
    writer = Writer(path, SCHEMA)
    writer.write(key="a", image=b"a")
    del writer
    assert os.listdir(path.parent) == []
    writer = Writer(path, SCHEMA)
    writer.write(key="a", image=b"a")
    writer.discard()
    writer.discard()
    writer.close()
    assert os.listdir(path.parent) == []


def test_a_dataset_has_a_sample(path: Path) -> None:
    with pytest.raises(grainstore.WriteFailed, match="at least one"):
        write(path)
    assert os.listdir(path.parent) == []


def test_a_writer_is_closed_once_and_then_writes_no_more(path: Path) -> None:
    writer = Writer(path, SCHEMA)
    writer.write(key="a", image=b"a", label=1)
    writer.close()
    writer.close()
    writer.discard()
    assert read(path) == [{"image": b"a", "label": 1}]
    for use in (
        lambda: writer.write(key="b", image=b"b"),
        lambda: writer.write_batch(key=["b"], image=[b"b"]),
    ):
        with pytest.raises(grainstore.Closed, match="writer"):
            use()
    assert writer.count == 1
    assert str(path) in repr(writer)


def test_two_writers_of_one_name_are_refused(path: Path) -> None:
    with Writer(path, SCHEMA) as writer:
        with pytest.raises(grainstore.WriteFailed, match="writing it"):
            Writer(path, SCHEMA)
        writer.write(key="a", image=b"a")
    assert len(read(path)) == 1


def test_a_dataset_is_replaced_where_that_is_asked_for(path: Path) -> None:
    write(path, {"key": "a", "image": b"old"})
    with pytest.raises(grainstore.AlreadyExists, match="overwrite=True") as raised:
        write(path, {"key": "a", "image": b"new"})
    assert isinstance(raised.value, FileExistsError)
    assert raised.value.path == str(path)
    before = grainstore.open(path)
    with pytest.raises(ZeroDivisionError), Writer(path, SCHEMA, overwrite=True) as writer:
        writer.write(key="a", image=b"new")
        raise ZeroDivisionError
    assert read(path) == [{"image": b"old", "label": None}]
    assert write(path, {"key": "a", "image": b"new"}, overwrite=True) == [{"image": b"new", "label": None}]
    assert before[0]["image"] == b"old"
    assert os.listdir(path.parent) == ["d.grain"]


def test_what_is_no_dataset_is_never_replaced(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("mine")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "mine").write_text("mine")
    for name in ("file", "folder"):
        for overwrite in (False, True):
            with pytest.raises(grainstore.AlreadyExists):
                write(tmp_path / name, {"key": "a", "image": b""}, overwrite=overwrite)
    assert (tmp_path / "file").read_text() == (tmp_path / "folder" / "mine").read_text() == "mine"


def test_samples_are_appended_as_a_new_generation(path: Path) -> None:
    write(path, {"key": "a", "image": b"a", "label": 1}, metadata={"class_names": ["cat"]})
    with Writer(path, append=True) as writer:
        writer.write(key="b", image=b"b", label=2)
        assert len(read(path)) == 1
    assert read(path) == [{"image": b"a", "label": 1}, {"image": b"b", "label": 2}]
    with grainstore.open(path) as ds:
        assert ds.metadata == {"class_names": ["cat"]}
        assert ds["b"]["label"] == 2
    with Writer(path, append=True, metadata={"class_names": ["cat", "dog"]}) as writer:
        writer.write(key="c", image=b"c")
    with grainstore.open(path) as ds:
        assert (len(ds), ds.metadata) == (3, {"class_names": ["cat", "dog"]})
    with grainstore.open(path, generation=1) as ds:
        assert len(ds) == 2


def test_an_append_that_fails_leaves_the_dataset_as_it_was(path: Path) -> None:
    write(path, {"key": "a", "image": b"a", "label": 1})
    files = sorted(os.listdir(path))
    with pytest.raises(KeyboardInterrupt), Writer(path, append=True) as writer:
        writer.write(key="b", image=b"b")
        raise KeyboardInterrupt
    with pytest.raises(grainstore.InvalidSample, match="duplicate"), Writer(path, append=True) as writer:
        writer.write(key="a", image=b"b")
    with pytest.raises(grainstore.InvalidOption, match="schema"):
        Writer(path, SCHEMA, append=True)
    assert read(path) == [{"image": b"a", "label": 1}]
    assert sorted(os.listdir(path)) == files
    assert os.listdir(path.parent) == ["d.grain"]
    with pytest.raises(grainstore.WriteFailed, match="does not exist"):
        Writer(path.parent / "absent", append=True)


def test_large_samples_and_many_segments_are_read_back(path: Path) -> None:
    draw = np.random.default_rng(3)
    images = [draw.bytes(size) for size in (1, 5 << 20, 0, 3 << 20, 1 << 20, 17)]
    with Writer(path, {"image": "bytes"}, keyed=False, segment_bytes=4 << 20, chunk_bytes=4096, align="4096") as writer:
        for image in images:
            writer.write(image=image)
    with grainstore.open(path) as ds:
        assert ds.stats()["segments"] > 1
        assert [sample["image"] for sample in ds] == images
        seen = [image for batch in grainstore.Loader(ds, 2) for image in batch["image"].tolist()]
        assert sorted(seen) == sorted(images)


@pytest.mark.parametrize(
    ("schema", "kind"),
    [
        ({}, grainstore.InvalidOption),
        ({"label": "int64"}, grainstore.InvalidOption),
        ({"image": "bytes", "key": "int64"}, grainstore.InvalidOption),
        ({"image": "text"}, grainstore.InvalidOption),
        ({"image": "bytes", "label": "int128"}, grainstore.InvalidOption),
        ({"image": "float32[-1]"}, grainstore.InvalidOption),
        ({"image": "float32[99999999999,99999999999]"}, grainstore.InvalidOption),
        ({"": "bytes"}, grainstore.InvalidOption),
        ({"image": 3}, TypeError),
        ({3: "bytes"}, TypeError),
        ([("image", "bytes")], TypeError),
        (None, TypeError),
    ],
    ids=str,
)
def test_a_schema_that_cannot_be_is_refused(path: Path, schema: Any, kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Writer(path, schema)
    assert os.listdir(path.parent) == []


@pytest.mark.parametrize(
    ("options", "kind"),
    [
        ({"metadata": [1]}, grainstore.InvalidOption),
        ({"metadata": {"a": float("nan")}}, grainstore.InvalidOption),
        ({"metadata": {"a": {1}}}, TypeError),
        ({"compress": "zip"}, grainstore.InvalidOption),
        ({"chunk_bytes": 3}, grainstore.InvalidOption),
        ({"align": "3"}, grainstore.InvalidOption),
        ({"jobs": 0}, grainstore.InvalidOption),
    ],
    ids=str,
)
def test_an_option_that_cannot_be_is_refused(path: Path, options: dict[str, Any], kind: type[Exception]) -> None:
    with pytest.raises(kind):
        Writer(path, SCHEMA, **options)
    assert os.listdir(path.parent) == []


def test_a_name_that_cannot_be_made_is_refused(path: Path) -> None:
    with pytest.raises(grainstore.WriteFailed, match="No such file or directory") as raised:
        Writer(path / "deeper" / "d.grain", SCHEMA)
    assert str(path) in str(raised.value.path)


def test_a_value_of_the_wrong_type_names_its_sample(path: Path) -> None:
    schema = {"image": "bytes", "box": "float32[4]", "label": "int64"}
    with Writer(path, schema) as writer:
        writer.write(key="a", image=b"")
        for value, error, what in (
            ({"label": "x"}, TypeError, "label: expected int64, found str"),
            ({"label": 2**70}, OverflowError, "label: .* does not fit int64"),
            ({"box": np.zeros(4)}, TypeError, "box: expected an array of float32, found one of float64"),
            ({"box": [1.0]}, grainstore.InvalidSample, r"box: expected the shape \[4\], found \[1\]"),
            ({"image": {"b": b""}}, TypeError, "image: expected bytes, or a buffer of bytes, found dict"),
            ({"nope": 1}, TypeError, '"nope" is not in the schema'),
        ):
            with pytest.raises(error, match=rf'^sample 1 \(key "b"\): {what}') as raised:
                writer.write(**{"key": "b", "image": b"", **value})
            if isinstance(raised.value, grainstore.Error):
                assert (raised.value.ordinal, raised.value.key) == (1, b"b")
        with pytest.raises(TypeError, match=r'^sample 2 \(key "c"\): image: expected bytes, .* found int'):
            writer.write_batch(key=["b", "c"], image=[b"", 3])
        with pytest.raises(TypeError, match=r"^sample 1: a key is"):
            writer.write(key=3, image=b"")


def test_an_exception_of_a_value_stays_as_it_is(path: Path) -> None:
    class Broken:
        def __array__(self, *_given: Any, **_named: Any) -> Any:
            raise KeyError("mine")

    with Writer(path, {"image": "bytes", "box": "float32[4]"}, keyed=False) as writer:
        with pytest.raises(KeyError, match="^'mine'$"):
            writer.write(image=b"", box=Broken())
        writer.write(image=b"")


def test_a_nested_schema_is_refused_with_what_to_do(path: Path) -> None:
    with pytest.raises(grainstore.InvalidOption, match='"box" is a dictionary, and a schema has one level.*"box.member"'):
        Writer(path, {"image": "bytes", "box": {"x": "float32"}})  # type: ignore[dict-item]
    for kind in (int, np.dtype("int64"), ["int64"]):
        with pytest.raises(TypeError, match='the type of "label" is text, such as "int64", not'):
            Writer(path, {"image": "bytes", "label": kind})  # type: ignore[dict-item]
    with pytest.raises(TypeError, match="names are text, not int"):
        Writer(path, {3: "bytes"})  # type: ignore[dict-item]


def test_a_key_that_comes_twice_names_what_a_writer_can_do(tmp_path: Path) -> None:
    with pytest.raises(grainstore.InvalidSample, match='duplicate key "a": .*keyed=False') as raised:
        with grainstore.Writer(tmp_path / "d.grain", {"data": "bytes"}) as writer:
            writer.write(key="a", data=b"1")
            writer.write(key="a", data=b"2")
    assert "on_duplicate" not in str(raised.value)
    assert (raised.value.ordinal, raised.value.key) == (1, b"a")
