"""Pictures that do not decode: found by `verify`, deleted, and then no training meets them. PNG needs no other package."""

from __future__ import annotations

import struct
import zlib
from pathlib import Path

import numpy as np
import pytest

import grainstore
from grainstore import Image, Loader

WIDTH, HEIGHT, COUNT = 20, 16, 12


def chunk(kind: bytes, content: bytes) -> bytes:
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png(grey: int, pixels: bytes | None = None) -> bytes:
    """A grey PNG; `pixels` are the compressed ones."""
    header = struct.pack(">IIBBBBB", WIDTH, HEIGHT, 8, 0, 0, 0, 0)
    if pixels is None:
        pixels = zlib.compress((b"\0" + bytes([grey]) * WIDTH) * HEIGHT)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


def flipped(content: bytes, place: int) -> bytes:
    return content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]


# A chunk that does not match its checksum, the half of a file, too few rows, none, and a text.
BAD = {
    2: flipped(png(2), 45),
    5: png(5)[: len(png(5)) // 2],
    6: png(6, zlib.compress((b"\0" + bytes(WIDTH)) * (HEIGHT - 1))),
    9: b"",
    11: b"not a picture",
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "d.grain"
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}) as writer:
        for number in range(COUNT):
            writer.write(key=f"{number:02}.png", image=BAD.get(number, png(number)), label=number)
    return path


def test_png_that_do_not_decode_are_found_and_deleted(path: Path) -> None:
    assert grainstore.verify(path)["ok"]
    report = grainstore.verify(path, check_images=True)
    assert (report["ok"], report["damaged"], report["checked_images"]) == (False, len(BAD), COUNT - len(BAD))
    found = [(row["ordinal"], row["key"]) for row in report["damages"]]
    assert found == [(number, b"%02d.png" % number) for number in BAD]
    assert all(row["what"].startswith('field "image": ') for row in report["damages"])

    deleted = grainstore.delete(path, ordinals=[row["ordinal"] for row in report["damages"]])
    assert (deleted["deleted"], deleted["samples"]) == (len(BAD), COUNT - len(BAD))
    report = grainstore.verify(path, check_images=True)
    assert (report["ok"], report["damages"], report["checked_images"]) == (True, [], COUNT - len(BAD))
    with grainstore.open(path) as ds:
        for batch in Loader(ds, 4, decode=Image(8, crop="center-crop")):
            assert batch["image"].shape == (len(batch), 8, 8, 3)
            assert np.array_equal(batch["image"].max(axis=(1, 2, 3)), batch["label"])
            assert np.array_equal(batch["image"].min(axis=(1, 2, 3)), batch["label"])


def test_training_skips_those_that_verify_names(path: Path) -> None:
    with grainstore.open(path) as ds:
        loader = Loader(ds, COUNT, decode=Image(8, on_error="skip"))
        trained = {int(ordinal) for batch in loader for ordinal in batch.ordinals}
        with pytest.raises(grainstore.Error, match="sample"):
            list(Loader(ds, 4, decode=Image(8)))
    assert trained == set(range(COUNT)) - set(BAD)
