"""PyTorch, iterable style: grainstore's own shuffle, two workers, and a run that is interrupted and resumed.

    python examples/pytorch_iterable.py
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torchdata.stateful_dataloader import StatefulDataLoader

import grainstore
from grainstore.torch import IterableDataset

EPOCH = 3


def make_dataset(path: Path) -> None:
    random = np.random.default_rng(0)
    with grainstore.Writer(path, schema={"features": "float32[16]", "label": "int64"}) as writer:
        for number in range(1000):
            writer.write(key=f"{number:04}", features=random.normal(size=16).astype(np.float32), label=number)


def make_loader(path: Path) -> StatefulDataLoader:
    dataset = IterableDataset(path, batch_size=64, seed=7)
    # Every worker starts each epoch in the order of its number.
    dataset.set_epoch(EPOCH)
    # The dataset makes the batches: batch_size=None.
    return StatefulDataLoader(dataset, batch_size=None, num_workers=2)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        path, checkpoint = Path(folder) / "train.grain", Path(folder) / "loader.pt"
        make_dataset(path)

        loader = make_loader(path)
        iterator = iter(loader)
        seen = []
        for step in range(5):
            batch = next(iterator)
            if step == 0:
                print({name: (tuple(column.shape), column.dtype) for name, column in batch.items()})
            seen += batch["label"].tolist()
        torch.save(loader.state_dict(), checkpoint)
        print(f"left after 5 of {len(loader)} batches, {len(seen)} samples")
        del iterator, loader

        # As another process would, tomorrow.
        loader = make_loader(path)
        loader.load_state_dict(torch.load(checkpoint))
        after = [label for batch in loader for label in batch["label"].tolist()]
        print(f"resumed with {len(after)} samples; every sample once: {sorted(seen + after) == list(range(1000))}")


if __name__ == "__main__":
    main()
