"""Random transforms in grainstore.torch: draws depend on the seed, the epoch and the sample, and on nothing else."""

import random

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader

import grainstore
from grainstore import Loader
from grainstore._core import _draw_seed
from grainstore.torch import IterableDataset

pytestmark = pytest.mark.filterwarnings("ignore:This DataLoader will create")

COUNT = 400


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("draws") / "train.grain"
    with grainstore.Writer(path, schema={"image": "bytes", "label": "int64"}, keyed=False) as writer:
        writer.write_batch(image=[b"image"] * COUNT, label=range(COUNT))
    return path


@pytest.fixture
def dataset(path):
    with grainstore.open(path) as opened:
        yield opened


def from_generator(sample, generator):
    return sample["label"], torch.rand((), generator=generator, dtype=torch.float64)


def drawn(batches):
    """What was drawn for each sample, by its label."""
    return {label: number for labels, numbers in batches for label, number in zip(labels.tolist(), numbers.tolist())}


def expected(seed, epoch):
    generators = [torch.Generator().manual_seed(_draw_seed(seed, epoch, label) >> 64) for label in range(COUNT)]
    return {label: torch.rand((), generator=generators[label], dtype=torch.float64).item() for label in range(COUNT)}


# IterableDataset, with a second parameter


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_a_second_parameter_gets_a_generator_of_the_sample(dataset, workers):
    for num_threads in (1, 4):
        iterable = IterableDataset(dataset, 16, seed=5, transform=from_generator, num_threads=num_threads)
        iterable.set_epoch(2)
        assert drawn(DataLoader(iterable, batch_size=None, num_workers=workers)) == expected(5, 2)


def test_ranks_draw_the_same_and_so_do_single_samples(dataset):
    found = {}
    for rank in range(2):
        iterable = IterableDataset(dataset, seed=5, transform=from_generator, rank=rank, world_size=2)
        found |= drawn(DataLoader(iterable, batch_size=10, num_workers=1))
    assert found == expected(5, 0)


def test_draws_continue_after_a_resume(dataset):
    iterable = IterableDataset(dataset, 16, seed=5, transform=from_generator, num_threads=4)
    batches = iter(iterable)
    found = drawn([next(batches) for _ in range(6)])
    resumed = IterableDataset(dataset, 8, seed=5, transform=from_generator)
    resumed.load_state_dict(iterable.state_dict())
    assert found | drawn(DataLoader(resumed, batch_size=None, num_workers=2)) == expected(5, 0)


# Transforms with one parameter, which draw from the generators of the process


def from_globals(sample):
    return sample["label"], random.random() + np.random.random() + torch.rand((), dtype=torch.float64)


def from_torch(sample):
    return sample["label"], torch.rand((), dtype=torch.float64)


def test_loaders_and_workers_seed_global_generators_for_each_sample(dataset):
    wanted = drawn(Loader(dataset, 30, seed=5, transform=from_globals, num_threads=1))
    assert len(set(wanted.values())) == COUNT
    assert drawn(Loader(dataset, 64, seed=5, transform=from_globals, num_threads=4)) == wanted
    assert drawn(Loader(dataset, 64, seed=5, transform=from_torch, num_threads=4)) == expected(5, 0)
    for workers in (0, 1, 2, 4):
        found = {}
        for rank in range(2):
            options = {"rank": rank, "world_size": 2, "num_threads": 2}
            iterable = IterableDataset(dataset, 10, seed=5, transform=from_globals, **options)
            found |= drawn(DataLoader(iterable, batch_size=None, num_workers=workers))
        assert found == wanted
    iterable = IterableDataset(dataset, 16, seed=5, transform=from_globals)
    batches = iter(iterable)
    begun = drawn([next(batches) for _ in range(6)])
    resumed = IterableDataset(dataset, 8, seed=5, transform=from_globals)
    resumed.load_state_dict(iterable.state_dict())
    assert begun | drawn(DataLoader(resumed, batch_size=None, num_workers=2)) == wanted


def test_the_loops_own_draws_are_undisturbed(dataset):
    def own_draws(batches):
        torch.manual_seed(1)
        return [torch.rand(()).item() for _ in batches]

    wanted = own_draws(range(10))
    assert own_draws(IterableDataset(dataset, 40, transform=from_globals, num_threads=4)) == wanted
