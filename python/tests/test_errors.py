"""Exceptions: their family, and that they cross processes whole."""

from __future__ import annotations

import copy
import errno
import inspect
import os
import pickle
import shutil
from pathlib import Path
from typing import Any

import made
import pytest

import grainstore

ALL = [
    kind
    for _, kind in inspect.getmembers(grainstore, inspect.isclass)
    if issubclass(kind, BaseException)
]


def test_every_exception_is_an_error_of_the_package() -> None:
    assert len(ALL) > 20
    for kind in ALL:
        assert issubclass(kind, grainstore.Error)
        assert kind.__doc__


@pytest.mark.parametrize(("kind", "builtin"), [
    (grainstore.DatasetNotFound, FileNotFoundError),
    (grainstore.AlreadyExists, FileExistsError),
    (grainstore.NoSuchOrdinal, IndexError),
    (grainstore.NoSuchKey, KeyError),
    (grainstore.NoSuchName, KeyError),
    (grainstore.InvalidOption, ValueError),
    (grainstore.InvalidExpression, ValueError),
    (grainstore.InvalidState, ValueError),
    (grainstore.InvalidSample, ValueError),
    (grainstore.Closed, ValueError),
    (grainstore.ReadFailed, OSError),
    (grainstore.UnreadableSample, OSError),
    (grainstore.OutOfMemory, MemoryError),
    (grainstore.Forked, RuntimeError),
    (grainstore.DamagedSample, grainstore.Damaged),
    (grainstore.AlreadyExists, grainstore.WriteFailed),
    (grainstore.InvalidSample, grainstore.WriteFailed),
])
def test_an_error_is_what_python_calls_it_too(kind: type[BaseException], builtin: type[BaseException]) -> None:
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_crosses_processes_with_all_its_facts(kind: type[grainstore.Error]) -> None:
    facts = {"path": "/a", "segment": "/a/0.seg", "ordinal": 3, "key": b"\xff", "offset": 4096, "errno": 5}
    error = kind("what happened: \"here\"", **facts)  # type: ignore[arg-type]
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == "what happened: \"here\""
        assert {name: getattr(again, name) for name in facts} == facts
    del facts["errno"]
    assert {getattr(kind("nothing known"), name) for name in facts} == {None}


def test_errors_that_were_raised_are_pickled(ds: grainstore.Dataset, tmp_path: Path) -> None:
    for use, kind in (
        (lambda: ds[1000], grainstore.NoSuchOrdinal),
        (lambda: ds["nope"], grainstore.NoSuchKey),
        (lambda: grainstore.open(tmp_path / "absent"), grainstore.DatasetNotFound),
    ):
        with pytest.raises(kind) as raised:
            use()
        again = pickle.loads(pickle.dumps(raised.value))
        assert type(again) is kind
        assert (str(again), vars(again)) == (str(raised.value), vars(raised.value))
    assert again.path == str(tmp_path / "absent")
    assert (again.errno, again.filename) == (errno.ENOENT, again.path)


def test_the_error_of_the_system_is_reported(tmp_path: Path, plain_path: Path) -> None:
    with pytest.raises(grainstore.WriteFailed) as raised:
        grainstore.Writer(tmp_path / "absent" / "d.grain", {"image": "bytes"})
    assert raised.value.errno == errno.ENOENT
    assert str(raised.value.path).startswith(str(tmp_path / "absent"))
    with pytest.raises(grainstore.AlreadyExists) as exists:
        grainstore.Writer(plain_path, {"image": "bytes"})
    assert (exists.value.errno, exists.value.filename) == (errno.EEXIST, str(plain_path))


