"""Opening: paths, ways of reading, several datasets as one, generations, closing."""

from __future__ import annotations

from itertools import product
from pathlib import Path
from typing import Any

import made
import pytest

import grainstore


@pytest.mark.parametrize("options", [{"io": io, "engine": engine} for io, engine in product(
    ("auto", "direct", "buffered", "mapped"), ("auto", "uring", "pread")
)])
def test_every_way_of_reading_gives_the_same(made_path: Path, options: dict[str, Any]) -> None:
    try:
        opened = grainstore.open(made_path, **options)
    except grainstore.ReadFailed:
        # Some kernels and containers have no io_uring, and report that.
        assert options["engine"] == "uring"
        return
    with opened as ds:
        for number, sample in enumerate(ds):
            made.assert_same(sample, made.sample(number))
        for number in (0, 17, -1):
            made.assert_same(ds[number], made.sample(number % made.COUNT))
        images = ds.get_batch([5, 200, 5])["image"].tolist()
        assert images == [made.sample(number)["image"] for number in (5, 200, 5)]
        seen = [label for batch in grainstore.Loader(ds, 64) for label in batch["label"].tolist()]
        assert sorted(seen) == list(range(made.COUNT))


@pytest.mark.parametrize("io", ["direct", "buffered", "mapped"])
@pytest.mark.parametrize("keys", [False, True])
def test_samples_of_one_field_are_the_same_read_once_or_again(tmp_path: Path, io: Any, keys: bool) -> None:
    lengths = [0, 1, 500, 5000, 16 << 10, 20_000, 300_000]
    path = tmp_path / "one.grain"
    with grainstore.Writer(path, {"image": "bytes", "label": "int64", "level": "float32"}) as writer:
        for number, length in enumerate(lengths):
            writer.write(key=f"k{number}", image=bytes([number]) * length, label=None if number % 3 == 1 else -number)
    with grainstore.open(path, io=io, keys=keys) as ds:
        for _ in range(3):
            for number, length in enumerate(lengths):
                wanted = {
                    **({"key": f"k{number}"} if keys else {}),
                    "image": bytes([number]) * length,
                    "label": None if number % 3 == 1 else -number,
                    "level": None,
                }
                made.assert_same(ds[number], wanted)
                made.assert_same(ds.__getitems__([number])[0], wanted)


def test_a_path_is_text_or_a_path_object(made_path: Path) -> None:
    for path in (str(made_path), made_path, [made_path], (str(made_path),)):
        with grainstore.open(path) as ds:
            assert len(ds) == made.COUNT
            assert ds.paths == [str(made_path)]


def test_what_is_stored_with_a_dataset_is_returned(ds: grainstore.Dataset, plain: grainstore.Dataset) -> None:
    assert ds.schema == made.SCHEMA
    assert ds.metadata == {"class_names": ["cat", "dog"]}
    assert ds.is_keyed
    assert not plain.is_keyed
    assert ds.fingerprint != plain.fingerprint
    stats = ds.stats()
    assert stats["samples"] == made.COUNT
    assert stats["segments"] == 1
    assert stats["generation"] == 0
    assert stats["io"] in ("direct", "buffered", "mapped")


def test_a_compressed_dataset_reads_the_same(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "lz4.grain", {"image": "bytes", "label": "int64"}, compress="lz4") as writer:
        for label in range(200):
            writer.write(key=str(label), image=bytes([label]) * 5000, label=label)
    with grainstore.open(tmp_path / "lz4.grain") as ds:
        stats = ds.stats()
        assert stats["stored_bytes"] < stats["payload_bytes"] == 200 * 5000
        assert [sample["image"] for sample in ds] == [bytes([label]) * 5000 for label in range(200)]
        assert ds["7"]["image"] == bytes([7]) * 5000
        for batch in grainstore.Loader(ds, 32):
            assert batch["image"].tolist() == [bytes([label]) * 5000 for label in batch["label"]]


