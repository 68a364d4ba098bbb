"""Views: slices, selections and filters, and views of views, against a list that does the same."""

from __future__ import annotations

import random
from typing import Any

import made
import numpy as np
import pytest

import grainstore


def labels(view: grainstore.Dataset) -> list[int]:
    return [sample["label"] for sample in view]


def some_place(draw: random.Random, count: int) -> int | None:
    return draw.choice([None, draw.randint(-count - 3, count + 3)])


def some_slice(draw: random.Random, count: int) -> slice:
    return slice(some_place(draw, count), some_place(draw, count), draw.choice([None, 1, 1, 2, 7, -1, -3, 1000, -1000]))


@pytest.mark.parametrize("seed", range(30))
def test_views_of_views_are_what_lists_of_lists_are(plain: grainstore.Dataset, seed: int) -> None:
    draw = random.Random(seed)
    view, model = plain, list(range(len(plain)))
    for _ in range(5):
        match draw.randrange(4):
            case 0 | 1:
                part = some_slice(draw, len(model))
                view, model = view[part], model[part]
            case 2 if model:
                places = [draw.randint(-len(model), len(model) - 1) for _ in range(draw.randint(0, 2 * len(model)))]
                view, model = view.select(places), [model[place] for place in places]
            case _:
                low, high = sorted((draw.randrange(1000), draw.randrange(1000)))
                view = view.filter(f"label >= {low} and label <= {high}")
                model = [label for label in model if low <= label <= high]
        assert len(view) == len(model)
        assert view.ordinals.tolist() == model
        assert view.column("label").tolist() == model
    assert labels(view) == model
    assert view.get_batch(range(len(model)))["label"].tolist() == model
    for place in (0, len(model) // 2, len(model) - 1, -1, -len(model)):
        if model:
            assert view[place]["label"] == model[place]
    for place in (len(model), -len(model) - 1):
        with pytest.raises(IndexError):
            view[place]


def test_a_step_of_zero_and_bounds_that_are_no_numbers_are_refused(plain: grainstore.Dataset) -> None:
    with pytest.raises(ValueError, match="zero"):
        plain[::0]
    for wrong in (slice("a", "b"), slice(1.5, None)):
        with pytest.raises(TypeError):
            plain[wrong]


@pytest.mark.parametrize(
    "indices",
    [
        [3, 1, -1, 3],
        (3, 1, -1, 3),
        np.array([3, 1, -1, 3]),
        np.array([3, 1, -1, 3], np.int8),
        np.array([3, 0, 1, 0, -1, 0, 3, 0])[::2],
        np.array([3, 1, -1, 3]).astype(">i4"),
        [np.int64(3), np.uint8(1), -1, 3],
    ],
    ids=str,
)
def test_numbers_of_several_samples_are_lists_or_arrays(plain: grainstore.Dataset, indices: Any) -> None:
    assert labels(plain.select(indices)) == [3, 1, 999, 3]
    assert plain.get_batch(indices).ordinals.tolist() == [3, 1, 999, 3]
    assert [sample["label"] for sample in plain.__getitems__(indices)] == [3, 1, 999, 3]


def test_a_range_selects(plain: grainstore.Dataset) -> None:
    assert labels(plain.select(range(10, 0, -3))) == [10, 7, 4, 1]
    assert labels(plain.select([])) == []
    assert labels(plain.select(np.array([]))) == []


def test_a_mask_selects_where_it_is_true(plain: grainstore.Dataset) -> None:
    mask = plain.column("label") % 100 == 3
    assert labels(plain.select(mask)) == [3, 103, 203, 303, 403, 503, 603, 703, 803, 903]
    assert labels(plain[100:200].select(mask[:100])) == [103]
    assert labels(plain.select(np.zeros(1000, bool))) == []


@pytest.mark.parametrize("indices", [[1.0], ["a"], np.array([1.0]), "abc", {1, 2}, None, [None], [[1, 2]]])
def test_what_are_no_numbers_is_a_type_error(plain: grainstore.Dataset, indices: Any) -> None:
    with pytest.raises(TypeError):
        plain.select(indices)
    with pytest.raises(TypeError):
        plain.get_batch(indices)


def test_numbers_of_samples_that_are_not_there_are_index_errors(plain: grainstore.Dataset) -> None:
    for indices in ([1000], [0, -1001], np.array([5, 1000])):
        for ask in (plain.select, plain.get_batch, plain.__getitems__):
            with pytest.raises(grainstore.NoSuchOrdinal):
                ask(indices)
    with pytest.raises(grainstore.NoSuchOrdinal):
        plain[10:20].get_batch([10])


def test_a_filter_is_kept_in_the_order_of_the_view(plain: grainstore.Dataset) -> None:
    assert labels(plain.filter("label == 3 or label > 997")) == [3, 998, 999]
    assert labels(plain[::-1].filter("label == 3 or label > 997")) == [999, 998, 3]
    assert labels(plain.select([5, 3, 5]).filter("label == 5")) == [5, 5]
    assert labels(plain.filter("label >= 10").filter("label < 12")[::-1]) == [11, 10]
    assert len(plain.filter("label < 0")) == 0


def test_an_invalid_filter_is_reported_with_its_position(ds: grainstore.Dataset) -> None:
    for expression in ("", "label >", "nope == 3", "image == 3", "label == 'a' and", "label ! 3"):
        with pytest.raises(grainstore.InvalidExpression) as raised:
            ds.filter(expression)
        assert isinstance(raised.value, ValueError)
    with pytest.raises(grainstore.InvalidExpression, match="present"):
        ds.filter("level == 3")
    assert ds.filter("level is present and level == 3").ordinals.tolist() == [3, 259]
    with pytest.raises(TypeError):
        ds.filter(3)  # type: ignore[arg-type]


def test_a_filter_compares_names_of_classes_and_keys(tmp_path: Any) -> None:
    with grainstore.Writer(
        tmp_path / "d.grain", {"image": "bytes", "label": "int64"}, metadata={"class_names": ["cat", "dog"]}
    ) as writer:
        for number in range(10):
            writer.write(key=f"{number}.jpg", image=b"", label=number % 2)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds.filter("label == 'dog'").ordinals.tolist() == [1, 3, 5, 7, 9]
        assert ds.filter("key == '4.jpg'").ordinals.tolist() == [4]
        parts = ds.filter("key_hash < 0.5"), ds.filter("key_hash >= 0.5")
        assert sorted([*parts[0].ordinals, *parts[1].ordinals]) == list(range(10))


def test_a_filter_compares_names_of_any_numbers(tmp_path: Any) -> None:
    schema = {"image": "bytes", "fine_label": "int16", "width": "int16"}
    names = ["ant", "bee", "cow"]
    with grainstore.Writer(tmp_path / "d.grain", schema, keyed=False, metadata={"fine_label_names": names}) as writer:
        for number in range(9):
            writer.write(image=b"", fine_label=number % 3, width=number)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds.filter("fine_label in ('bee', 'cow')").ordinals.tolist() == [1, 2, 4, 5, 7, 8]
        assert ds.categories("fine_label") == names
        bees = ds[1:].filter("fine_label == 'bee'")
        assert [bees.categories("fine_label")[number] for number in bees.column("fine_label")] == ["bee"] * 3
        with pytest.raises(grainstore.Error, match=r'no "dog" .* \(there are: ant, bee, cow\); categories\(\) lists'):
            ds.filter("fine_label == 'dog'")
        with pytest.raises(grainstore.Error, match='no list "width_names"'):
            ds.filter("width == 'ant'")
        with pytest.raises(grainstore.Error, match="not category"):
            ds.categories("width")


def test_a_view_finds_the_keys_of_its_own_samples_alone(ds: grainstore.Dataset) -> None:
    for view in (ds[10:20], ds.select(range(10, 20)), ds.filter("label >= 10 and label < 20"), ds[19:9:-1]):
        assert made.key(12) in view
        assert view[made.key(12)]["label"] == 12
        assert view.find(made.key(12)) == 12
        assert made.key(9) not in view
        assert view.find(made.key(9)) is None
        with pytest.raises(grainstore.NoSuchKey):
            view[made.key(20)]


def test_an_empty_view_is_a_dataset_of_no_samples(ds: grainstore.Dataset) -> None:
    for view in (ds[5:5], ds.select([]), ds.filter("label < 0"), ds[5:5][::-1]):
        assert len(view) == 0
        assert list(view) == []
        assert view.ordinals.tolist() == []
        assert view.keys().tolist() == []
        assert view.column("label").tolist() == []
        assert view.column("level").tolist() == []
        assert view.column("weight").dtype == np.float32
        assert view.schema == made.SCHEMA
        assert made.key(5) not in view
        batch = view.get_batch([])
        assert len(batch) == 0
        assert batch["image"].tolist() == []
        assert batch["text"] == []
        assert (batch["vector"].shape, batch["nothing"].shape) == ((0, 2, 3), (0, 0, 4))
        with pytest.raises(IndexError):
            view[0]
        with pytest.raises(grainstore.InvalidOption):
            grainstore.Loader(view)


def test_a_view_outlives_the_name_of_what_it_is_a_view_of(made_path: Any) -> None:
    view = grainstore.open(made_path)[10:20]
    assert view[0]["label"] == 10
    assert "10 of 300" in repr(view)


def test_keys_are_a_sequence(ds: grainstore.Dataset) -> None:
    wanted = [made.key(number) for number in range(made.COUNT)]
    keys = ds.keys()
    assert len(keys) == made.COUNT
    assert list(keys) == keys.tolist() == wanted
    assert list(reversed(keys)) == wanted[::-1]
    assert (keys[0], keys[-1], keys[np.int64(49)]) == (wanted[0], wanted[-1], wanted[49])
    assert wanted[49] in keys
    assert "nope" not in keys
    for place in (made.COUNT, -made.COUNT - 1, -made.COUNT - 2, -2 * made.COUNT):
        with pytest.raises(IndexError):
            keys[place]
    for wrong in ("a", 1.0, None):
        with pytest.raises(TypeError):
            keys[wrong]  # type: ignore[index]
    for view in (ds[65:3:-7], ds.select([5, 5, -1]), ds.filter("label > 100 and label < 170"), ds[60:200]):
        assert list(view.keys()) == view.keys().tolist() == [wanted[number] for number in view.ordinals]
        assert view.keys()[-1] == wanted[view.ordinals[-1]]
        assert wanted[0] not in view.keys()


def test_a_mask_filters_as_an_expression_does(ds: grainstore.Dataset) -> None:
    for expression, mask in (
        ("label < 20", ds.column("label") < 20),
        ("level is present and level == 0", ds.column("level") == 0),
        ("level is present and level != 0", ds.column("level") != 0),
    ):
        wanted = ds.filter(expression)
        for view in (ds.filter(mask), ds.select(mask), ds.filter(np.ma.filled(mask, False).tolist())):
            assert view.ordinals.tolist() == wanted.ordinals.tolist()
    part = ds[10:20].filter(ds[10:20].column("label") >= 15)
    assert part.ordinals.tolist() == [15, 16, 17, 18, 19]


def test_what_is_no_filter_is_refused_with_what_is_one(ds: grainstore.Dataset) -> None:
    for given in ([1, 2], [], np.arange(len(ds)), lambda sample: True, None):
        with pytest.raises(TypeError, match=r'filter takes an expression.*mask.*select'):
            ds.filter(given)  # type: ignore[arg-type]
    with pytest.raises(grainstore.InvalidOption, match="a mask of 3 values"):
        ds.filter(np.ones(3, bool))
    for shape in ((len(ds), 1), (1, len(ds)), ()):
        with pytest.raises(grainstore.InvalidOption) as refused:
            ds.filter(np.ones(shape, bool))
        assert str(refused.value).startswith(f"a mask of shape {shape}, expected shape ({len(ds)},)")
    with pytest.raises(grainstore.InvalidOption, match="some are masked"):
        ds.select(np.ma.masked_array([1, 2], mask=[False, True]))
