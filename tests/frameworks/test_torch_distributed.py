"""grainstore.torch under DistributedDataParallel: two processes, gloo."""

import json

import pytest
import torch
import torch.distributed
from torch.utils.data import DataLoader, DistributedSampler
from torch_support import COUNT, write

from grainstore.torch import IterableDataset, MapDataset

RANKS = 2


def as_input(sample):
    return {"vector": sample["vector"], "label": sample["label"]}


def train(rank, path, folder, given):
    """One rank: two epochs of training, and what it saw of each way to read."""
    torch.set_num_threads(1)
    torch.distributed.init_process_group("gloo", init_method=f"file://{folder}/meeting", rank=rank, world_size=RANKS)
    model = torch.nn.parallel.DistributedDataParallel(torch.nn.Linear(3, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=1e-5)
    # One that was made before there was a process group, in the process that started this one; and one of its own.
    own = IterableDataset(path, 8, order="full", transform=as_input)
    mapped = MapDataset(path, transform=as_input)
    sampler = DistributedSampler(mapped, drop_last=True)
    loaders = {
        "given": (given, DataLoader(given, batch_size=None, num_workers=2, multiprocessing_context="fork")),
        "own": (own, DataLoader(own, batch_size=None, num_workers=1, multiprocessing_context="spawn")),
        "alone": (own, DataLoader(own, batch_size=None)),
        "map": (sampler, DataLoader(mapped, batch_size=8, sampler=sampler)),
    }
    seen = {}
    for name, (epochs, loader) in loaders.items():
        seen[name] = []
        for epoch in range(2 if name in ("given", "alone") else 1):
            epochs.set_epoch(epoch)
            batches = []
            for batch in loader:
                loss = (model(batch["vector"]).squeeze(1) - batch["label"].float()).square().mean()
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                batches.append(batch["label"].tolist())
            seen[name].append(batches)
    weights = [parameter.tolist() for parameter in model.parameters()]
    with open(f"{folder}/{rank}.json", "w") as file:
        json.dump({"seen": seen, "weights": weights, "finite": bool(torch.isfinite(loss))}, file)
    torch.distributed.destroy_process_group()


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    folder = tmp_path_factory.mktemp("ddp")
    path = write(folder / "train.grain")
    given = IterableDataset(path, 8, order="full", transform=as_input)
    torch.multiprocessing.spawn(train, (path, str(folder), given), nprocs=RANKS)
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(RANKS)]


@pytest.mark.parametrize(("name", "epochs"), [("given", 2), ("own", 1), ("alone", 2)])
def test_ranks_read_disjoint_samples_that_are_the_dataset_in_equally_many_batches(ranks, name, epochs):
    for epoch in range(epochs):
        shares = [rank["seen"][name][epoch] for rank in ranks]
        assert len(shares[0]) == len(shares[1]) > 0
        labels = [label for share in shares for batch in share for label in batch]
        assert sorted(labels) == list(range(COUNT))
    if epochs > 1:
        assert ranks[0]["seen"][name][0] != ranks[0]["seen"][name][1]


def test_the_map_dataset_is_shared_by_torchs_own_sampler(ranks):
    shares = [{label for batch in rank["seen"]["map"][0] for label in batch} for rank in ranks]
    assert len(shares[0]) == len(shares[1]) == COUNT // 2 and not shares[0] & shares[1]


def test_the_ranks_train_one_model(ranks):
    assert ranks[0]["weights"] == ranks[1]["weights"]
    assert ranks[0]["finite"] and ranks[0]["weights"][0] != [[0.0, 0.0, 0.0]]
