"""A file that is cut short while a dataset is open: an error of the samples that are gone, never the end of the process."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import grainstore

COUNT = 400
KEPT = 150


def written(path: Path, payload_len: int = 3000) -> Path:
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}, keyed=False) as writer:
        for label in range(COUNT):
            writer.write(image=label.to_bytes(4, "little") * (payload_len // 4), label=label)
    return path


def cut(path: Path) -> None:
    """Keeps less than half of the samples, and all of the first `KEPT`."""
    segment = path / "00000.seg"
    os.truncate(segment, segment.stat().st_size * 2 // 5)


@pytest.mark.parametrize("io", ["auto", "buffered", "direct"])
@pytest.mark.parametrize("payload_len", [3000, 40_000])
def test_what_is_gone_is_an_error_and_the_rest_is_read(tmp_path: Path, io: Any, payload_len: int) -> None:
    path = written(tmp_path / "cut.grain", payload_len)
    with grainstore.open(path, io=io) as ds:
        whole = [ds[ordinal] for ordinal in range(COUNT)]
        assert ds.stats()["io"] == ("mapped" if io == "auto" else io)
        cut(path)
        for ordinal in range(KEPT):
            assert ds[ordinal] == whole[ordinal]
        lost = COUNT - KEPT
        for read in (lambda: ds[lost], lambda: ds.get_batch([0, lost]), lambda: list(grainstore.Loader(ds, 32))):
            with pytest.raises(grainstore.Error, match="file ends at"):
                read()
        assert ds.get_batch(list(range(KEPT)))["label"].tolist() == list(range(KEPT))


# What others do to the signal: a handler that is there before, one that comes later, and the default again after a fork.
OTHERS = {
    "before": ("import faulthandler; faulthandler.enable()", ""),
    "later": ("", "import faulthandler; faulthandler.enable(); [ds[i % 100] for i in range(1000)]"),
    "forked": ("", "import os, signal; pid = os.fork()\nif pid: sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))\nsignal.signal(signal.SIGBUS, signal.SIG_DFL)"),
}


@pytest.mark.parametrize("who", OTHERS)
def test_it_does_not_matter_who_else_handles_the_signal(tmp_path: Path, who: str) -> None:
    path = written(tmp_path / "cut.grain")
    before, later = OTHERS[who]
    program = f"""
import os, sys
{before}
import grainstore
ds = grainstore.open(sys.argv[1])
whole = [ds[i] for i in range({COUNT})]
assert ds.stats()["io"] == "mapped"
{later}
segment = sys.argv[1] + "/00000.seg"
os.truncate(segment, os.stat(segment).st_size * 2 // 5)
errors = 0
for i in range({COUNT}):
    try:
        assert ds[i] == whole[i]
    except grainstore.Error as error:
        assert "file ends at" in str(error) or "file ends at" in str(error.__cause__), error
        errors += 1
print(errors)
"""
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert COUNT // 2 <= int(done.stdout) <= COUNT - KEPT


def test_a_fault_that_is_not_ours_still_ends_the_process(tmp_path: Path) -> None:
    path = written(tmp_path / "whole.grain")
    program = """
import mmap, os, sys
import grainstore
ds = grainstore.open(sys.argv[1])
assert ds[0] and ds.stats()["io"] == "mapped"
with open(sys.argv[1] + ".other", "w+b") as file:
    file.truncate(8192)
    pages = mmap.mmap(file.fileno(), 8192, prot=mmap.PROT_READ)
    file.truncate(0)
pages[4096]
print("survived")
"""
    done = subprocess.run([sys.executable, "-c", program, path], capture_output=True, text=True, check=False)
    assert done.returncode == -7 and done.stdout == "", (done.returncode, done.stdout)
