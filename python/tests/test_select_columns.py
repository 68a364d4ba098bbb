"""Views of some columns: samples, batches and loaders have these, and everything else is as without."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import made
import numpy as np
import pytest

import grainstore

ALL = list(made.SCHEMA)


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> grainstore.Dataset:
    path = tmp_path_factory.mktemp("columns") / "numbered.grain"
    made.write(path)
    return grainstore.open(path, keys=True)


def wanted(number: int, names: list[str]) -> dict[str, Any]:
    sample = {"key": made.key(number), **made.sample(number)}
    return {name: value for name, value in sample.items() if name in names}


@pytest.mark.parametrize(
    "names",
    [["image"], ["label"], ["key"], ["level", "text"], ["vector", "key", "good"], ["key", "weight", "level"], ["key", *ALL]],
)
@pytest.mark.parametrize("payload", ["bytes", "memoryview", "numpy"])
def test_samples_and_batches_have_the_columns_in_the_order_of_the_dataset(
    dataset: grainstore.Dataset, names: list[str], payload: Any
) -> None:
    dataset = grainstore.open(dataset.paths, keys=True, payload=payload)
    view = dataset.select_columns(names)
    assert len(view) == made.COUNT
    assert view.schema == {name: kind for name, kind in made.SCHEMA.items() if name in names}
    batch = view.get_batch([3, 5, 8])
    whole = dataset.get_batch([3, 5, 8])
    assert list(batch) == batch.keys() == list(wanted(3, names))
    assert len(batch.values()) == len(batch.items()) == len(names) == len(batch.to_dict())
    for name in names:
        np.testing.assert_equal(list(batch[name]), list(whole[name]))
    for number, sample in [(3, view[3]), (5, batch[1]), (8, view.__getitems__([8])[0]), (0, next(iter(view)))]:
        plain = {name: bytes(value) if name == "image" else value for name, value in sample.items()}
        made.assert_same(plain, wanted(number, names))


def test_a_sample_with_one_field_may_leave_out_the_field_or_attributes(plain: grainstore.Dataset) -> None:
    assert plain.select_columns(["image"])[7] == {"image": made.plain_image(7)}
    assert plain.select_columns(["label"])[7] == {"label": 7}
    assert plain.select_columns(["label"]).get_batch([7]).tolist() == [{"label": 7}]


def test_views_of_views_keep_the_columns(dataset: grainstore.Dataset) -> None:
    view = dataset.select_columns(["text", "label"])
    for same in (view[10:12], view.select([10, 11]), view.filter("label in 10, 11"), dataset[10:12].select_columns(("text", "label"))):
        assert [sample for sample in same] == [wanted(10, ["text", "label"]), wanted(11, ["text", "label"])]
    assert list(view.select_columns(["label"])[0]) == ["label"]
    with pytest.raises(grainstore.NoSuchName, match=r'no field or attribute "image" \(there are: text, label\)'):
        view.select_columns(["image"])
    assert list(dataset[0]) == ["key", *ALL]


def test_a_filter_and_a_file_know_the_other_columns(dataset: grainstore.Dataset) -> None:
    view = dataset.select_columns(["text"]).filter("label == 9")
    assert list(view) == [{"text": "№9"}]
    with view.open(0, "image") as file:
        assert file.read() == made.sample(9)["image"]
    with view.open(made.key(9)) as file:
        assert file.read() == "№9".encode()
    with pytest.raises(grainstore.NoSuchName, match=r'no attribute "label" \(there are: \)'):
        view.column("label")


def test_wrong_names_are_refused(dataset: grainstore.Dataset) -> None:
    with pytest.raises(grainstore.NoSuchName, match=r'no field or attribute "lable" \(there are: key, image, text, .*level\)'):
        dataset.select_columns(["lable"])
    with pytest.raises(TypeError, match="takes names, .*not the one name"):
        dataset.select_columns("label")
    with pytest.raises(grainstore.InvalidOption, match="no column is named"):
        dataset.select_columns([])
    without_keys = grainstore.open(dataset.paths)
    with pytest.raises(grainstore.NoSuchName, match='no field or attribute "key"'):
        without_keys.select_columns(["key"])


def test_a_view_pickles_with_its_columns(dataset: grainstore.Dataset) -> None:
    view = dataset[20:40].select_columns(["key", "label"])
    again = pickle.loads(pickle.dumps(view))
    assert list(again) == list(view) and list(again[0]) == ["key", "label"]
    assert repr(again) == repr(view) and repr(view).endswith("samples of key, label>")


@pytest.mark.parametrize("batch_size", [32, None])
def test_a_loader_reads_the_same_order_and_states_are_interchangeable(dataset: grainstore.Dataset, batch_size: int | None) -> None:
    whole = grainstore.Loader(dataset, batch_size, seed=3)
    narrow = grainstore.Loader(dataset.select_columns(["label", "vector"]), batch_size, seed=3)
    samples = [sample for batch in whole for sample in (batch.tolist() if batch_size else [batch])]
    expected = [sample["label"] for sample in samples]
    elements = iter(narrow)
    found = [next(elements) for _ in range(4)]
    state = narrow.state_dict()
    rest = grainstore.Loader(dataset, batch_size, seed=3)
    rest.load_state_dict(state)
    found += list(rest)
    assert all(list(element) == ["vector", "label"] for element in found[:4])
    assert [int(label) for element in found for label in np.atleast_1d(element["label"])] == expected


def test_a_transform_gets_the_columns_alone(dataset: grainstore.Dataset) -> None:
    loader = grainstore.Loader(dataset.select_columns(["label"]), 50, transform=lambda sample: {**sample, "names": ",".join(sample)})
    for batch in loader:
        assert set(batch["names"]) == {"label"}


def test_an_export_does_not_write_what_the_view_leaves_out(dataset: grainstore.Dataset, tmp_path: Path) -> None:
    with pytest.raises(grainstore.InvalidOption, match="the view has no field, and an export needs one"):
        grainstore.export(dataset.select_columns(["label"]), tmp_path / "d.tar", to="tar")
    assert not list(tmp_path.iterdir())
    narrow = dataset.select_columns(["label", "vector"])[:3]
    assert grainstore.export(narrow, tmp_path / "d.parquet", to="parquet")["samples"] == 3
    grainstore.convert(tmp_path / "d.parquet", tmp_path / "d.grain", order="source")
    with grainstore.open(tmp_path / "d.grain") as again:
        assert set(again.schema) == {"label", "vector"}
        assert list(again.keys()) == list(dataset.keys())[:3]
        assert again.column("label").tolist() == dataset.column("label")[:3].tolist()
