"""Claims: JPEGs of 500 px, decoded, cut and scaled to 224 px by ``Loader(ds, decode=Image(...))``: >= 0.9 of the cores
times what one thread reaches with libjpeg-turbo, and faster than tf.data.

Warm, as decoding takes the time, and ours cold beside it; batches of 64. Two cases: a random part scaled to 224 x 224, and the whole picture
decoded at a smaller scale (``fast=True``) and scaled to 224 x 224. The one thread is `simplejpeg` (libjpeg-turbo with
SIMD): for a random part, all of the picture is decoded and the part scaled by torchvision's functional
``resized_crop``; for the whole picture, libjpeg-turbo decodes it at the same half scale, and Pillow scales the rest.
"""

from __future__ import annotations

import io
import os
import tarfile
import time
from collections.abc import Callable, Iterable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import PIL.Image
from data import kept
from report import AtLeast, Report, Row, say
from timing import COLD_TEXT, Cold, Spread, arguments, interleaved, isolated, make_cold, make_warm

import grainstore

_BATCH_SIZE = 64
_SIZE = 224
_CLASSES = 10
_SHARDS = 12
_CORES = len(os.sched_getaffinity(0))


def picture(number: int) -> bytes:
    """A JPEG of 500 x 375 pixels as photographs have them: noise of all scales, the coarse ones strongest."""
    draws = np.random.default_rng(number)
    total = np.zeros((375, 500, 3), np.float32)
    for cells, strength in ((3, 110.0), (8, 60.0), (24, 32.0), (70, 18.0), (180, 10.0)):
        noise = draws.uniform(-1, 1, (cells * 3 // 4 + 1, cells, 3)).astype(np.float32)
        for channel in range(3):
            plane = PIL.Image.fromarray(noise[:, :, channel]).resize((500, 375), PIL.Image.Resampling.BICUBIC)
            # Colours differ less than brightness does.
            total[:, :, channel] += strength * (0.6 * np.asarray(plane))
            total += (strength * 0.13 * np.asarray(plane))[:, :, None]
    total += draws.normal(0, 3, (375, 500, 1))
    file = io.BytesIO()
    pixels = np.clip(total + 128, 0, 255).astype(np.uint8)
    PIL.Image.fromarray(pixels).save(file, "JPEG", quality=90)
    return file.getvalue()


def folder(count: int) -> Path:
    def write(path: Path) -> None:
        for number in range(count):
            name = path / f"{number % _CLASSES:02}" / f"{number:06}.jpg"
            name.parent.mkdir(parents=True, exist_ok=True)
            name.write_bytes(picture(number))

    return kept(f"jpeg-500-{count}", write)


def dataset(count: int) -> Path:
    return kept(f"jpeg-500-{count}.grain", lambda path: grainstore.convert(folder(count), path))


def shards(count: int) -> Path:
    def write(path: Path) -> None:
        path.mkdir()
        files = sorted(folder(count).glob("*/*.jpg"))
        for number in range(_SHARDS):
            with tarfile.open(path / f"{number:02}.tar", "w") as shard:
                for file in files[number::_SHARDS]:
                    shard.add(file, file.name)

    return kept(f"jpeg-500-{count}-tars", write)


def rate(batches: Iterable[Any], length: Callable[[Any], int], count: int) -> float:
    """Pictures a second from the first request to the last batch."""
    seen = 0
    start = time.perf_counter()
    for batch in batches:
        seen += length(batch)
    elapsed_s = time.perf_counter() - start
    if seen != count:
        raise SystemExit(f"{seen} pictures came, expected {count}")
    return count / elapsed_s


def image(fast: bool) -> grainstore.Image:
    return grainstore.Image(_SIZE, fast=True) if fast else grainstore.Image(_SIZE, "random-resized-crop")


def by_grainstore(path: Path, fast: bool, seed: int) -> float:
    with grainstore.open(path) as ds:
        loader = grainstore.Loader(ds, _BATCH_SIZE, seed=seed, decode=image(fast))
        return rate(loader, lambda batch: len(batch["image"]), len(ds))


def by_grainstore_cold(path: Path, fast: bool, seed: int) -> tuple[float, Cold]:
    cold = make_cold(path)
    # The program itself was made cold too, and is not what is measured.
    make_warm(Path(grainstore.__file__).parent)
    return by_grainstore(path, fast, seed), cold


def _transform(fast: bool) -> Any:
    from torchvision.transforms import v2

    resize = v2.Resize((_SIZE, _SIZE)) if fast else v2.RandomResizedCrop(_SIZE)
    return v2.Compose([resize, v2.PILToTensor()])


def _load(fast: bool, path: str) -> PIL.Image.Image:
    with open(path, "rb") as file:
        opened = PIL.Image.open(file)
        if fast:
            opened.draft("RGB", (_SIZE, _SIZE))
        return opened.convert("RGB")


def by_torchvision(path: Path, fast: bool, workers: int, seed: int) -> float:
    import torch
    from torch.utils.data import DataLoader
    from torchvision.datasets import ImageFolder

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    samples = ImageFolder(str(path), _transform(fast), loader=partial(_load, fast))
    context = "fork" if workers else None
    loader = DataLoader(samples, _BATCH_SIZE, shuffle=True, num_workers=workers, multiprocessing_context=context)
    return rate(loader, lambda batch: len(batch[1]), len(samples))


def by_webdataset(path: Path, fast: bool, workers: int, count: int, seed: int) -> float:
    import torch
    import webdataset
    from torch.utils.data import DataLoader

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    transform = _transform(fast)

    def decoded(sample: dict[str, Any]) -> Any:
        opened = PIL.Image.open(io.BytesIO(sample["jpg"]))
        if fast:
            opened.draft("RGB", (_SIZE, _SIZE))
        return transform(opened.convert("RGB"))

    names = [str(file) for file in sorted(path.glob("*.tar"))]
    samples = webdataset.WebDataset(names, shardshuffle=_SHARDS, seed=seed).shuffle(1000).map(decoded)
    context = "fork" if workers else None
    loader = DataLoader(samples, _BATCH_SIZE, num_workers=workers, multiprocessing_context=context)
    return rate(loader, len, count)


def by_tensorflow(path: Path, fast: bool, seed: int) -> float:
    import tensorflow as tf

    tf.random.set_seed(seed)
    names = [str(file) for file in sorted(path.glob("*/*.jpg"))]
    everything = tf.constant([[[0.0, 0.0, 1.0, 1.0]]])

    def decoded(name: Any) -> Any:
        content = tf.io.read_file(name)
        if fast:
            pixels = tf.io.decode_jpeg(content, channels=3, ratio=2, dct_method="INTEGER_ACCURATE")
        else:
            begin, size, _ = tf.image.sample_distorted_bounding_box(
                tf.io.extract_jpeg_shape(content),
                everything,
                area_range=(0.08, 1.0),
                aspect_ratio_range=(3 / 4, 4 / 3),
                use_image_if_no_bounding_boxes=True,
            )
            window = tf.stack([begin[0], begin[1], size[0], size[1]])
            pixels = tf.io.decode_and_crop_jpeg(content, window, channels=3, dct_method="INTEGER_ACCURATE")
        return tf.cast(tf.image.resize(pixels, (_SIZE, _SIZE), antialias=True), tf.uint8)

    samples = tf.data.Dataset.from_tensor_slices(names).shuffle(len(names), seed=seed)
    samples = samples.map(decoded, tf.data.AUTOTUNE, deterministic=False).batch(_BATCH_SIZE).prefetch(tf.data.AUTOTUNE)
    return rate(samples, lambda batch: int(batch.shape[0]), len(names))


def by_one_thread(path: Path, fast: bool, seed: int) -> tuple[float, float]:
    """With libjpeg-turbo, all in memory: pictures a second, and the same without what follows decoding."""
    import simplejpeg
    import torch
    from torchvision.transforms import v2

    torch.manual_seed(seed)
    torch.set_num_threads(1)
    contents = [file.read_bytes() for file in sorted(path.glob("*/*.jpg"))]
    crop = v2.RandomResizedCrop(_SIZE)

    def decoded(content: bytes) -> Any:
        if fast:
            return simplejpeg.decode_jpeg(content, min_height=_SIZE * 375 // 500, min_width=_SIZE, min_factor=2)
        return simplejpeg.decode_jpeg(content)

    def scaled(pixels: Any) -> Any:
        if fast:
            return np.asarray(PIL.Image.fromarray(pixels).resize((_SIZE, _SIZE), PIL.Image.Resampling.BILINEAR))
        return crop(torch.from_numpy(pixels).permute(2, 0, 1))

    whole = rate((scaled(decoded(content)) for content in contents), lambda _: 1, len(contents))
    return whole, rate((decoded(content) for content in contents), lambda _: 1, len(contents))


def main() -> None:
    parser = arguments(__doc__)
    parser.add_argument("--workers", type=int, nargs="+", default=[1, 2, 3], metavar="N", help="worker processes")
    options = parser.parse_args()
    count = options.samples or 3000
    packages = ("torch", "torchvision", "tensorflow_cpu", "webdataset", "simplejpeg", "pillow")
    report = Report("pictures", judged=True, packages=packages)
    plain = folder(count)
    size = sum(file.stat().st_size for file in plain.glob("*/*.jpg")) / count
    report.note(f"{count} pictures of 500 x 375 pixels, {size / 1000:.0f} KB each: noise of all scales, quality 90")
    for path in (plain, dataset(count), shards(count)):
        make_warm(path)
    for name, fast in (("random part", False), ("half scale", True)):
        if options.only in name:
            add_rows(report, name, fast, count, options)
    report.finish(options.json)


def add_rows(report: Report, case: str, fast: bool, count: int, options: Any) -> None:
    plain, grain, tars = folder(count), dataset(count), shards(count)

    def cold(seed: int) -> tuple[float, Cold]:
        result: tuple[float, Cold] = isolated(by_grainstore_cold, grain, fast, seed)
        for path in (plain, grain, tars):
            make_warm(path)
        return result

    measured: dict[str, Callable[[int], Any]] = {
        "grainstore": lambda seed: isolated(by_grainstore, grain, fast, seed),
        "grainstore, cold": cold,
        "one thread": lambda seed: isolated(by_one_thread, plain, fast, seed),
        "tf.data": lambda seed: isolated(by_tensorflow, plain, fast, seed),
    }
    for workers in options.workers:
        measured[f"torchvision, {workers} workers"] = lambda seed, workers=workers: isolated(
            by_torchvision, plain, fast, workers, seed
        )
    measured["webdataset, 2 workers"] = lambda seed: isolated(by_webdataset, tars, fast, 2, count, seed)
    found = interleaved(options.rounds, measured, say)
    from_disk = found.pop("grainstore, cold")
    found["grainstore, cold"] = [pictures_s for pictures_s, _ in from_disk]
    for how in {how for _, how in from_disk}:
        report.note(COLD_TEXT[how])
    single = found.pop("one thread")
    one_thread, decoding = [whole for whole, _ in single], [only for _, only in single]
    for name, rates in found.items():
        report.add(Row(case, f"{name}, pictures/s", Spread.of(rates)))
    report.add(Row(case, "one thread with libjpeg-turbo, pictures/s", Spread.of(one_thread)))
    report.add(Row(case, "the same, decoding only, pictures/s", Spread.of(decoding)))
    ours = found["grainstore"]
    cores = [_CORES * one for one in one_thread]
    report.add(Row(case, f"grainstore to {_CORES} x one thread", Spread.ratio(ours, cores), AtLeast(0.9)))
    cold_ratio = Spread.ratio(found["grainstore, cold"], cores)
    report.add(Row(case, f"grainstore, cold, to {_CORES} x one thread", cold_ratio, AtLeast(0.9)))
    report.add(Row(case, "grainstore to tf.data", Spread.ratio(ours, found["tf.data"]), AtLeast(1.0)))
    loaders = [rates for name, rates in found.items() if name.startswith("torchvision")]
    best = max(loaders, key=lambda rates: Spread.of(rates).median)
    report.add(Row(case, "grainstore to the best of torchvision", Spread.ratio(ours, best)))


if __name__ == "__main__":
    main()
