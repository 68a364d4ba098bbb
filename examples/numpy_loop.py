"""Batches as NumPy arrays, a transform in threads, and resuming in mid-epoch: grainstore alone.

    pip install numpy
    python examples/numpy_loop.py
"""

import json
import tempfile
from pathlib import Path

import numpy as np

import grainstore


def write(path):
    draw = np.random.default_rng(0)
    schema = {"image": "bytes", "embedding": "float32[16]", "label": "int64"}
    with grainstore.Writer(path, schema) as writer:
        for number in range(2000):
            writer.write(
                key=f"{number:05}",
                image=draw.integers(0, 256, (8, 8), np.uint8).tobytes(),
                embedding=draw.standard_normal(16, np.float32),
                label=number % 10,
            )


def decode(sample):
    return {"image": np.frombuffer(sample["image"], np.uint8).reshape(8, 8) / 255, "label": sample["label"]}


def main():
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "train.grain")
        write(path)
        dataset = grainstore.open(path)

        # Columns: no sample becomes a Python object.
        loader = grainstore.Loader(dataset, batch_size=256, seed=7)
        mean = np.zeros(16)
        for batch in loader:
            mean += batch["embedding"].sum(axis=0)
        print(f"{len(loader)} batches; the mean embedding is within {abs(mean / len(dataset)).max():.2f} of zero")

        # A function of a sample, in threads; what it makes is stacked.
        decoded = grainstore.Loader(dataset, batch_size=256, seed=7, transform=decode, num_threads=4)
        batch = next(iter(decoded))
        print(f"decoded: {batch['image'].shape} {batch['image'].dtype}, labels {np.bincount(batch['label'])}")

        # Stop after two batches; another loader resumes with the third.
        first = iter(loader)
        seen = [next(first).ordinals, next(first).ordinals]
        state = json.dumps(loader.state_dict())
        again = grainstore.Loader(dataset, batch_size=256, seed=7)
        again.load_state_dict(json.loads(state))
        seen += [batch.ordinals for batch in again]
        print(f"stopped and resumed: {len(np.unique(np.concatenate(seen)))} different samples of {len(dataset)}")


if __name__ == "__main__":
    main()
