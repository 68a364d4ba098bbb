"""The user's function of a sample, applied to the batches of an epoch by threads."""

from __future__ import annotations

import concurrent.futures.thread
import threading
from collections import deque
from collections.abc import Callable, Generator, Iterable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from grainstore._core import Batch, Dataset
from grainstore._draws import draw_seeds, numpy_generator, takes_generator
from grainstore._errors import TransformFailed

Sample = dict[str, Any]


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
    work = _Work(transform, dataset)
    pool = ThreadPoolExecutor(num_threads, thread_name_prefix="grain-transform")
    waiting: deque[tuple[Batch, list[Future[list[Any]]]]] = deque()
    try:
        for batch in batches:
            seeds = draw_seeds(seed, epoch, batch)
            part = max(1, -(-len(batch) // num_threads))
            starts = range(0, len(batch), part)
            ends = (min(start + part, len(batch)) for start in starts)
            bounds = zip(starts, ends, strict=True)
            waiting.append((batch, [pool.submit(work.part, batch, seeds, start, end) for start, end in bounds]))
            if len(waiting) > prefetch:
                yield _joined(waiting.popleft())
        while waiting:
            yield _joined(waiting.popleft())
    finally:
        work.stop.set()
        pool.shutdown(wait=False, cancel_futures=True)


def _joined(waiting: tuple[Batch, list[Future[list[Any]]]]) -> tuple[Batch, list[Any]]:
    batch, parts = waiting
    return batch, [sample for part in parts for sample in part.result()]


class _Work:
    """What threads do for a pass, until it is stopped."""

    def __init__(self, transform: SampleTransform, dataset: Dataset) -> None:
        self.stop = threading.Event()
        self._transform = transform
        self._dataset = dataset

    def part(self, batch: Batch, seeds: Sequence[int], start: int, end: int) -> list[Any]:
        """The transformed samples ``start`` to ``end`` of a batch."""
        made = []
        for place in range(start, end):
            # Nobody waits for the result any more. Otherwise a stopping interpreter would wait for all submitted work.
            if self.stop.is_set() or getattr(concurrent.futures.thread, "_shutdown", False):
                raise RuntimeError("samples are no longer transformed: the loop was left, or the interpreter ends")
            try:
                made.append(self._transform(batch[place], seeds[place]))
            except Exception as error:
                raise self._failed(batch, place, error) from error
        return made

    def _failed(self, batch: Batch, place: int, error: Exception) -> TransformFailed:
        ordinal = int(batch.ordinals[place])
        key = self._dataset._key_of(ordinal)
        named = "" if key is None else f' (key "{key.decode("utf-8", "backslashreplace")}")'
        message = f"sample {ordinal}{named}: the transform raised {type(error).__name__}: {error}"
        return TransformFailed(message, ordinal=ordinal, key=key)
