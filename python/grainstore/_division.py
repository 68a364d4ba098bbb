"""How many batches of an epoch each rank has, whether they are equally many, and that none is empty."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from grainstore._core import Batch
from grainstore._errors import DamagedSample, InvalidOption

Tail = Literal["short", "drop", "pad"]


def tail_of(tail: Tail | None, drop_last: bool) -> tuple[Tail, bool]:
    """The tail that the library divides by, and whether all ranks must have equally many batches."""
    if drop_last and tail not in (None, "drop"):
        raise InvalidOption(f"drop_last is tail='drop', and tail is {tail!r}")
    return "drop" if drop_last else tail or "short", tail is None and not drop_last


@dataclass(frozen=True)
class Division:
    """How an epoch is divided: ``sample_count`` samples, ``batch_size`` at a time.

    The last batches of ``tail="short"`` have no samples for some readers, which then have one batch less.

    alternate: whether readers take turns sample by sample, as in every order but the sequential one.
    """

    sample_count: int
    batch_size: int
    tail: Tail
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

    def check_even(self, world_size: int, start: int, num_workers: int = 1) -> None:
        """Refuse a division by which a rank, with all its workers, would have more batches than another."""
        readers = world_size * num_workers
        rest = (self.sample_count - start) % (readers * self.batch_size)
        if self.tail != "short" or rest >= readers or rest % world_size == 0:
            return
        what = "batches" if self.batch_size > 1 else "samples"
        raise InvalidOption(
            f"the {world_size} ranks would not have equally many {what} of the {self.sample_count - start} samples: "
            "tail='pad' repeats some, tail='drop' leaves some out, and tail='short' lets ranks differ by one, which a step "
            "that all ranks take together, such as DistributedDataParallel's, hangs on"
        )


def nothing_left(batch: Batch, number: int, epoch: int) -> DamagedSample:
    """The error for a batch, whose samples were all left out."""
    skipped = batch.skipped
    ordinal, reason = skipped[0]
    return DamagedSample(
        f"batch {number} of this pass of epoch {epoch} has no sample left: all {len(skipped)} were skipped as damaged or "
        f"undecodable, the first of them {ordinal}: {reason}. Use larger batches, or leave such samples out of the dataset "
        "with Dataset.select (grainstore.verify lists damaged ones)",
        ordinal=ordinal,
    )
