"""Which share of an epoch a process reads."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Reader:
    """One reader of a shared epoch: a worker of a rank, or the rank itself if it has no workers.

    The library treats every worker as a rank, numbered so that the first workers of all ranks come before the second
    ones.
    """

    rank: int
    world_size: int
    worker: int = 0
    num_workers: int = 0

    @property
    def number(self) -> int:
        return self.rank + self.world_size * self.worker

    @property
    def count(self) -> int:
        return self.world_size * max(1, self.num_workers)
