"""A dataset that is changed while it is open: a reader never gets the bytes of another segment with the same name."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Literal

import pytest

import grainstore

LENGTH = (1 << 20) + 99


def folder(path: Path, filler: bytes) -> Path:
    path.mkdir()
    (path / f"{filler.decode()}.bin").write_bytes(filler * LENGTH)
    return path


@pytest.mark.parametrize("io", ["buffered", "direct", "mapped"])
def test_a_segment_that_took_the_name_of_another_is_refused(
    tmp_path: Path, io: Literal["buffered", "direct", "mapped"]
) -> None:
    path = tmp_path / "d.grain"
    last = path / "00001.seg"
    grainstore.convert(folder(tmp_path / "first", b"a"), path, no_labels=True)
    grainstore.append(folder(tmp_path / "second", b"b"), path, no_labels=True)
    size = last.stat().st_size

    def late() -> bytes:
        with ds.open(1) as file:
            file.seek(700_000)
            return file.read(10)

    ways: list[Callable[[], object]] = [
        late,
        lambda: ds[1],
        lambda: ds["b.bin"],
        lambda: ds.get_batch([0, 1]),
        lambda: list(grainstore.Loader(ds, batch_size=1, on_damage="skip")),
    ]
    opened = [grainstore.open(path, io=io) for _ in ways]
    reads = grainstore.open(path, io=io)
    assert reads[1]["data"] == b"b" * LENGTH
    grainstore.delete(path, keys=["b.bin"])
    grainstore.append(folder(tmp_path / "third", b"c"), path, no_labels=True)
    assert last.stat().st_size == size
    for ds, way in zip(opened, ways):
        with pytest.raises(grainstore.DatasetChanged, match="since the dataset was opened: .*opens it again") as raised:
            way()
        assert raised.value.path == str(last)
        assert ds[0]["data"] == b"a" * LENGTH
    # It has the old file open.
    assert reads[1]["data"] == b"b" * LENGTH
    assert grainstore.open(path, io=io)[1]["data"] == b"c" * LENGTH
