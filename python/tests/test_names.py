"""Names of numbers stay with their attribute, and numbers with their names, whatever is packed out of what."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pytest

import grainstore

Rows = Iterable[Mapping[str, Any]]


def write(path: Path, attributes: dict[str, str], metadata: dict[str, Any], rows: Rows) -> Path:
    with grainstore.Writer(path, {"image": "bytes", **attributes}, metadata=metadata) as writer:
        for number, row in enumerate(rows):
            writer.write(key=f"{path.stem}{number}", image=b"x%d" % number, **row)
    return path


def labels(path: Path, name: str = "label") -> dict[str, Any]:
    with grainstore.open(path, keys=True) as dataset:
        return {sample["key"]: sample[name] for sample in dataset}


def metadata(path: Path) -> dict[str, Any]:
    with grainstore.open(path) as dataset:
        return dataset.metadata


@pytest.mark.parametrize("names", [["crane", "dog", "crane"], [None, None, "a"], [7, "a", 7]])
def test_equal_lists_change_no_number_even_if_a_name_occurs_twice(tmp_path: Path, names: list[Any]) -> None:
    rows = [{"label": number} for number in (0, 1, 2)]
    one = write(tmp_path / "one.grain", {"label": "int64"}, {"class_names": names}, rows)
    two = write(tmp_path / "two.grain", {"label": "int64"}, {"class_names": [*names, "new"], "x": 1}, [*rows, {"label": 3}])
    grainstore.convert([one, two], tmp_path / "both.grain")
    expected = {f"one{n}": n for n in range(3)} | {f"two{n}": n for n in range(4)}
    assert labels(tmp_path / "both.grain") == expected
    assert metadata(tmp_path / "both.grain")["class_names"] == [*names, "new"]
    grainstore.append(two, one)
    assert labels(one) == expected


def test_names_that_occur_twice_in_lists_that_differ_are_refused(tmp_path: Path) -> None:
    one = write(tmp_path / "one.grain", {"label": "int64"}, {"class_names": ["crane", "dog", "crane"]}, [{"label": 0}])
    two = write(tmp_path / "two.grain", {"label": "int64"}, {"class_names": ["dog", "crane"]}, [{"label": 1}])
    unknown = 'unknown which numbers are the same: 0 and 2 are both called "crane"'
    for attempt in (lambda: grainstore.convert([one, two], tmp_path / "both.grain"), lambda: grainstore.append(two, one)):
        with pytest.raises(grainstore.Error, match=unknown):
            attempt()
    assert labels(one) == {"one0": 0} and not (tmp_path / "both.grain").exists()


@pytest.mark.parametrize("kind, values", [("bool", (True, False)), ("category", ("a", "b"))])
def test_only_whole_numbers_and_labels_have_names(tmp_path: Path, kind: str, values: tuple[Any, Any]) -> None:
    one = write(tmp_path / "one.grain", {"good": kind}, {"good_names": ["yes", "no"]}, [{"good": values[0]}])
    two = write(tmp_path / "two.grain", {"good": kind}, {"good_names": ["no", "yes"]}, [{"good": values[1]}])
    none = write(tmp_path / "none.grain", {"good": kind}, {}, [{"good": values[0]}])
    grainstore.append(two, one)
    grainstore.append(none, one)
    assert labels(one, "good") == {"one0": values[0], "two0": values[1], "none0": values[0]}


def test_numbers_are_renamed_before_they_are_fitted_to_the_type(tmp_path: Path) -> None:
    names = [f"c{number}" for number in range(120)]
    small = write(tmp_path / "small.grain", {"label": "int8"}, {"class_names": names}, [{"label": 0}])
    swapped = [f"z{number}" for number in range(120)] + names
    wide = write(tmp_path / "wide.grain", {"label": "int64"}, {"class_names": swapped[100:]}, [{"label": 100}, {"label": 139}])
    result = grainstore.append(wide, small, skip_bad=True)
    # 100 is c80; z100 to z119 have the numbers 120 to 139 there, and int8 ends at 127.
    assert labels(small) == {"small0": 0, "wide0": 80, "wide1": 119}
    assert result["skipped"] == []
    more = write(tmp_path / "more.grain", {"label": "int8"}, {"class_names": swapped[100:120]}, [{"label": 0}, {"label": 19}])
    result = grainstore.append(more, small, skip_bad=True)
    assert labels(small) == {"small0": 0, "wide0": 80, "wide1": 119, "more0": 120}
    assert len(result["skipped"]) == 1 and "int8 cannot hold" in str(result["skipped"][0])


def two_numbered(folder: Path) -> Path:
    return write(
        folder / "two.grain", {"label": "int64", "class": "int64"}, {"class_names": ["cat", "dog"]}, [{"label": 0, "class": 1}]
    )


def test_class_names_of_a_label_are_never_those_of_a_class(tmp_path: Path) -> None:
    two = two_numbered(tmp_path)
    grainstore.export(two, tmp_path / "two.parquet", to="parquet")
    for source in (two, tmp_path / "two.parquet"):
        grainstore.convert(source, tmp_path / "class.grain", exclude=["label"], overwrite=True)
        assert metadata(tmp_path / "class.grain") == {}
    result = grainstore.convert(two, tmp_path / "made.grain", transform=without_label, schema={"image": "bytes", "class": "int64"})
    assert metadata(tmp_path / "made.grain") == {} and result["warnings"] == []


def without_label(sample: dict[str, Any]) -> dict[str, Any]:
    return {name: value for name, value in sample.items() if name != "label"}


@pytest.mark.parametrize("packed", [False, True])
def test_names_go_with_an_attribute_that_is_renamed(tmp_path: Path, packed: bool) -> None:
    source = write(
        tmp_path / "source.grain", {"label": "int64", "good": "int64"}, {"class_names": ["cat", "dog"]}, [{"label": 0, "good": 1}]
    )
    whole = {"image": "image"}
    if packed:
        grainstore.export(source, tmp_path / "source.parquet", to="parquet")
        source, whole = tmp_path / "source.parquet", {"key": "key", "image": "image"}
    result = grainstore.convert(source, tmp_path / "a.grain", map={**whole, "target": "label", "good": "good"})
    assert metadata(tmp_path / "a.grain") == {"target_names": ["cat", "dog"]} and result["warnings"] == []
    result = grainstore.convert(source, tmp_path / "b.grain", map={**whole, "class": "label", "label": "good"})
    assert metadata(tmp_path / "b.grain") == {}
    assert any('the names of "class" (class_names)' in note or 'the names of "label"' in note for note in result["warnings"] + result["notes"])
    grainstore.convert(source, tmp_path / "c.grain", map={**whole, "label": "good"}, exclude=[] if packed else ["label"])
    assert metadata(tmp_path / "c.grain").get("class_names") is None


def test_a_new_name_takes_no_names_that_are_there_already(tmp_path: Path) -> None:
    user = {"class_names": ["cat", "dog"], "x_names": {"mine": 1}, "y_names": ["keep"]}
    source = write(tmp_path / "source.grain", {"label": "int64", "n": "int64"}, user, [{"label": 0, "n": 0}])
    for new in ({"x": "label"}, {"y": "label"}, {"y": "n"}):
        with pytest.raises(grainstore.Error, match="which are not its own: give the attribute another name"):
            grainstore.convert(source, tmp_path / "made.grain", map=new)
    grainstore.convert(source, tmp_path / "made.grain", map={"x": "n"})
    assert metadata(tmp_path / "made.grain") == user


def test_names_that_are_no_lists_and_differ_are_refused(tmp_path: Path) -> None:
    for name, member in (("label", "class_names"), ("genre", "genre_names")):
        one = write(tmp_path / f"{name}1.grain", {name: "int64"}, {member: {"0": "cat", "1": "dog"}}, [{name: 0}])
        two = write(tmp_path / f"{name}2.grain", {name: "int64"}, {member: {"0": "dog", "1": "cat"}}, [{name: 0}])
        with pytest.raises(grainstore.Error, match=f"its {member} are not those of .*they are no lists"):
            grainstore.convert([one, two], tmp_path / "both.grain")


def test_a_table_with_classes_leaves_the_names_of_others_alone(tmp_path: Path) -> None:
    source = write(tmp_path / "s.grain", {"class": "int64"}, {"class_names": ["cat", "dog"]}, [{"class": 0}, {"class": 1}])
    (tmp_path / "labels.csv").write_text("key,label\ns0,red\ns1,blue\n")
    result = grainstore.convert(source, tmp_path / "made.grain", attributes=tmp_path / "labels.csv", order="source")
    assert metadata(tmp_path / "made.grain") == {"class_names": ["blue", "red"]}
    assert ["class_names are the label's" in warning for warning in result["warnings"]] == [True]
    with grainstore.open(tmp_path / "made.grain") as made:
        assert [made.categories("label")[n] for n in made.column("label")] == ["red", "blue"]


def test_values_of_numpy_from_a_transform_keep_their_last_zeros(tmp_path: Path) -> None:
    source = write(tmp_path / "s.grain", {"n": "int64"}, {}, [{"n": 0}])
    schema = {"image": "bytes", "text": "str", "other": "str"}
    grainstore.convert(source, tmp_path / "made.grain", transform=with_zeros, schema=schema)
    with grainstore.open(tmp_path / "made.grain") as made:
        assert made[0] == {"image": b"a\0\0", "text": "ab\0", "other": "abc"}


def with_zeros(sample: dict[str, Any]) -> dict[str, Any]:
    import numpy as np

    return {"image": np.bytes_(b"a\0\0"), "text": np.str_("ab\0"), "other": np.array("abc")}
