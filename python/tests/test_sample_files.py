"""One sample as a file: what decoders of video, sound and archives do with it."""

from __future__ import annotations

import gc
import io
import multiprocessing
import tarfile
import threading
import wave
import zipfile
from pathlib import Path

import made
import numpy as np
import pytest

import grainstore

# Longer than what is read as a whole.
LONG = np.random.default_rng(7).integers(0, 256, 2_500_000, np.uint8).tobytes()


def archive() -> bytes:
    held = io.BytesIO()
    with zipfile.ZipFile(held, "w") as parts:
        for number in range(20):
            parts.writestr(f"{number}.bin", LONG[number * 100_000 : (number + 1) * 100_000])
    return held.getvalue()


def tar() -> bytes:
    held = io.BytesIO()
    with tarfile.open(fileobj=held, mode="w") as parts:
        info = tarfile.TarInfo("last.bin")
        info.size = len(LONG)
        parts.addfile(info, io.BytesIO(LONG))
    return held.getvalue()


def sound() -> bytes:
    held = io.BytesIO()
    with wave.open(held, "wb") as out:
        out.setnchannels(2)
        out.setsampwidth(2)
        out.setframerate(44_100)
        out.writeframes(LONG)
    return held.getvalue()


@pytest.fixture(scope="module")
def path(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("long") / "long.grain"
    with grainstore.Writer(path, {"media": "bytes"}) as writer:
        for key, media in {"zip": archive(), "tar": tar(), "wave": sound(), "short": b"short", "empty": b""}.items():
            writer.write(key=key, media=media)
    return path


@pytest.mark.parametrize("mode", ["buffered", "direct", "mapped"])
def test_archives_and_sound_are_read_in_parts(path: Path, mode: str) -> None:
    ds = grainstore.open(path, io=mode)
    with zipfile.ZipFile(ds.open("zip")) as parts:
        assert parts.read("17.bin") == LONG[1_700_000:1_800_000]
    with tarfile.open(fileobj=ds.open("tar")) as parts:
        member = parts.extractfile("last.bin")
        assert member is not None
        member.seek(2_000_000)
        assert member.read(10) == LONG[2_000_000:2_000_010]
    with wave.open(ds.open("wave"), "rb") as frames:
        frames.setpos(500_000)
        assert frames.readframes(3) == LONG[2_000_000:2_000_012]


def test_it_is_a_file_object_as_python_has_them(path: Path) -> None:
    ds = grainstore.open(path)
    with ds.open(ds.find("wave")) as file:
        assert isinstance(file, grainstore.SampleFile) and isinstance(file, io.RawIOBase)
        whole = ds["wave"]["media"]
        assert file.size == len(whole) and file.readable() and file.seekable() and not file.writable()
        assert file.read(4) == b"RIFF" and file.tell() == 4
        assert file.seek(-3, 2) == len(whole) - 3 and file.read() == whole[-3:] and file.read(1) == b""
        assert file.seek(10) == 10 and file.seek(5, 1) == 15
        into = np.zeros(50, np.int16)
        assert file.readinto(into) == 100 and into.tobytes() == whole[15:115]
        file.seek(0)
        assert file.read() == whole
        assert file.seek(len(whole) + 5) == len(whole) + 5 and file.read() == b""
        for wrong in [(-1, 0), (-len(whole) - 1, 2), (0, 7)]:
            with pytest.raises(ValueError):
                file.seek(*wrong)
        with pytest.raises(io.UnsupportedOperation):
            file.write(b"1")
        file.seek(0)
        assert io.BufferedReader(file).read(4) == b"RIFF"
    assert file.closed
    for call in (file.read, file.tell, file.readable, lambda: file.write(b""), lambda: file.size):
        with pytest.raises(ValueError, match="closed"):
            call()


def test_short_and_empty_samples(path: Path) -> None:
    ds = grainstore.open(path)
    assert ds.open("short").read() == b"short"
    assert ds.open("empty").read() == b"" and ds.open("empty").size == 0


def test_views_number_their_own_samples(path: Path) -> None:
    ds = grainstore.open(path)
    view = ds.select([3, 2])
    assert view.open(0).read() == b"short" and view.open(-1).read(4) == b"RIFF"
    with pytest.raises(grainstore.NoSuchOrdinal):
        view.open(2)
    with pytest.raises(grainstore.NoSuchKey):
        view.open("zip")
    with pytest.raises(TypeError):
        ds.open(1.5)  # type: ignore[arg-type]


def test_a_file_stays_valid_without_its_dataset(path: Path) -> None:
    ds = grainstore.open(path)
    file = ds.open("wave")
    wanted = ds["wave"]["media"]
    ds.close()
    del ds
    gc.collect()
    assert file.read() == wanted


def test_fields_are_named_where_there_are_several(ds: grainstore.Dataset) -> None:
    sample = made.sample(8)
    assert ds.open(8, field="image").read() == sample["image"]
    assert ds.open(made.key(8), "text").read() == sample["text"].encode()
    with pytest.raises(grainstore.InvalidOption, match="image, text, vector, nothing"):
        ds.open(8)
    with pytest.raises(grainstore.NoSuchName, match="other"):
        ds.open(8, "other")
    with pytest.raises(grainstore.NoSuchName, match="lacks") as caught:
        ds.open(3, "text")
    assert caught.value.ordinal == 3


def test_damage_is_found_where_all_bytes_come_in_order(path: Path, tmp_path: Path) -> None:
    copy = tmp_path / "copy.grain"
    with grainstore.Writer(copy, {"media": "bytes"}) as writer:
        writer.write(key="long", media=LONG)
        writer.write(key="short", media=b"short" * 10)
    for segment in copy.rglob("*"):
        if segment.is_file():
            content = segment.read_bytes()
            for part in (LONG[1000:2000], b"short" * 10):
                place = content.find(part)
                if place >= 0:
                    content = content[:place] + bytes([content[place] ^ 1]) + content[place + 1 :]
            segment.write_bytes(content)
    ds = grainstore.open(copy)
    file = ds.open(0)
    file.seek(2_000_000)
    assert file.read() == LONG[2_000_000:]
    file.seek(0)
    with pytest.raises(grainstore.DamagedSample) as caught:
        while file.read(100_000):
            pass
    assert (caught.value.ordinal, caught.value.key) == (0, b"long")
    with pytest.raises(grainstore.DamagedSample):
        ds.open(1)


def test_threads_read_files_of_their_own_and_one_together(path: Path) -> None:
    ds = grainstore.open(path)
    shared = ds.open("wave")
    wanted = ds["wave"]["media"]
    found: list[bytes] = []
    parts: list[bytes] = []

    def read() -> None:
        found.append(ds.open("wave").read())
        while part := shared.read(10_000):
            parts.append(part)

    threads = [threading.Thread(target=read) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [wanted] * 4
    assert sorted(parts) == sorted(wanted[at : at + 10_000] for at in range(0, len(wanted), 10_000))


def _send_rest(file: grainstore.SampleFile, sender: object) -> None:
    sender.send_bytes(file.read())  # type: ignore[attr-defined]


def test_a_forked_process_reads_on(path: Path) -> None:
    file = grainstore.open(path).open("wave")
    wanted = file.read()
    file.seek(2_000_000)
    receiver, sender = multiprocessing.Pipe(duplex=False)
    child = multiprocessing.get_context("fork").Process(target=_send_rest, args=(file, sender))
    child.start()
    assert receiver.recv_bytes() == wanted[2_000_000:]
    child.join()
    assert file.tell() == 2_000_000 and child.exitcode == 0
