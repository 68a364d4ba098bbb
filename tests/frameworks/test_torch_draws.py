"""Random transforms in grainstore.torch: draws depend on the seed, the epoch and the sample, and on nothing else."""

import random
import subprocess
import sys

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader
from torch_support import read

import grainstore
from grainstore import Loader
from grainstore._core import _draw_seed
from grainstore.torch import ImageFolder, IterableDataset, MapDataset

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


IMPORTED_INSIDE = """
import random, sys
import numpy as np
import grainstore

def transform(sample):
    import torch
    return torch.rand((), dtype=torch.float64).item()

assert "torch" not in sys.modules
drawn = np.concatenate(list(grainstore.Loader(grainstore.open(sys.argv[1]), 50, seed=int(sys.argv[2]), transform=transform)))
import torch
print(len(set(drawn.tolist())), torch.initial_seed(), torch.rand((), dtype=torch.float64).item())
"""


def test_torch_imported_by_the_transform_leaves_the_loop_a_seed_of_its_own(path):
    command = [sys.executable, "-c", IMPORTED_INSIDE, str(path), "5"]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert ended.returncode == 0, ended.stderr
    count, seed, first = ended.stdout.split()
    assert int(count) == COUNT
    # PyTorch seeds itself by chance when it is imported.
    of_samples = [_draw_seed(5, 0, label) >> 64 for label in range(COUNT)]
    assert int(seed) not in of_samples
    assert float(first) not in expected(5, 0).values()


# Map-style datasets


def drawn_in_order(dataset, workers, **options):
    return drawn(DataLoader(dataset, batch_size=16, num_workers=workers, **options))


@pytest.mark.parametrize("workers", [0, 1, 2, 4])
def test_a_map_dataset_draws_by_epoch_and_sample(dataset, workers):
    mapped = MapDataset(dataset, from_generator, seed=5)
    seeded = MapDataset(dataset, from_torch, seed=5)
    late = MapDataset(dataset, from_torch_late, seed=5)
    for epoch in (0, 2):
        for each in (mapped, seeded, late):
            each.set_epoch(epoch)
        assert drawn_in_order(mapped, workers) == expected(5, epoch)
        assert drawn_in_order(seeded, workers, shuffle=True) == expected(5, epoch)
        later = drawn_in_order(late, workers)
        assert [later[label] for label in range(300, COUNT)] == [expected(5, epoch)[label] for label in range(300, COUNT)]


def from_torch_late(sample):
    return sample["label"], torch.rand((), dtype=torch.float64) if sample["label"] >= 300 else torch.tensor(0.0).double()


def test_an_epoch_reaches_persistent_workers(dataset):
    for transform in (from_generator, from_torch):
        mapped = MapDataset(dataset, transform, seed=5)
        loader = DataLoader(mapped, batch_size=16, num_workers=2, persistent_workers=True)
        for epoch in (0, 1, 7):
            mapped.set_epoch(epoch)
            assert drawn(loader) == expected(5, epoch)


def test_views_slices_and_single_samples_draw_as_their_samples(dataset):
    mapped = MapDataset(dataset.select(range(COUNT - 1, -1, -1)), from_generator, seed=5)[100:]
    mapped.set_epoch(1)
    label, number = mapped[0]
    assert (label, number.item()) == (299, expected(5, 1)[299])
    assert drawn_in_order(mapped, 0) == {label: number for label, number in expected(5, 1).items() if label < 300}


def test_map_datasets_leave_the_loops_own_draws_alone(dataset):
    def own_draws(batches):
        torch.manual_seed(1)
        random.seed(1)
        return [torch.rand(()).item() + random.random() for _ in batches]

    mapped = MapDataset(dataset, from_globals)
    mapped.set_epoch(0)
    batches = (mapped.__getitems__(range(start, start + 20)) for start in range(0, COUNT, 20))
    assert own_draws(batches) == own_draws(range(COUNT // 20))
    # A loop that sets no epochs would else have the same draws in each.
    plain = MapDataset(dataset, from_torch)
    assert drawn_in_order(plain, 0) != drawn_in_order(plain, 0)


@pytest.mark.parametrize("workers", [0, 2])
@pytest.mark.filterwarnings("error:the transform gets")
def test_the_same_generators_again_are_warned_of(dataset, workers):
    mapped = MapDataset(dataset, from_generator)
    assert drawn_in_order(mapped, workers) == expected(0, 0)
    with pytest.raises(UserWarning, match="call dataset.set_epoch\\(n\\) before each epoch"):
        read(DataLoader(mapped, batch_size=16, num_workers=workers))


def test_wrong_seeds_and_epochs_are_refused(dataset):
    with pytest.raises(grainstore.InvalidOption, match="seed is -1"):
        MapDataset(dataset, seed=-1)
    with pytest.raises(grainstore.InvalidOption, match="epoch is -1"):
        MapDataset(dataset).set_epoch(-1)


@pytest.mark.parametrize("workers", [0, 2])
def test_an_image_folder_draws_by_epoch_and_picture(tmp_path, workers):
    with grainstore.Writer(
        tmp_path / "a.grain", schema={"image": "bytes", "label": "int64"}, metadata={"class_names": ["a", "b"]}
    ) as writer:
        for number in range(40):
            writer.write(key=f"{number:02}.png", image=b"%d" % number, label=number % 2)
    for transform in (picture_from_generator, picture_from_torch):
        folder = ImageFolder(tmp_path / "a.grain", transform, loader=int, seed=5)
        for epoch in (0, 3):
            folder.set_epoch(epoch)
            batches = DataLoader(folder, batch_size=8, num_workers=workers)
            found = drawn((pictures["number"], pictures["drawn"]) for pictures, _ in batches)
            assert found == {label: expected(5, epoch)[label] for label in range(40)}


def picture_from_generator(number, generator):
    return {"number": number, "drawn": torch.rand((), generator=generator, dtype=torch.float64)}


def picture_from_torch(number):
    return {"number": number, "drawn": torch.rand((), dtype=torch.float64)}
