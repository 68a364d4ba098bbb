"""A small CNN, trained on a CPU from a folder of files and from grainstore; then stopped in mid-epoch and resumed.

    pip install torch pillow
    python examples/train_cnn.py            # about a minute
    python examples/train_cnn.py --quick    # some seconds, a smaller dataset

It makes pictures of ten shapes in a temporary folder (train/circle/00000.png, ...), packs them, and shows three things:
both ways of reading train equally well, how many samples a second each reads, and that a run that was stopped and resumed in
another process has the same losses as one that was not, bit for bit.
"""

import argparse
import io
import json
import multiprocessing
import tempfile
import time
from pathlib import Path

import numpy as np
import torch
from PIL import Image
from torch import nn

import grainstore

SIDE = 32
BATCH_SIZE = 50
SHAPES = {
    "bars": lambda x, y: np.sin(3 * y) > 0,
    "checks": lambda x, y: np.sin(3 * x) * np.sin(3 * y) > 0,
    "circle": lambda x, y: np.hypot(x, y) < 1,
    "cross": lambda x, y: np.minimum(abs(x), abs(y)) < 0.3,
    "diamond": lambda x, y: abs(x) + abs(y) < 1,
    "frame": lambda x, y: abs(np.maximum(abs(x), abs(y)) - 0.8) < 0.2,
    "posts": lambda x, y: np.sin(3 * x) > 0,
    "ring": lambda x, y: abs(np.hypot(x, y) - 0.8) < 0.2,
    "square": lambda x, y: np.maximum(abs(x), abs(y)) < 0.8,
    "triangle": lambda x, y: (y > -0.6) & (y + 1.6 * abs(x) < 0.8),
}
CLASSES = sorted(SHAPES)


def make_pictures(folder, count, seed):
    """Write ``count`` noisy pictures of shapes, somewhere in the picture and of some size, as folder/class/number.png."""
    draw = np.random.default_rng(seed)
    rows, columns = np.mgrid[0:SIDE, 0:SIDE]
    for number in range(count):
        name = CLASSES[number % len(CLASSES)]
        (left, top), radius = draw.uniform(11, 21, 2), draw.uniform(7, 11)
        inside = SHAPES[name]((columns - left) / radius, (top - rows) / radius)
        inside &= np.maximum(abs(columns - left), abs(rows - top)) < 1.3 * radius
        picture = np.where(inside[..., None], draw.uniform(120, 255, 3), draw.uniform(0, 110, 3))
        picture += draw.normal(0, 30, picture.shape)
        path = Path(folder, name, f"{number:05}.png")
        path.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(picture.clip(0, 255).astype(np.uint8)).save(path)


def decode(png):
    with Image.open(io.BytesIO(png)) as picture:
        return np.array(picture.convert("RGB"))


class Files(torch.utils.data.Dataset):
    """A file a sample, as torchvision's ImageFolder reads them."""

    def __init__(self, folder):
        self.samples = [(path, CLASSES.index(path.parent.name)) for path in sorted(Path(folder).glob("*/*.png"))]

    def __len__(self):
        return len(self.samples)

    def __getitem__(self, index):
        path, label = self.samples[index]
        return {"image": decode(path.read_bytes()), "label": label}


def files_loader(folder):
    draw = torch.Generator().manual_seed(5)
    return torch.utils.data.DataLoader(Files(folder), BATCH_SIZE, shuffle=True, drop_last=True, generator=draw)


def decoded(sample):
    return {"image": decode(sample["image"]), "label": sample["label"]}


def grainstore_loader(dataset, **options):
    return grainstore.Loader(dataset, BATCH_SIZE, seed=5, drop_last=True, transform=decoded, **options)


def tensors(batch):
    images = torch.as_tensor(batch["image"]).permute(0, 3, 1, 2).float().div(255).sub(0.5)
    return images, torch.as_tensor(batch["label"])