@pytest.mark.parametrize("io", ["direct", "buffered"])
def test_a_sample_that_cannot_be_read_is_reported_with_its_location(tmp_path: Path, io: Any) -> None:
    path = tmp_path / "d.grain"
    made.write_plain(path, 1000)
    segment = path / "00000.seg"
    ds = grainstore.open(path, io=io)
    assert ds[0]["label"] == 0
    os.truncate(segment, 4096)
    for read in (lambda: ds[900], lambda: ds.get_batch([900])):
        with pytest.raises(grainstore.UnreadableSample) as raised:
            read()
        error = raised.value
        assert (error.ordinal, error.path, error.segment) == (900, str(segment), str(segment))
        assert error.offset is not None and error.offset >= 4096


def test_messages_name_arguments_of_python(tmp_path: Path) -> None:
    (tmp_path / "odd.bin").write_bytes(b"neither this nor that" * 100)
    with pytest.raises(grainstore.ConvertFailed) as raised:
        grainstore.convert(tmp_path / "odd.bin", tmp_path / "d.grain")
    assert "format=" in str(raised.value) and "--" not in str(raised.value)


def test_paths_are_reported_unchanged_whatever_their_names(tmp_path: Path) -> None:
    folder = tmp_path / "set --raw --map"
    folder.mkdir()
    (folder / "odd.bin").write_bytes(b"neither this nor that" * 100)
    with pytest.raises(grainstore.ConvertFailed) as raised:
        grainstore.convert(folder / "odd.bin", tmp_path / "d.grain")
    assert str(raised.value).startswith(f"{folder / 'odd.bin'}: ") and "format=" in str(raised.value)
    with pytest.raises(grainstore.ConvertFailed) as missing:
        grainstore.convert(tmp_path / "absent", tmp_path / "d.grain", format="folder")
    assert missing.value.path == str(tmp_path / "absent")


def test_an_interrupted_conversion_reports_how_to_resume_in_python(tmp_path: Path, plain_path: Path) -> None:
    shutil.copytree(plain_path, tmp_path / "d.grain.partial")
    (tmp_path / "d.grain.partial" / "manifest.json").unlink()
    with pytest.raises(grainstore.NotADataset, match="resume=True") as raised:
        grainstore.open(tmp_path / "d.grain")
    assert "--" not in str(raised.value)


def test_a_file_that_is_no_dataset_is_none_however_short(tmp_path: Path) -> None:
    for content in (b"", b"{}", bytes(10_000)):
        (tmp_path / "file").write_bytes(content)
        with pytest.raises(grainstore.NotADataset):
            grainstore.open(tmp_path / "file")


def test_a_name_where_a_key_belongs_is_explained(ds: grainstore.Dataset, plain: grainstore.Dataset) -> None:
    for dataset in (ds, plain):
        with pytest.raises(KeyError, match=r"column\(\)"):
            dataset["label"]
        with pytest.raises(KeyError, match="field"):
            dataset["image"]
        with pytest.raises(KeyError, match="field"):
            dataset.column("image")


@pytest.mark.parametrize(
    ("call", "what"),
    [
        (lambda ds, path: grainstore.convert(ds, path), "not an open dataset: give its path"),
        (lambda ds, path: grainstore.convert(ds.filter("label == 1"), path), "not an open dataset: give its path"),
        (lambda ds, path: grainstore.convert([ds], path), "a path or several, not Dataset"),
        (lambda ds, path: grainstore.convert("a", path, subset=[True, False]), "subset is an expression .* not list"),
        (lambda ds, path: grainstore.convert("a", path, only=5), "only is a name or several, not int"),
        (lambda ds, path: grainstore.convert("a", path, exclude=["x", 5]), "exclude is a name or several, not int"),
        (lambda ds, path: grainstore.Image("224"), "size is a number of pixels, or a pair .* not '224'"),
        (lambda ds, path: grainstore.Image((1, 2, 3)), r"size is a number of pixels, or a pair .* not \(1, 2, 3\)"),
    ],
)
def test_arguments_of_a_wrong_type_are_named(plain: grainstore.Dataset, tmp_path: Path, call: Any, what: str) -> None:
    with pytest.raises(TypeError, match=what):
        call(plain, tmp_path / "b.grain")
    assert not list(tmp_path.iterdir())
