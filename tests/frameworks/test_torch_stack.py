"""What a transform of grainstore.Loader returns to users of PyTorch: tensors are stacked to tensors."""

from collections import namedtuple
from dataclasses import dataclass

import numpy as np
import pytest
import torch
from torch_support import write

import grainstore

Pair = namedtuple("Pair", "image label")


@dataclass
class Example:
    image: torch.Tensor
    pair: Pair


@pytest.fixture(scope="module")
def dataset(tmp_path_factory):
    with grainstore.open(write(tmp_path_factory.mktemp("torch") / "train.grain", 10)) as opened:
        yield opened


def loaded(dataset, transform):
    [batch] = grainstore.Loader(dataset, 10, order="sequential", transform=transform, num_threads=2)
    return batch


def test_tensors_become_a_tensor(dataset):
    images, labels = loaded(dataset, lambda sample: (torch.full((2, 3), sample["label"]), torch.tensor(sample["label"])))
    assert images.shape == (10, 2, 3) and images.dtype == torch.int64
    assert labels.tolist() == list(range(10))
    images, label = loaded(dataset, lambda sample: [torch.zeros(2, dtype=torch.bfloat16), sample["label"]])
    assert (images.dtype, type(label)) == (torch.bfloat16, np.ndarray)


def test_tensors_in_containers_become_containers_of_tensors(dataset):
    def transform(sample):
        image = torch.full((2,), sample["label"])
        return {"a": Pair(image, [sample["label"]]), "b": Example(image, Pair(image, sample["caption"]))}

    batch = loaded(dataset, transform)
    assert torch.equal(batch["a"].image, torch.arange(10)[:, None].expand(10, 2))
    assert batch["a"].label[0].tolist() == list(range(10))
    assert type(batch["b"]) is Example and torch.equal(batch["b"].image, batch["a"].image)
    assert batch["b"].pair.label[3] == "sample 3"


def test_tensors_of_different_shapes_are_refused(dataset):
    with pytest.raises(grainstore.InvalidOption, match=r"shape of result\['x'\] is \(1,\) for sample 0, and \(2,\) for sample 1"):
        loaded(dataset, lambda sample: {"x": torch.zeros(1 + sample["label"] % 2)})
    with pytest.raises(grainstore.InvalidOption, match="type of result is Tensor for sample 0, and int for sample 1"):
        loaded(dataset, lambda sample: 1 if sample["label"] % 2 else torch.zeros(1))
