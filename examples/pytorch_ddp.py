"""PyTorch, DistributedDataParallel: two processes share every epoch.

    python examples/pytorch_ddp.py

It starts its processes itself. Under torchrun, train() is your script's main, with init_process_group("nccl") alone.
"""

import tempfile
from pathlib import Path

import numpy as np
import torch
import torch.distributed
import torch.multiprocessing
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader

import grainstore
from grainstore.torch import IterableDataset

PROCESSES = 2


def make_dataset(path: Path) -> None:
    random = np.random.default_rng(0)
    with grainstore.Writer(path, schema={"features": "float32[16]", "label": "float32"}) as writer:
        for number in range(1000):
            features = random.normal(size=16).astype(np.float32)
            writer.write(key=f"{number:04}", features=features, label=float(features.sum()))


def train(rank: int, folder: str) -> None:
    torch.set_num_threads(1)
    torch.distributed.init_process_group(
        "gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=PROCESSES
    )
    # Rank and world size are those of the process group.
    dataset = IterableDataset(f"{folder}/train.grain", batch_size=32, seed=7)
    loader = DataLoader(dataset, batch_size=None, num_workers=1, multiprocessing_context="fork")
    model = DistributedDataParallel(torch.nn.Linear(16, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    for epoch in range(3):
        dataset.set_epoch(epoch)
        samples, losses = 0, []
        for batch in loader:
            loss = torch.nn.functional.mse_loss(model(batch["features"]).squeeze(1), batch["label"])
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
            samples += len(batch["label"])
            losses.append(loss.item())
        print(f"epoch {epoch}, rank {rank}: {len(losses)} batches, {samples} samples, loss {np.mean(losses):.4f}", flush=True)
    torch.distributed.destroy_process_group()


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        make_dataset(Path(folder) / "train.grain")
        torch.multiprocessing.spawn(train, (folder,), nprocs=PROCESSES)


if __name__ == "__main__":
    main()
