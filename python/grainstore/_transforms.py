"""The user's function of a sample, applied to the batches of an epoch by threads."""

from __future__ import annotations

import concurrent.futures.thread
import logging
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from functools import partial
from typing import Any

from grainstore._core import Batch, Dataset
from grainstore._draws import draw_seeds, numpy_generator, takes_generator
from grainstore._errors import TransformFailed
from grainstore._global_draws import fingerprint, kept, seeded

Sample = dict[str, Any]

_logger = logging.getLogger("grainstore")
_noted = False

# Samples of a pass that show whether its function draws from global generators.
_TRIED = 16

# How often a pass makes a batch again because of the loop's own draws, before it no longer looks.
_ALARMS = 2


class SampleTransform:
    """A function of a sample, or of a sample and a generator."""

    def __init__(self, function: Callable[..., Any]) -> None:
        self.function = function
        self.takes_generator = takes_generator(function)

    def __call__(self, sample: Sample, draw_seed: int) -> Any:
        sample = self.prepared(sample)
        if self.takes_generator:
            return self.function(sample, self.generator(draw_seed))
        return self.function(sample)

    def prepared(self, sample: Sample) -> Sample:
        """The sample in the form that the function gets."""
        return sample

    def generator(self, draw_seed: int) -> Any:
        """What a function with a second parameter draws from."""
        return numpy_generator(draw_seed)


def as_sample_transform(transform: Callable[..., Any]) -> SampleTransform:
    return transform if isinstance(transform, SampleTransform) else SampleTransform(transform)


def transformed(
    batches: Iterable[Batch],
    transform: SampleTransform,
    dataset: Dataset,
    *,
    seed: int,
    epoch: int,
    num_threads: int,
    prefetch: int,
) -> Generator[tuple[Batch, list[Any]]]:
    """Batches with transformed samples, ``prefetch`` ahead of time; each batch is split into one part per thread."""
    work = _Work(transform, dataset, num_threads)
    waiting: deque[_Pending] = deque()
    try:
        for batch in batches:
            waiting.append(work.begin(batch, draw_seeds(seed, epoch, batch)))
            while len(waiting) > (0 if work.is_alone else prefetch):
                yield work.finish(waiting)
        while waiting:
            yield work.finish(waiting)
    finally:
        work.stop()


class _Pending:
    """A batch of which threads transform the samples, but for the first ones, which are made already."""

    def __init__(self, batch: Batch, seeds: Sequence[int]) -> None:
        self.batch = batch
        self.seeds = seeds
        self.made: list[Any] = []
        self.parts: list[Future[list[Any]]] = []
        # Whether a global generator was drawn from, by whomever, while threads were at work.
        self.was_drawn = False
        self._fingerprint: Any = None
        self._lock = threading.Lock()
        self._running = 0

    def submit(self, pool: ThreadPoolExecutor, work: _Work, num_threads: int, *, watch: bool) -> None:
        places = range(len(self.made), len(self.batch))
        size = max(1, -(-len(places) // num_threads))
        self._running = -(-len(places) // size)
        if watch:
            self._fingerprint = fingerprint()
        self.parts = [
            pool.submit(self._part, work, places[start : start + size]) for start in range(0, len(places), size)
        ]

    def _part(self, work: _Work, places: range) -> list[Any]:
        try:
            return [work.one(self, place) for place in places]
        finally:
            with self._lock:
                self._running -= 1
                if self._running == 0 and self._fingerprint is not None:
                    self.was_drawn = fingerprint() != self._fingerprint


class _Work:
    """What a pass does with its batches, in threads if it can.

    A function that draws from the generators of the whole process has to find them seeded for its sample, and the loop's
    own draws must not change: it runs in the loop's thread, while the loop waits, one sample at a time. Whether a function
    is such a one is seen from its first samples, which are made so. For later ones, the generators are compared before
    and after each batch; a change may also be the loop's doing, so the batch is then made again in the loop's thread.
    """

    def __init__(self, transform: SampleTransform, dataset: Dataset, num_threads: int) -> None:
        self.is_alone = False
        self._transform = transform
        self._dataset = dataset
        self._num_threads = num_threads
        self._pool = ThreadPoolExecutor(num_threads, thread_name_prefix="grain-transform")
        self._is_stopped = False
        # A function with a generator of its own needs none of this.
        self._is_tried = transform.takes_generator
        self._alarms_left = 0 if transform.takes_generator else _ALARMS

    def begin(self, batch: Batch, seeds: Sequence[int]) -> _Pending:
        pending = _Pending(batch, seeds)
        if not self._is_tried and len(batch):
            self._is_tried = True
            self._make_alone(pending, min(_TRIED, len(batch)), watch=True)
        if not self.is_alone:
            pending.submit(self._pool, self, self._num_threads, watch=self._alarms_left > 0)
        return pending

    def finish(self, waiting: deque[_Pending]) -> tuple[Batch, list[Any]]:
        """The first of the batches."""
        pending = waiting.popleft()
        wait(pending.parts)
        if pending.was_drawn and not self.is_alone:
            # The others draw from the same generators.
            wait([part for other in waiting for part in other.parts])
            pending.made = []
            self._make_alone(pending, len(pending.batch), watch=True)
            if not self.is_alone:
                self._alarms_left -= 1
                if self._alarms_left == 0:
                    _logger.info(
                        "the loop draws from generators that the whole process shares, so draws of the transform from "
                        "them are no longer looked for: draws for a few samples only would not be seeded; a function "
                        "with a second parameter, generator, gets a generator of its own"
                    )
        elif self.is_alone:
            if pending.parts:
                pending.made = []
            self._make_alone(pending, len(pending.batch), watch=False)
        else:
            pending.made += [sample for part in pending.parts for sample in part.result()]
        return pending.batch, pending.made

    def stop(self) -> None:
        self._is_stopped = True
        self._pool.shutdown(wait=False, cancel_futures=True)

    def one(self, pending: _Pending, place: int) -> Any:
        # Nobody waits for the result any more. Otherwise a stopping interpreter would wait for all submitted work.
        if self._is_stopped or getattr(concurrent.futures.thread, "_shutdown", False):
            raise RuntimeError("samples are no longer transformed: the loop was left, or the interpreter ends")
        try:
            return self._transform(pending.batch[place], pending.seeds[place])
        except Exception as error:
            raise self._failed(pending.batch, place, error) from error

    def _make_alone(self, pending: _Pending, end: int, *, watch: bool) -> None:
        """Make samples up to ``end`` in this thread, one at a time."""
        with kept():
            for place in range(len(pending.made), end):
                watches = watch and not self.is_alone
                made, drew = seeded(partial(self.one, pending, place), pending.seeds[place], watch=watches)
                pending.made.append(made)
                if drew:
                    self.is_alone = True
        if watch and self.is_alone and self._num_threads > 1:
            self._note()

    def _note(self) -> None:
        global _noted
        if not _noted:
            _noted = True
            _logger.info(
                "the transform draws from a generator that the whole process shares (of random, numpy.random or torch), so "
                "its samples are made one at a time, in the thread of the loop: a function with a second parameter, "
                "generator, gets a generator of its own, and runs in all threads"
            )

    def _failed(self, batch: Batch, place: int, error: Exception) -> TransformFailed:
        ordinal = int(batch.ordinals[place])
        key = self._dataset._key_of(ordinal)
        named = "" if key is None else f' (key "{key.decode("utf-8", "backslashreplace")}")'
        message = f"sample {ordinal}{named}: the transform raised {type(error).__name__}: {error}"
        return TransformFailed(message, ordinal=ordinal, key=key)