class Training:
    """A model and its optimizer, one step after the other, the same for the same seed."""

    def __init__(self):
        torch.manual_seed(1)
        torch.set_num_threads(1)
        torch.use_deterministic_algorithms(True)
        layers = [nn.Conv2d(3, 16, 3, stride=2, padding=1), nn.BatchNorm2d(16), nn.ReLU()]
        layers += [nn.Conv2d(16, 32, 3, padding=1), nn.BatchNorm2d(32), nn.ReLU(), nn.MaxPool2d(2)]
        layers += [nn.Flatten(), nn.Dropout(0.2), nn.Linear(32 * (SIDE // 4) ** 2, len(CLASSES))]
        self.model = nn.Sequential(*layers)
        self.optimizer = torch.optim.Adam(self.model.parameters(), lr=2e-3)
        self.losses = []

    def step(self, batch):
        images, labels = tensors(batch)
        if torch.rand(()) < 0.5:  # augmentation and dropout draw from torch's generator, so its state is saved too
            images = images.flip(3)
        self.model.train()
        loss = nn.functional.cross_entropy(self.model(images), labels)
        self.optimizer.zero_grad()
        loss.backward()
        self.optimizer.step()
        self.losses.append(loss.item())

    def accuracy(self, loader):
        self.model.eval()
        right = count = 0
        with torch.no_grad():
            for images, labels in map(tensors, loader):
                right += (self.model(images).argmax(1) == labels).sum().item()
                count += len(labels)
        return right / count

    def save(self, path, loader):
        state = {"model": self.model.state_dict(), "optimizer": self.optimizer.state_dict()}
        torch.save({**state, "random": torch.get_rng_state(), "loader": loader.state_dict()}, path)

    def load(self, path, loader):
        state = torch.load(path)
        self.model.load_state_dict(state["model"])
        self.optimizer.load_state_dict(state["optimizer"])
        torch.set_rng_state(state["random"])
        loader.load_state_dict(state["loader"])


def train(loader, epochs):
    training = Training()
    for _ in range(epochs):
        for batch in loader:
            training.step(batch)
    return training


def train_until(steps, dataset, checkpoint):
    """Train for some steps, save, and stop as if the machine had gone down. Gives the losses."""
    training = Training()
    loader = grainstore_loader(grainstore.open(dataset))
    while True:
        for batch in loader:
            training.step(batch)
            if len(training.losses) == steps:
                training.save(checkpoint, loader)
                return training.losses


def train_on(epochs, dataset, checkpoint):
    """Resume from the saved state, to the end of the last epoch. Returns the losses from there."""
    training = Training()
    loader = grainstore_loader(grainstore.open(dataset))
    training.load(checkpoint, loader)
    while loader.epoch < epochs:
        for batch in loader:
            training.step(batch)
    return training.losses


def samples_per_second(loader):
    """Of one pass over the loader, without a model: reading, decoding, making batches."""
    start = time.perf_counter()
    count = sum(len(batch["label"]) for batch in loader)
    return count / (time.perf_counter() - start)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a smaller dataset, fewer epochs")
    parser.add_argument("--json", action="store_true", help="print figures for programs, and nothing else")
    arguments = parser.parse_args()
    train_count, test_count, epochs = (1000, 300, 3) if arguments.quick else (4000, 1000, 5)
    say = (lambda *_: None) if arguments.json else print

    with tempfile.TemporaryDirectory() as folder:
        files, packed, packed_test = Path(folder, "train"), Path(folder, "train.grain"), Path(folder, "test.grain")
        make_pictures(files, train_count, seed=1)
        make_pictures(Path(folder, "test"), test_count, seed=2)
        grainstore.convert(files, packed)
        grainstore.convert(Path(folder, "test"), packed_test)
        dataset, test = grainstore.open(packed), grainstore.open(packed_test)
        assert dataset.metadata["class_names"] == CLASSES
        say(f"{train_count} pictures to train with, {test_count} to test with, {epochs} epochs")

        from_files = train(files_loader(files), epochs)
        from_grainstore = train(grainstore_loader(dataset), epochs)
        test_loader = grainstore.Loader(test, BATCH_SIZE, order="sequential", transform=decoded)
        figures = {
            "classes": len(CLASSES),
            "files": {"accuracy": from_files.accuracy(test_loader)},
            "grainstore": {"accuracy": from_grainstore.accuracy(test_loader)},
        }
        figures["files"]["samples_per_second"] = samples_per_second(files_loader(files))
        figures["grainstore"]["samples_per_second"] = samples_per_second(grainstore_loader(dataset))
        for name in ("files", "grainstore"):
            accuracy, rate = figures[name]["accuracy"], figures[name]["samples_per_second"]
            say(f"from {name}: accuracy {accuracy:.3f}, reads {rate:,.0f} samples/s")

        stop = int((epochs - 1.5) * len(grainstore_loader(dataset)))
        checkpoint = Path(folder, "checkpoint.pt")
        before = train_until(stop, packed, checkpoint)
        with multiprocessing.get_context("spawn").Pool(1) as another_process:
            after = another_process.apply(train_on, (epochs, packed, checkpoint))
        whole = from_grainstore.losses
        figures["resume"] = {"stopped_after": stop, "losses": whole, "losses_resumed": before + after}
        say(f"stopped after step {stop} of {len(whole)}, resumed in another process")
        say(f"losses are equal to those of a run that did not stop: {whole == before + after}")
    if arguments.json:
        print(json.dumps(figures))


if __name__ == "__main__":
    main()
