"""Datasets and loaders in other processes: pickled, forked, spawned."""

from __future__ import annotations

import gc
import multiprocessing
import os
import pickle
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore
from grainstore import Loader

METHODS = ("fork", "spawn", "forkserver")

# Newer versions of Python warn about a fork beside threads; this tests that it works.
pytestmark = pytest.mark.filterwarnings("ignore:.*fork:DeprecationWarning")


def do_in_child(method: Any, work: Callable[..., None], *arguments: Any) -> None:
    """Runs `work` in a separate process, and checks that it succeeds."""
    process = multiprocessing.get_context(method).Process(target=work, args=arguments)
    process.start()
    process.join(timeout=100)
    if process.is_alive():
        process.kill()
        process.join()
    assert process.exitcode == 0


def read_everything(ds: grainstore.Dataset) -> None:
    count = len(ds)
    wanted = ds.ordinals.tolist()
    for place in (0, count // 2, -1):
        made.assert_same(ds[place], made.sample(wanted[place]))
    assert [sample["label"] for sample in ds] == wanted
    assert ds.get_batch(range(count))["image"].tolist() == [made.sample(number)["image"] for number in wanted]
    assert ds.column("label").tolist() == wanted
    for order in ("full", "chunked"):
        seen = [label for batch in Loader(ds, 16, order=order) for label in batch["label"].tolist()]
        assert sorted(seen) == sorted(wanted)


@pytest.mark.parametrize("method", METHODS)
def test_a_dataset_is_read_in_another_process(ds: grainstore.Dataset, method: str) -> None:
    read_everything(ds)
    do_in_child(method, read_everything, ds[20:60])
    read_everything(ds)


def go_on(loader: Loader, seen: list[int]) -> None:
    rest = [label for batch in loader for label in batch["label"].tolist()]
    assert sorted(seen + rest) == list(range(1000))
    assert loader.epoch == 1


@pytest.mark.parametrize("method", METHODS)
def test_a_loader_resumes_in_another_process(plain: grainstore.Dataset, method: str) -> None:
    loader = Loader(plain, 50)
    batches = iter(loader)
    seen = [label for _ in range(3) for label in next(batches)["label"].tolist()]
    do_in_child(method, go_on, pickle.loads(pickle.dumps(loader)), seen)
    assert sum(len(batch) for batch in batches) == 850


def forked(work: Callable[[], None]) -> None:
    do_in_child("fork", work)


@pytest.fixture
def begun(plain: grainstore.Dataset) -> Iterator[Iterator[Any]]:
    """An epoch that has given a batch; after the test it gives the others."""
    batches = iter(Loader(plain, 50))
    first = next(batches)["label"].tolist()
    yield batches
    rest = [label for batch in batches for label in batch["label"].tolist()]
    assert sorted(first + rest) == list(range(1000))


def test_an_epoch_stays_with_the_process_that_began_it(begun: Iterator[Any]) -> None:
    def work() -> None:
        with pytest.raises(grainstore.Forked):
            next(begun)

    forked(work)


def test_single_samples_stay_with_the_process_that_began_them(plain: grainstore.Dataset) -> None:
    samples = iter(Loader(plain, None))
    next(samples)

    def work() -> None:
        with pytest.raises(grainstore.Forked):
            next(samples)

    forked(work)
    assert sum(1 for _ in samples) == 999


def test_a_forked_process_begins_epochs_of_its_own(plain: grainstore.Dataset, begun: Iterator[Any]) -> None:
    loader = Loader(plain, 50)
    next(iter(loader))

    def work() -> None:
        for one in (loader, Loader(plain, 50, transform=dict, collate=len), Loader(plain, None)):
            assert len(list(one)) == len(one)
        assert [sample["label"] for sample in plain] == list(range(1000))

    forked(work)


def test_a_process_that_ends_or_closes_takes_nothing_from_the_one_it_was_forked_from(
    plain: grainstore.Dataset, begun: Iterator[Any]
) -> None:
    forked(lambda: None)
    forked(plain.close)
    assert plain[3]["label"] == 3

    def work() -> None:
        nonlocal begun
        del begun
        gc.collect()

    forked(work)


def test_an_iteration_continues_in_both_processes_after_a_fork(plain: grainstore.Dataset) -> None:
    samples = iter(plain)
    assert [next(samples)["label"] for _ in range(10)] == list(range(10))

    def work() -> None:
        assert [sample["label"] for sample in samples] == list(range(10, 1000))

    forked(work)
    assert [sample["label"] for sample in samples] == list(range(10, 1000))


def test_a_dataset_is_the_same_after_pickling(made_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(made_path.parent)
    options: dict[str, Any] = {"io": "buffered", "payload": "numpy", "keys": True}
    with grainstore.open(made_path.name, **options) as ds:
        views = [ds, ds[5:9], ds[::-7], ds.select([3, 3, 1]), ds.filter("label > 250"), ds[0:0]]
        pickled = [pickle.dumps(view) for view in views]
        monkeypatch.chdir("/")
        for view, again in zip(views, map(pickle.loads, pickled), strict=True):
            assert again.ordinals.tolist() == view.ordinals.tolist()
            assert again.fingerprint == view.fingerprint
            assert again.stats()["io"] == "buffered"
            for sample in again:
                assert isinstance(sample["image"], np.ndarray)
                assert sample["key"] == made.key(sample["label"])
            assert sorted(again.filter("label > 200").ordinals) == [
                ordinal for ordinal in sorted(view.ordinals) if ordinal > 200
            ]


def test_several_datasets_are_pickled_as_one(tmp_path: Path) -> None:
    for part in range(2):
        made.write(tmp_path / f"{part}.grain", part * 10, part * 10 + 10)
    with grainstore.open([tmp_path / "0.grain", tmp_path / "1.grain"]) as ds:
        again = pickle.loads(pickle.dumps(ds[5:15]))
        assert [sample["label"] for sample in again] == list(range(5, 15))


def test_a_small_view_of_all_that_is_there_is_pickled_small(plain: grainstore.Dataset) -> None:
    assert len(pickle.dumps(plain)) < 1000
    assert len(pickle.dumps(plain[10:990])) < 1000


def test_what_was_pickled_before_samples_were_added_is_without_them(tmp_path: Path) -> None:
    made.write_plain(tmp_path / "d.grain", 10)
    with grainstore.open(tmp_path / "d.grain") as ds:
        pickled = pickle.dumps(ds)
    with grainstore.Writer(tmp_path / "d.grain", append=True) as writer:
        writer.write(image=b"", label=10)
    assert len(pickle.loads(pickled)) == 10


def test_a_dataset_that_was_replaced_since_it_was_pickled_is_refused(tmp_path: Path) -> None:
    made.write_plain(tmp_path / "d.grain", 10)
    with grainstore.open(tmp_path / "d.grain") as ds:
        pickled = [pickle.dumps(thing) for thing in (ds, ds[2:3], Loader(ds))]
    made.write_plain(tmp_path / "d.grain", 11, overwrite=True)
    for one in pickled:
        with pytest.raises(grainstore.Error, match="another dataset"):
            pickle.loads(one)


def test_a_closed_dataset_is_not_pickled(plain_path: Path) -> None:
    ds = grainstore.open(plain_path)
    ds.close()
    with pytest.raises(grainstore.Closed):
        pickle.dumps(ds)


def test_nothing_is_in_shared_memory(plain: grainstore.Dataset, begun: Iterator[Any]) -> None:
    batch = next(iter(Loader(plain, 50, prefetch=4)))
    assert len(batch) == 50
    assert "/dev/shm/" not in Path(f"/proc/{os.getpid()}/maps").read_text()


def test_a_forked_process_leaves_a_writer_to_the_one_that_made_it(tmp_path: Path) -> None:
    path = tmp_path / "d.grain"
    with grainstore.Writer(path, {"image": "bytes"}) as writer:
        writer.write(key="a", image=b"a")

        def work() -> None:
            with pytest.raises(grainstore.Forked):
                writer.write(key="b", image=b"b")
            with pytest.raises(grainstore.Forked):
                writer.close()
            writer.__exit__(None, None, None)

        forked(work)
        writer.write(key="c", image=b"c")
    assert list(grainstore.open(path).keys()) == ["a", "c"]
