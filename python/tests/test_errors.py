"""Exceptions: their family, and that they cross processes whole."""

from __future__ import annotations

import copy
import inspect
import pickle
from pathlib import Path

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
    (grainstore.Forked, RuntimeError),
    (grainstore.DamagedSample, grainstore.Damaged),
    (grainstore.AlreadyExists, grainstore.WriteFailed),
    (grainstore.InvalidSample, grainstore.WriteFailed),
])
def test_an_error_is_what_python_calls_it_too(kind: type[BaseException], builtin: type[BaseException]) -> None:
    assert issubclass(kind, builtin)


@pytest.mark.parametrize("kind", ALL)
def test_an_error_crosses_processes_with_all_it_says(kind: type[grainstore.Error]) -> None:
    facts = {"path": "/a", "segment": "/a/0.seg", "ordinal": 3, "key": b"\xff", "offset": 4096}
    error = kind("what happened: \"here\"", **facts)  # type: ignore[arg-type]
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error)):
        assert type(again) is kind
        assert str(again) == "what happened: \"here\""
        assert {name: getattr(again, name) for name in facts} == facts
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
