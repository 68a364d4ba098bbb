"""What is in memory before something is measured: nothing (cold), everything (warm), or less than the data (limited)."""

from __future__ import annotations

import ctypes
import errno
import mmap
import os
import signal
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

import numpy as np

# Where root empties all caches of the machine.
_DROP_CACHES = Path("/proc/sys/vm/drop_caches")
_CGROUPS = Path("/sys/fs/cgroup")
# Files whose pages are counted, where there are more: one per sample.
_COUNTED_FILES = 512
# Tenths of a second that the last processes of a group have for ending.
_ATTEMPTS = 100

Cold = Literal["drop_caches", "fadvise"]

# How a report describes the way reads were made cold.
COLD_TEXT: dict[Cold, str] = {
    "drop_caches": "cold: all caches of the machine were emptied before each measurement",
    "fadvise": "cold: the files were taken out of the page cache before each measurement (root could empty all caches, "
    "those of directories and inodes too)",
}


def files_of(path: Path) -> Iterable[Path]:
    """The files at ``path``: itself, or all below it."""
    if path.is_file():
        return [path]
    return (Path(folder, name) for folder, _, names in os.walk(path) for name in names)


def claim_memory(len_bytes: int) -> int:
    """Have the machine own so much of its free memory, or half of all that is available; returns how much it is.

    The host of a virtual machine takes back memory that was free for a minute, and to get it again takes twenty times as
    long as to clear it: whoever touches it first would pay for all.
    """
    len_bytes = min(len_bytes, _available_bytes() // 2)
    if len_bytes > 0:
        with mmap.mmap(-1, len_bytes, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS) as memory:
            pages = np.frombuffer(memory, np.uint8)
            pages[:: mmap.PAGESIZE] = 1
            # Otherwise the map could not be closed.
            del pages
    return len_bytes


def _available_bytes() -> int:
    lines = Path("/proc/meminfo").read_text().splitlines()
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("MemAvailable:")), 0)


def make_cold(path: Path, *, only_files: bool = False) -> Cold:
    """Empty the caches as far as this user may; at least of the files at ``path``. Returns which it was.

    only_files: leave the caches of everything else on the machine alone.
    """
    # A page that is not yet written cannot be dropped.
    os.sync()
    if not only_files:
        try:
            _DROP_CACHES.write_text("3")
            return "drop_caches"
        except OSError:
            pass
    for file in files_of(path):
        descriptor = os.open(file, os.O_RDONLY)
        os.posix_fadvise(descriptor, 0, 0, os.POSIX_FADV_DONTNEED)
        os.close(descriptor)
    return "fadvise"


def make_warm(path: Path) -> None:
    """Read the files at ``path`` once, so that the page cache holds what fits."""
    block = bytearray(1 << 20)
    for file in files_of(path):
        with file.open("rb", buffering=0) as opened:
            while opened.readinto(block):
                pass


def cached_share(path: Path) -> float:
    """Which part of the bytes at ``path`` the page cache holds; of some of the files where there are very many."""
    files = list(files_of(path))
    step = max(1, -(-len(files) // _COUNTED_FILES))
    pages = cached = 0
    for file in files[::step]:
        resident = _resident_pages(file)
        pages += len(resident)
        cached += int(resident.sum())
    return cached / pages if pages else 0.0


def _resident_pages(file: Path) -> np.ndarray:
    """For each page of a file whether it is in memory, as mincore says."""
    size = file.stat().st_size
    if size == 0:
        return np.zeros(0, np.uint8)
    found = np.empty(-(-size // mmap.PAGESIZE), np.uint8)
    with file.open("rb") as opened, mmap.mmap(opened.fileno(), size, access=mmap.ACCESS_READ) as mapped:
        # NumPy knows the address of a read-only buffer; ctypes takes writable ones only.
        view = np.frombuffer(mapped, np.uint8)
        address = view.ctypes.data
        failed = _libc.mincore(ctypes.c_void_p(address), ctypes.c_size_t(size), ctypes.c_void_p(found.ctypes.data))
        # Otherwise the map could not be closed.
        del view
    if failed:
        raise OSError(ctypes.get_errno(), "mincore", str(file))
    return found & 1


_libc = ctypes.CDLL(None, use_errno=True)


@contextmanager
def memory_group(limit_bytes: int) -> Iterator[Path]:
    """A control group of processes that together have ``limit_bytes`` of memory, page cache included.

    A process joins it by ``join``. What it had before, such as imported modules, does not count. Raises ``OSError`` where
    this user may not make one.
    """
    version_2 = (_CGROUPS / "cgroup.controllers").exists()
    parent = _CGROUPS if version_2 else _CGROUPS / "memory"
    group = parent / f"grainstore-compare-{os.getpid()}"
    if version_2 and "memory" not in (parent / "cgroup.subtree_control").read_text().split():
        (parent / "cgroup.subtree_control").write_text("+memory")
    group.mkdir()
    try:
        (group / ("memory.max" if version_2 else "memory.limit_in_bytes")).write_text(str(limit_bytes))
        swap = group / ("memory.swap.max" if version_2 else "memory.swappiness")
        if swap.exists():
            swap.write_text("0")
        yield group
    finally:
        _remove_group(group)


def _remove_group(group: Path) -> None:
    """End what is still in a group, such as workers that outlive who started them, and remove it."""
    for _ in range(_ATTEMPTS):
        try:
            group.rmdir()
            return
        except OSError as error:
            if error.errno != errno.EBUSY:
                raise
        for process in (group / "cgroup.procs").read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(process), signal.SIGKILL)
        # The kernel says of no killed process when it has left the group.
        time.sleep(0.1)
    raise OSError(errno.EBUSY, "processes stay in the control group", str(group))


def join(group: Path) -> None:
    """Move this process into the group; processes that it starts from now on belong to it too."""
    (group / "cgroup.procs").write_text(str(os.getpid()))


def why_not_limited() -> str | None:
    """Why there are no measurements with less memory than data on this machine; ``None`` if there can be."""
    try:
        with memory_group(1 << 30):
            return None
    except OSError as error:
        return f"no control group with a limit of memory can be made: {error}"
