"""At the edges: what is almost a number, a mask, a value or an end, and must not become another."""

from __future__ import annotations

import logging
import subprocess
import sys
import textwrap
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_processes import forked
from test_values import round_trip

import grainstore
from grainstore import Loader, _loader


def test_transformed_batches_stay_with_the_process_that_began_them(plain: grainstore.Dataset) -> None:
    gate = threading.Event()

    def transform(sample: dict[str, Any]) -> int:
        if sample["label"] > 0:
            gate.wait()
        return int(sample["label"])

    batches = iter(Loader(plain[:2], 1, order="sequential", transform=transform, num_threads=1))
    assert next(batches).tolist() == [0]

    def work() -> None:
        with pytest.raises(grainstore.Forked):
            next(batches)

    try:
        forked(work)
    finally:
        gate.set()


def test_an_interpreter_that_ends_transforms_no_more_than_was_begun(plain_path: Path) -> None:
    script = """
        import atexit, sys, time, grainstore
        calls = []
        def transform(sample):
            calls.append(sample)
            time.sleep(0.01)  # Work: all that is submitted would take a second.
        batches = iter(grainstore.Loader(grainstore.open(sys.argv[1]), 100, transform=transform, collate=len, num_threads=2))
        next(batches)
        before = len(calls)
        atexit.register(lambda: print(len(calls) - before))
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(plain_path)], capture_output=True, timeout=100, check=True
    )
    assert int(ended.stdout) <= 4


def test_a_list_of_bools_is_a_mask_as_an_array_is(plain: grainstore.Dataset) -> None:
    assert plain[:4].select([True, False, False, True]).ordinals.tolist() == [0, 3]


def test_a_mask_has_the_length_of_the_view(plain: grainstore.Dataset) -> None:
    for length in (2, 999, 1001):
        with pytest.raises((IndexError, ValueError)):
            plain.select(np.zeros(length, bool))


def test_large_numbers_are_never_taken_for_others(plain: grainstore.Dataset) -> None:
    with pytest.raises(IndexError):
        plain.select(np.array([2**64 - 1], np.uint64))


@pytest.mark.parametrize("number", [2**63, 2**70, -(2**70)])
def test_numbers_that_no_machine_word_holds_are_index_errors(ds: grainstore.Dataset, number: int) -> None:
    for use in (ds.select, ds.get_batch, ds.__getitems__):
        with pytest.raises(IndexError):
            use([number])
    with pytest.raises(IndexError):
        ds.keys()[number]


def test_an_array_of_one_number_is_no_number(ds: grainstore.Dataset) -> None:
    with pytest.raises(TypeError):
        ds[np.array([3])]  # type: ignore[index]


def test_a_number_of_no_sample_is_reported(ds: grainstore.Dataset) -> None:
    with pytest.raises(IndexError, match=str(2**200)):
        ds[2**200]


def test_lists_of_floats_are_no_integers(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        round_trip(tmp_path, "int8[2]", [1.5, 2])


def test_a_number_that_no_float32_reaches_is_an_overflow(tmp_path: Path) -> None:
    with pytest.raises(OverflowError):
        round_trip(tmp_path, "float32", 1e300)


def test_masked_arrays_are_not_written_as_the_values_under_the_mask(tmp_path: Path) -> None:
    with pytest.raises(TypeError):
        round_trip(tmp_path, "float32[2]", np.ma.masked_array(np.ones(2, np.float32), mask=[True, False]))


def test_no_attribute_is_called_key(tmp_path: Path) -> None:
    for keyed in (True, False):
        with pytest.raises(grainstore.InvalidOption, match='"key" is the sample\'s key'):
            grainstore.Writer(tmp_path / "d.grain", {"image": "bytes", "key": "int64"}, keyed=keyed)
    assert not (tmp_path / "d.grain").exists()


def test_a_path_is_bytes(made_path: Path) -> None:
    with grainstore.open(bytes(made_path)) as ds:
        assert ds.paths == [str(made_path)]


def test_single_samples_of_ranks_in_order_are_counted_right(plain: grainstore.Dataset) -> None:
    for rank in range(3):
        loader = Loader(plain, None, order="sequential", rank=rank, world_size=3, tail="short")
        assert len(list(loader)) == len(loader)


@pytest.mark.parametrize("options", [
    {"batch_size": -1}, {"seed": -1}, {"seed": 2**64}, {"epoch": -1}, {"rank": -1, "world_size": 2}, {"lanes": -1}, {"group": -1}, {"group": 2**32}, {"window_bytes": -1},
], ids=str)
def test_what_cannot_be_is_an_invalid_option(plain: grainstore.Dataset, options: dict[str, Any]) -> None:
    with pytest.raises(grainstore.InvalidOption):
        Loader(plain, **options)


@pytest.mark.parametrize("change", [{"epoch": -1}, {"epoch": 2**70}, {"position": 1001}], ids=str)
def test_numbers_out_of_range_are_no_state(plain: grainstore.Dataset, change: dict[str, Any]) -> None:
    loader = Loader(plain, 10)
    with pytest.raises(grainstore.InvalidState):
        loader.load_state_dict(loader.state_dict() | change)


def test_progress_that_raises_when_all_is_done_is_heard_and_what_is_done_stays(tmp_path: Path) -> None:
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a").write_bytes(b"a")

    def stop(progress: Any) -> None:
        raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        grainstore.convert(tmp_path / "folder", tmp_path / "d.grain", progress=stop)
    assert len(grainstore.open(tmp_path / "d.grain")) == 1


def test_a_half_of_a_launcher_s_environment_is_refused(plain: grainstore.Dataset, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "4")
    with pytest.raises(grainstore.InvalidOption, match="WORLD_SIZE and no RANK"):
        Loader(plain)
    assert Loader(plain, rank=0, world_size=1).world_size == 1


def test_a_pass_that_cannot_begin_keeps_the_state_that_was_loaded(
    plain: grainstore.Dataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    loader = Loader(plain, 100, seed=1)
    batches = iter(loader)
    first = next(batches).ordinals.tolist()
    resumed = Loader(plain, 100, seed=1)
    resumed.load_state_dict(loader.state_dict())
    monkeypatch.setenv("RANK", "5")
    monkeypatch.setenv("WORLD_SIZE", "2")
    with pytest.raises(grainstore.InvalidOption):
        iter(resumed)
    monkeypatch.undo()
    rest = [number for batch in resumed for number in batch.ordinals.tolist()]
    assert sorted(first + rest) == list(range(1000))


@pytest.mark.parametrize("place", [3, -4, 2**31, 2**63, 10**30, -(10**30)])
def test_places_outside_a_batch_are_index_errors(plain: grainstore.Dataset, place: int) -> None:
    batch = plain.get_batch([1, 2, 3])
    for within in (batch, batch["image"]):
        with pytest.raises(IndexError):
            within[place]
        with pytest.raises(TypeError, match="float"):
            within[1.0]


def test_what_ranks_should_know_is_logged_once(
    plain: grainstore.Dataset, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(_loader, "_logged", set())
    caplog.set_level(logging.INFO, "grainstore")
    for rank in (1, 0):
        for _ in range(2):
            list(Loader(plain, 10, order="chunked", lanes=2, rank=rank, world_size=3))
    [record] = [record for record in caplog.records if record.name == "grainstore"]
    assert record.name == "grainstore" and "lanes" in record.message


def test_masks_are_stacked_too(plain: grainstore.Dataset) -> None:
    def transform(sample: dict[str, Any]) -> Any:
        return np.ma.masked_array([1, sample["label"]], mask=[True, False])

    [batch] = Loader(plain[:2], 2, order="sequential", transform=transform)
    assert batch.tolist() == [[None, 0], [None, 1]]


def test_few_arrays_of_a_huge_shape_take_as_much_memory_as_they_have(tmp_path: Path) -> None:
    side = 1 << 13
    with grainstore.Writer(tmp_path / "huge.grain", {"mask": f"uint8[{side},{side}]", "image": "bytes"}, keyed=False) as writer:
        writer.write(mask=np.ones((side, side), np.uint8), image=b"")
        writer.write_batch(image=[b""] * 30)
    script = """
        import resource, sys, grainstore
        batch = grainstore.open(sys.argv[1]).get_batch(range(31))
        before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        masks = batch["mask"]
        after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
        assert masks.mask[1:, 0, 0].all() and not masks.mask[0].any() and (masks.data[0] == 1).all()
        print(*masks.shape, after - before)
    """
    ended = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script), str(tmp_path / "huge.grain")],
        capture_output=True, timeout=100, check=True,
    )
    count, rows, columns, kilobytes = map(int, ended.stdout.split())
    # All rows would be two gigabytes.
    assert (count, rows, columns) == (31, side, side) and kilobytes < 600 << 10


def test_columns_are_no_text(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "d.grain", {"image": "bytes"}) as writer:
        with pytest.raises(TypeError, match="key"):
            writer.write_batch(key="pq", image=[b"1", b"2"])
        writer.write_batch(key=["p", "q"], image=[b"1", b"2"])
        assert writer.count == 2
    assert writer.count == 2


@pytest.mark.parametrize("options", [{"transform": 3}, {"collate": "list"}, {"drop_last": "no"}])
def test_what_is_no_function_and_no_truth_is_refused(plain: grainstore.Dataset, options: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=next(iter(options))):
        Loader(plain, 10, **options)


def test_what_progress_raises_is_what_verify_raises(many_files: Path, tmp_path: Path) -> None:
    grainstore.convert(many_files, tmp_path / "d.grain")

    def stop(progress: grainstore._convert.Progress) -> None:
        raise RuntimeError("enough")

    with pytest.raises(RuntimeError, match="enough"):
        grainstore.verify(tmp_path / "d.grain", progress=stop)
