"""What a measurement costs: CPU time, bytes from the disk, memory; of a process and of the workers that it starts."""

from __future__ import annotations

import resource
from dataclasses import dataclass
from pathlib import Path

_ME = Path("/proc/self")


@dataclass(frozen=True)
class Spent:
    """CPU seconds, and bytes that were read from the disk, of this process and of children that have ended."""

    cpu_s: float
    read_bytes: int

    @classmethod
    def now(cls) -> Spent:
        used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
        # The kernel adds what a child read to its parent's count when the child has ended.
        read = _number_after(_ME / "io", "read_bytes:")
        return cls(sum(one.ru_utime + one.ru_stime for one in used), read)

    def since(self, before: Spent) -> Spent:
        return Spent(self.cpu_s - before.cpu_s, self.read_bytes - before.read_bytes)


@dataclass(frozen=True)
class Disturbance:
    """How often this process, all its threads, waited (``waits``) or was interrupted by another (``preemptions``), and
    pages that it had to ask for: from the disk (``major_faults``), or already in memory (``minor_faults``)."""

    waits: int
    preemptions: int
    major_faults: int
    minor_faults: int

    @classmethod
    def now(cls) -> Disturbance:
        used = resource.getrusage(resource.RUSAGE_SELF)
        return cls(used.ru_nvcsw, used.ru_nivcsw, used.ru_majflt, used.ru_minflt)

    def since(self, before: Disturbance) -> Disturbance:
        return Disturbance(
            self.waits - before.waits,
            self.preemptions - before.preemptions,
            self.major_faults - before.major_faults,
            self.minor_faults - before.minor_faults,
        )


@dataclass(frozen=True)
class Memory:
    """own_bytes: memory that only these processes have and no file backs, such as buffers and indices.
    all_bytes: the same and the mapped pages of files, which the kernel may take back. Shared pages count once."""

    own_bytes: int
    all_bytes: int

    def __or__(self, other: Memory) -> Memory:
        """The larger of each."""
        return Memory(max(self.own_bytes, other.own_bytes), max(self.all_bytes, other.all_bytes))


NO_MEMORY = Memory(0, 0)


def memory_of(process: int) -> Memory:
    """What a process and all that it started have at this moment; nothing once it has ended."""
    own = total = 0
    for one in _tree(process):
        try:
            lines = Path(f"/proc/{one}/smaps_rollup").read_text().splitlines()
        except OSError:
            # It has ended meanwhile.
            continue
        sizes = {name: int(value.split()[0]) * 1024 for name, _, value in (line.partition(":") for line in lines[1:])}
        # Kernels before 5.9 do not tell the kinds of shared pages apart.
        own += sizes.get("Pss_Anon", sizes.get("Anonymous", 0)) + sizes.get("Pss_Shmem", 0)
        total += sizes.get("Pss", 0)
    return Memory(own, total)


def _tree(process: int) -> list[int]:
    found = [process]
    for one in found:
        try:
            for children in Path(f"/proc/{one}/task").glob("*/children"):
                found += map(int, children.read_text().split())
        except OSError:
            # It has ended meanwhile.
            continue
    return found


def _number_after(path: Path, word: str) -> int:
    return next(int(line.split()[1]) for line in path.read_text().splitlines() if line.startswith(word))
