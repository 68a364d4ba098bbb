"""Code as users write it, for the type checker: it is never run."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

import grainstore


def read(path: Path) -> None:
    with grainstore.open(path, io="mapped", payload="numpy", keys=True, cache_bytes=1 << 20) as ds:
        count: int = len(ds)
        sample: dict[str, Any] = ds[count - 1]
        sample = ds["cat/1.jpg"] or ds[b"\xff"] or ds[np.int64(3)]
        view: grainstore.Dataset = ds[10:20].select([1, 2]).select(np.arange(2)).filter("label == 3")
        mask: NDArray[np.bool_] = ds.column("label") == 3
        view = ds.select(mask).select(range(3)).select([True, False, True])
        samples: list[dict[str, Any]] = [*view, *ds.__getitems__([1, -1])]
        names: list[str] = [*ds.keys(), ds.keys()[-1], *ds.keys().tolist(), *samples[0]]
        found: int | None = ds.find(names[0])
        if "cat/1.jpg" in ds and b"dog" in ds.keys() and found is not None:
            print(ds.schema["image"], ds.metadata["class_names"], ds.stats()["samples"], ds.fingerprint, ds.paths, sample)
        batch: grainstore.Batch = ds.get_batch([3, 1, 2])
        images: grainstore.Buffers = batch["image"]
        views: list[memoryview] = [images[0], *images, *images[1:]]
        copies: list[bytes] = images.tolist()
        copies = [bytes(image) for image in images if image is not None]
        pixels: NDArray[np.uint8] = images.block[images.offsets[0] : images.offsets[0] + images.lengths[0]]
        first: dict[str, Any] = batch[0]
        print(views, copies, pixels, first, batch.ordinals.tolist(), batch.positions, batch.padded_count, batch.skipped)
        print(batch.keys(), batch.to_dict(), batch.tolist(), "label" in batch, list(batch), len(batch))
        print(pickle.dumps(ds), view.is_keyed, view.ordinals)


def train(ds: grainstore.Dataset) -> dict[str, Any]:
    loader = grainstore.Loader(
        ds, 256, order="chunked", seed=7, rank=0, world_size=2, tail="pad", on_damage="skip", window_bytes=1 << 28
    )
    loader.load_state_dict(loader.state_dict())
    for epoch in range(loader.epoch, 3):
        loader.set_epoch(epoch)
        for batch in loader:
            labels = batch["label"]
            print(labels.mean(), len(loader), loader.stats())
    for sample in grainstore.Loader(ds, None, transform=lambda sample: sample["label"]):
        print(sample)
    for numbers in grainstore.Loader(ds, collate=lambda samples: [sample["label"] for sample in samples]):
        print(numbers)
    return loader.state_dict()


def write(path: Path, source: str) -> None:
    schema = {"image": "bytes", "label": "int64"}
    with grainstore.Writer(path, schema, metadata={"class_names": ["cat"]}, compress="lz4") as writer:
        writer.write(key="a", image=b"", label=3)
        writer.write_batch(key=["b", "c"], image=[b"", bytearray(b"")], label=np.arange(2))
        print(writer.count)
    with grainstore.Writer(path, append=True) as writer:
        writer.discard()
    stages: list[str] = []
    summary = grainstore.convert([source], path, overwrite=True, progress=lambda news: stages.append(news["stage"]))
    samples: int = summary["samples"] + grainstore.append(source, path)["samples"]
    samples += grainstore.adopt(source, path, allow_external=True)["samples"]
    exported = grainstore.export(path, "out", "tar", shard_bytes=1 << 30)
    print(samples, exported["files"], grainstore.verify(path)["ok"], grainstore.__version__)
    grainstore.rebuild_index(path)


def catch(ds: grainstore.Dataset) -> int | None:
    try:
        return len(ds[0])
    except grainstore.DamagedSample as error:
        ordinal: int | None = error.ordinal
        key: bytes | None = error.key
        print(error.segment, error.offset, error.path, key)
        return ordinal
