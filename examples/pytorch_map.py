"""PyTorch, map style: samples by number, in the order of torch's own shuffle.

    python examples/pytorch_map.py
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
from torch.utils.data import DataLoader

import grainstore
from grainstore.torch import MapDataset

CLASSES = 4


def make_dataset(path: Path) -> None:
    """1,000 pictures of 8 x 8 pixels, whose brightness shows their class."""
    random = np.random.default_rng(0)
    with grainstore.Writer(path, schema={"image": "uint8[8,8]", "label": "int64"}) as writer:
        for number in range(1000):
            label = number % CLASSES
            image = random.normal(50 * label + 40, 20, (8, 8)).clip(0, 255).astype(np.uint8)
            writer.write(key=f"{number:04}", image=image, label=label)


def to_input(sample: dict) -> tuple[torch.Tensor, int]:
    """What the model wants of a sample. It runs in the workers."""
    return torch.from_numpy(sample["image"]).float() / 255, sample["label"]


def main() -> None:
    torch.manual_seed(0)
    with tempfile.TemporaryDirectory() as folder:
        make_dataset(Path(folder) / "train.grain")
        dataset = MapDataset(Path(folder) / "train.grain", transform=to_input)
        # DataLoader requests the samples of a batch at once, and they are read together.
        loader = DataLoader(dataset, batch_size=50, shuffle=True, num_workers=2, persistent_workers=True)
        model = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(64, 32), torch.nn.ReLU(), torch.nn.Linear(32, CLASSES))
        optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)
        for epoch in range(3):
            right = 0
            for images, labels in loader:
                scores = model(images)
                loss = torch.nn.functional.cross_entropy(scores, labels)
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                right += int((scores.argmax(1) == labels).sum())
            print(f"epoch {epoch}: {right} of {len(dataset)} right")


if __name__ == "__main__":
    main()
