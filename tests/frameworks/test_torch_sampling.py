"""Epochs that draw samples by weights: the same samples for workers, ranks and after a resume."""

from collections import Counter

import numpy as np
import pytest
import torch
import torch_support
from torchdata.stateful_dataloader import StatefulDataLoader

import grainstore
from grainstore import Loader
from grainstore.torch import IterableDataset

WEIGHTS = np.arange(torch_support.COUNT) % 5
DRAWN = 240


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    return grainstore.open(torch_support.write(tmp_path_factory.mktemp("sampling") / "d.grain"))


def drawing(dataset, **options):
    return IterableDataset(dataset, 8, seed=3, weights=WEIGHTS, num_samples=DRAWN, **options)


@pytest.mark.parametrize("num_workers", [0, 1, 2])
@pytest.mark.parametrize("world_size", [1, 2])
def test_weights_draw_the_samples_that_the_loader_draws(dataset, num_workers, world_size):
    for epoch in (0, 1):
        own = Loader(dataset, 8, seed=3, epoch=epoch, weights=WEIGHTS, num_samples=DRAWN)
        seen = []
        for rank in range(world_size):
            drawn = drawing(dataset, rank=rank, world_size=world_size)
            drawn.set_epoch(epoch)
            loader = torch.utils.data.DataLoader(drawn, batch_size=None, num_workers=num_workers)
            labels = torch_support.labels_of(torch_support.read(loader))
            assert len(labels) == DRAWN // world_size
            seen += labels
        expected = torch_support.labels_of(own)
        assert Counter(seen) == Counter(expected)
        assert all(WEIGHTS[label] > 0 for label in seen)


def test_a_drawn_epoch_resumes_in_its_middle(dataset):
    def loader():
        return StatefulDataLoader(drawing(dataset), batch_size=None, num_workers=2)

    whole = torch_support.labels_of(torch_support.read(loader()))
    stopped = loader()
    batches = iter(stopped)
    begun = torch_support.labels_of(next(batches) for _ in range(10))
    resumed = loader()
    resumed.load_state_dict(stopped.state_dict())
    assert begun + torch_support.labels_of(torch_support.read(resumed)) == whole


def test_a_state_of_other_weights_is_refused(dataset):
    state = drawing(dataset).state_dict()
    other = IterableDataset(dataset, 8, seed=3, weights=WEIGHTS + 1, num_samples=DRAWN)
    with pytest.raises(grainstore.InvalidState, match="weights"):
        other.load_state_dict(state)
