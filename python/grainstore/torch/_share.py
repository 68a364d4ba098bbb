"""Which share of an epoch a process reads, and how many batches that is."""

from __future__ import annotations

from dataclasses import dataclass

from grainstore import InvalidOption


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


@dataclass(frozen=True)
class Division:
    """How an epoch is divided: ``sample_count`` samples, ``batch_size`` at a time.

    alternate: whether readers take turns sample by sample, as in every order but the sequential one.
    """

    sample_count: int
    batch_size: int
    tail: str
    alternate: bool

    def whole_count(self, readers: int, start: int) -> int:
        """Number of full batches that each reader has from position ``start`` of the epoch on."""
        return (self.sample_count - start) // (readers * self.batch_size)

    def batch_count(self, number: int, readers: int, start: int = 0) -> int:
        """Number of batches with samples that reader ``number`` of ``readers`` has from position ``start`` on."""
        whole, rest = divmod(self.sample_count - start, readers * self.batch_size)
        if rest == 0 or self.tail == "drop":
            return whole
        if self.tail == "pad" or rest >= readers:
            return whole + 1
        turn = (number - (self.sample_count - rest)) % readers if self.alternate else number
        return whole + (turn < rest)

    def check_even(self, world_size: int, start: int) -> None:
        """Refuse a division that would leave a rank waiting for the others."""
        if len({self.batch_count(rank, world_size, start) for rank in range(world_size)}) > 1:
            raise InvalidOption(
                f"the {world_size} ranks would not have equally many batches of the {self.sample_count - start} samples: "
                "tail='pad' repeats some, tail='drop' leaves some out, and tail='short' lets ranks differ by one, which "
                "DistributedDataParallel hangs on"
            )
