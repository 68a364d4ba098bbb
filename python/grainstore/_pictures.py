"""Pictures that the library decodes: some batches ahead of the loop, by threads without Python's lock."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Generator, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from grainstore._core import Batch, Dataset, Image


def check_decode(decode: object, dataset: Dataset) -> None:
    """Refuse what is not an ``Image``, or one that finds no pictures in the dataset."""
    if decode is None:
        return
    if not isinstance(decode, Image):
        raise TypeError(f'decode is a grainstore.Image, such as Image(224, "random-resized-crop"), not {type(decode).__name__}')
    decode._check(dataset.get_batch([]))


def decoded(
    batches: Iterable[Batch],
    image: Image,
    *,
    seed: int,
    epoch: int,
    num_threads: int,
    prefetch: int,
    on_undecoded: Callable[[int], None],
) -> Generator[Batch]:
    """The batches with decoded pictures, ``prefetch`` of them ahead of time.

    One batch after the other is decoded, each by all threads: so batches are finished in the order in which they are needed.
    ``on_undecoded`` gets the number of samples that were left out of a batch, from a thread of its own.
    """

    def decode(batch: Batch) -> Batch:
        made = image._decode(batch, seed, epoch, num_threads)
        on_undecoded(len(made.skipped) - len(batch.skipped))
        return made

    pool = ThreadPoolExecutor(1, thread_name_prefix="grain-pictures")
    waiting: deque[Future[Batch]] = deque()
    try:
        for batch in batches:
            waiting.append(pool.submit(decode, batch))
            if len(waiting) > prefetch:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(wait=False, cancel_futures=True)


def _image(
    size: tuple[int, int],
    crop: Any,
    scale: tuple[float, float],
    ratio: tuple[float, float],
    resize: int | None,
    flip: float,
    interpolation: Any,
    layout: Any,
    fast: bool,
    field: str | None,
    max_pixels: int,
    on_error: Any,
) -> Image:
    """An ``Image`` of pickled arguments."""
    return Image(
        size,
        crop,
        scale=scale,
        ratio=ratio,
        resize=resize,
        flip=flip,
        interpolation=interpolation,
        layout=layout,
        fast=fast,
        field=field,
        max_pixels=max_pixels,
        on_error=on_error,
    )
