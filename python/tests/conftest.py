"""Datasets for all tests. They are made once; who changes one makes its own."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import made
import pytest

import grainstore


@pytest.fixture(scope="session")
def made_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of `made.COUNT` samples with every kind of field and attribute."""
    path = tmp_path_factory.mktemp("made") / "made.grain"
    made.write(path)
    return path


@pytest.fixture(scope="session")
def plain_path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A dataset of 1,000 samples without keys: `image` and `label`, nothing missing."""
    path = tmp_path_factory.mktemp("plain") / "plain.grain"
    made.write_plain(path, 1000)
    return path


@pytest.fixture
def ds(made_path: Path) -> Iterator[grainstore.Dataset]:
    with grainstore.open(made_path) as dataset:
        yield dataset


@pytest.fixture
def plain(plain_path: Path) -> Iterator[grainstore.Dataset]:
    with grainstore.open(plain_path) as dataset:
        yield dataset


@pytest.fixture(scope="session")
def many_files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with enough files that progress is reported while it is packed."""
    folder = tmp_path_factory.mktemp("many")
    (folder / "0").write_bytes(bytes(100))
    for number in range(1, 40_000):
        os.link(folder / "0", folder / str(number))
    return folder