def test_several_datasets_are_read_end_to_end(tmp_path: Path) -> None:
    paths = [tmp_path / f"{part}.grain" for part in range(3)]
    for path, (start, stop) in zip(paths, ((0, 10), (10, 11), (11, 40)), strict=True):
        made.write(path, start, stop)
    with grainstore.open(paths, keys=True) as ds:
        assert len(ds) == 40
        assert ds.paths == [str(path) for path in paths]
        for number, sample in enumerate(ds):
            made.assert_same(sample, {"key": made.key(number)} | made.sample(number))
        assert ds[made.key(10)]["label"] == 10
        assert ds.column("label").tolist() == list(range(40))
        assert ds.filter("label >= 9 and label < 12").ordinals.tolist() == [9, 10, 11]
        assert ds.keys().tolist() == [made.key(number) for number in range(40)]
        assert ds.get_batch([39, 0, 10])["text"] == [made.sample(number)["text"] for number in (39, 0, 10)]
        seen = [label for batch in grainstore.Loader(ds, 7) for label in batch["label"].tolist()]
        assert sorted(seen) == list(range(40))


def test_datasets_of_other_schemas_are_not_read_as_one(made_path: Path, plain_path: Path) -> None:
    with pytest.raises(grainstore.InvalidOption):
        grainstore.open([made_path, plain_path])


def test_who_has_a_dataset_open_keeps_its_generation(tmp_path: Path) -> None:
    path = tmp_path / "grows.grain"
    made.write(path, 0, 20)
    before = grainstore.open(path)
    with grainstore.Writer(path, append=True) as writer:
        for number in range(20, 30):
            writer.write(key=made.key(number), **made.sample(number))
    after = grainstore.open(path)
    assert len(before) == 20
    assert made.key(25) not in before
    assert [sample["label"] for sample in before] == list(range(20))
    assert len(after) == 30
    made.assert_same(after[made.key(25)], made.sample(25))
    assert after.stats()["generation"] == 1
    assert before.fingerprint != after.fingerprint
    with grainstore.open(path, generation=0) as first:
        assert first.fingerprint == before.fingerprint
        assert len(first) == 20
    with pytest.raises(grainstore.InvalidOption):
        grainstore.open(path, generation=2)


def test_a_closed_dataset_reports_that_it_is_closed(made_path: Path) -> None:
    ds = grainstore.open(made_path)
    view, samples, keys = ds[3:9], iter(ds), ds.keys()
    ds.close()
    ds.close()
    assert "closed" in repr(ds)
    uses: list[Any] = [
        lambda: ds[0],
        lambda: len(ds),
        lambda: view[0],
        lambda: ds[made.key(0)],
        lambda: ds[1:2],
        lambda: ds.get_batch([0]),
        lambda: ds.column("label"),
        lambda: ds.filter("label == 3"),
        lambda: ds.select([1]),
        lambda: ds.schema,
        lambda: ds.fingerprint,
        lambda: made.key(0) in ds,
        lambda: next(samples),
        lambda: keys[0],
        lambda: list(keys),
        lambda: iter(ds),
        lambda: list(grainstore.Loader(ds)),
    ]
    for use in uses:
        with pytest.raises(grainstore.Closed):
            use()


def test_a_failure_to_open_is_explained(tmp_path: Path, made_path: Path, plain_path: Path) -> None:
    (tmp_path / "large.txt").write_bytes(b"no dataset\n" * 1000)
    for path, kind in (
        (tmp_path / "absent", grainstore.DatasetNotFound),
        (tmp_path, grainstore.NotADataset),
        (tmp_path / "large.txt", grainstore.NotADataset),
    ):
        with pytest.raises(kind) as raised:
            grainstore.open(path)
        assert str(path) in str(raised.value)
        assert raised.value.path == str(path)
    with pytest.raises(FileNotFoundError):
        grainstore.open(tmp_path / "absent")
    wrong: list[dict[str, Any]] = [
        {"io": "fast"},
        {"engine": "steam"},
        {"payload": "list"},
        {"timeout_s": 0},
        {"timeout_s": -1},
        {"timeout_s": float("nan")},
    ]
    for options in wrong:
        with pytest.raises(grainstore.InvalidOption):
            grainstore.open(made_path, **options)
    with pytest.raises(grainstore.InvalidOption):
        grainstore.open([])
    with pytest.raises(TypeError):
        grainstore.open(3)  # type: ignore[arg-type]
    with pytest.raises(grainstore.InvalidOption, match="keys"):
        grainstore.open(plain_path, keys=True)
