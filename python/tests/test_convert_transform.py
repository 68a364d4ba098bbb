"""Packing with a function of the samples: `convert(..., transform=f)`."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
import time
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore
from grainstore import convert

COUNT = 60


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    for number in range(COUNT):
        file = path / ("cat", "dog")[number % 2] / f"{number:02}.bin"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_bytes(bytes([number]) * (number + 1))
    return path


def number_of(sample: dict[str, Any]) -> int:
    return int(sample["key"][-6:-4])


def doubled(sample: dict[str, Any]) -> dict[str, Any]:
    """What the tests make of a sample: another field, an array, and what was there."""
    pixels = np.frombuffer(sample["data"], np.uint8)
    return {"twice": sample["data"] * 2, "sum": float(pixels.sum()), "pixels": pixels, "label": sample["label"]}


def without_odd(sample: dict[str, Any]) -> dict[str, Any] | None:
    return doubled(sample) if number_of(sample) % 2 == 0 else None


def fails_at_seven(sample: dict[str, Any]) -> dict[str, Any]:
    if number_of(sample) == 7:
        raise ValueError("seven is bad")
    return doubled(sample)


def dies_at_forty(sample: dict[str, Any]) -> dict[str, Any]:
    if number_of(sample) == 40:
        os.kill(os.getpid(), signal.SIGKILL)
    return doubled(sample)


def rekeyed(sample: dict[str, Any]) -> dict[str, Any]:
    return {"key": f"new/{number_of(sample)}", "data": sample["data"]}


def forgets_at_fifty(sample: dict[str, Any]) -> dict[str, Any]:
    return {"label": "fifty" if number_of(sample) == 50 else 1, "data": sample["data"]}


def relabelled(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "label": 1 - sample["label"]}


def numbered(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "label": number_of(sample)}


def negative_at_seven(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "label": -2 if number_of(sample) == 7 else sample["label"]}


def without_label_of_odd(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "label": -1 if number_of(sample) % 2 else sample["label"]}


def without_label(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "size": len(sample["data"])}


def halves(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "half": number_of(sample) // 30, "label": sample["label"]}


def rekeyed_halves(sample: dict[str, Any]) -> dict[str, Any]:
    return {**halves(sample), "key": f"again/{number_of(sample)}"}


def returns_a_number(sample: dict[str, Any]) -> Any:
    return number_of(sample)


def files_of(path: Path) -> dict[str, bytes]:
    return {file.name: file.read_bytes() for file in path.iterdir()}


def test_samples_are_those_that_the_function_makes(folder: Path, tmp_path: Path) -> None:
    summary = convert(folder, tmp_path / "d.grain", transform=doubled, workers=2)
    assert (summary["samples"], summary["left_out"]) == (COUNT, 0)
    with grainstore.open(tmp_path / "d.grain", keys=True) as ds:
        assert ds.schema == {"twice": "bytes", "pixels": "uint8[]", "sum": "float64", "label": "int64"}
        assert ds.metadata["class_names"] == ["cat", "dog"]
        for sample in ds:
            number = number_of(sample)
            assert sample["twice"] == bytes([number]) * (2 * number + 2)
            assert sample["pixels"].tolist() == [number] * (number + 1)
            assert (sample["sum"], sample["label"]) == (number * (number + 1), number % 2)


def test_the_number_of_workers_changes_no_byte(folder: Path, tmp_path: Path) -> None:
    for workers in (1, 3):
        convert(folder, tmp_path / str(workers), transform=doubled, workers=workers)
    assert files_of(tmp_path / "1") == files_of(tmp_path / "3")


def test_samples_that_the_function_does_not_want_are_left_out_and_counted(folder: Path, tmp_path: Path) -> None:
    summary = convert(folder, tmp_path / "d.grain", transform=without_odd, workers=2)
    assert (summary["samples"], summary["left_out"], summary["skipped"]) == (COUNT // 2, COUNT // 2, [])
    with grainstore.open(tmp_path / "d.grain", keys=True) as ds:
        assert sorted(number_of(sample) for sample in ds) == list(range(0, COUNT, 2))


def fails_while_the_flag_is_up(sample: dict[str, Any]) -> dict[str, Any] | None:
    flag = Path(os.environ["FLAG"])
    if number_of(sample) == 55 and flag.exists():
        # The writer has finished some segments by then; it takes samples faster than it writes them.
        deadline = time.monotonic() + 60
        while len(list(flag.parent.glob("pieces.partial/*.seg"))) < 5 and time.monotonic() < deadline:
            os.sched_yield()
        raise ValueError("not today")
    return {"data": sample["data"] * 80_000} if number_of(sample) % 2 == 0 else None


def first_bytes(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"][:1]}


def test_a_conversion_that_failed_resumes_to_the_same_bytes(
    folder: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    flag = tmp_path / "flag"
    monkeypatch.setenv("FLAG", str(flag))
    options: dict[str, Any] = {"workers": 2, "segment_bytes": 1 << 20, "order": "source"}
    convert(folder, tmp_path / "whole", transform=fails_while_the_flag_is_up, **options)
    flag.touch()
    with pytest.raises(grainstore.TransformFailed, match="not today"):
        convert(folder, tmp_path / "pieces", transform=fails_while_the_flag_is_up, **options)
    flag.unlink()
    # Another function makes other samples.
    with pytest.raises(grainstore.Error, match='cannot be resumed: it was started with "transform: .*now "transform: .*first'):
        convert(folder, tmp_path / "pieces", transform=first_bytes, resume=True, **options)
    # What differs is named, in plain words, and nothing else is.
    same: dict[str, Any] = {"transform": fails_while_the_flag_is_up, "resume": True, **options}
    other: list[tuple[dict[str, Any], str]] = [
        ({"exclude": ["label"]}, 'it was started with "exclude: none", now "exclude: label"'),
        ({"no_labels": True}, 'it was started with "names of folders: labels", now "names of folders: no labels"'),
    ]
    for option, message in other:
        with pytest.raises(grainstore.Error, match=message):
            convert(folder, tmp_path / "pieces", **same, **option)
    summary = convert(folder, tmp_path / "pieces", transform=fails_while_the_flag_is_up, resume=True, **options)
    assert 0 < summary["resumed_samples"] < summary["samples"] == COUNT // 2
    assert summary["left_out"] == COUNT // 2
    assert files_of(tmp_path / "pieces") == files_of(tmp_path / "whole")


def test_an_exception_names_the_sample_and_its_file(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(grainstore.TransformFailed, match="seven is bad") as raised:
        convert(folder, tmp_path / "d.grain", transform=fails_at_seven, workers=2)
    assert raised.value.key == b"dog/07.bin"
    assert "07.bin" in str(raised.value) and "ValueError" in str(raised.value)
    assert "fails_at_seven" in str(raised.value.__cause__)
    assert not (tmp_path / "d.grain").exists()


def test_skip_bad_lists_the_samples_that_the_function_refused(folder: Path, tmp_path: Path) -> None:
    summary = convert(folder, tmp_path / "d.grain", transform=fails_at_seven, workers=2, skip_bad=True)
    assert summary["samples"] == COUNT - 1
    [(file, why)] = summary["skipped"]
    assert file.endswith("07.bin") and "seven is bad" in why


def test_a_worker_that_is_killed_ends_the_conversion(folder: Path, tmp_path: Path) -> None:
    for skip_bad in (False, True):
        with pytest.raises(grainstore.ConvertFailed, match="signal 9") as raised:
            convert(folder, tmp_path / "d.grain", transform=dies_at_forty, workers=2, skip_bad=skip_bad, restart=True)
        assert raised.value.key == b"cat/40.bin"
        assert not (tmp_path / "d.grain").exists()


def test_results_have_their_own_keys_if_they_give_one(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain", transform=rekeyed, workers=1)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds["new/17"]["data"] == bytes([17]) * 18


def test_a_schema_may_be_given_and_metadata_replaced(folder: Path, tmp_path: Path) -> None:
    schema = {"data": "bytes", "label": "uint8"}
    convert(folder, tmp_path / "d.grain", transform=dict, workers=1, schema=schema, metadata={"by": "hand"})
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert (ds.schema, ds.metadata) == (schema, {"by": "hand"})


def test_a_value_of_another_type_than_the_first_ones_names_its_sample(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(grainstore.Error, match=r"50\.bin.*label: expected int64, found str"):
        convert(folder, tmp_path / "d.grain", transform=forgets_at_fifty, workers=2)


def test_a_function_that_returns_something_else_is_refused(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(grainstore.TransformFailed, match="it returned int, expected a dictionary"):
        convert(folder, tmp_path / "d.grain", transform=returns_a_number, workers=2)


def test_append_makes_samples_of_the_schema_of_the_dataset(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain", transform=rekeyed, workers=1)
    more = tmp_path / "more"
    (more / "x").mkdir(parents=True)
    (more / "x/77.bin").write_bytes(b"more")
    summary = grainstore.append(more, tmp_path / "d.grain", transform=rekeyed, workers=1)
    assert summary["samples"] == 1
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert len(ds) == COUNT + 1
        assert ds["new/77"]["data"] == b"more"


def test_arguments_that_describe_a_transform_need_one(folder: Path, tmp_path: Path) -> None:
    with pytest.raises(grainstore.InvalidOption, match="there is no transform"):
        convert(folder, tmp_path / "d.grain", workers=2)
    with pytest.raises(grainstore.InvalidOption, match="workers is 0"):
        convert(folder, tmp_path / "d.grain", transform=dict, workers=0)
    not_a_function: Any = 3
    with pytest.raises(TypeError, match="transform is a function"):
        convert(folder, tmp_path / "d.grain", transform=not_a_function)


def test_spawned_workers_import_the_function(folder: Path, tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text(
        textwrap.dedent("""
        import multiprocessing, sys, grainstore

        def longer(sample):
            return {"data": sample["data"] + b"!"}

        if __name__ == "__main__":
            multiprocessing.set_start_method("spawn")
            print(grainstore.convert(sys.argv[1], sys.argv[2], transform=longer, workers=2)["samples"])
            try:
                grainstore.convert(sys.argv[1], sys.argv[2] + "2", transform=lambda sample: sample)
            except grainstore.InvalidOption as error:
                print(error)
    """)
    )
    command = [sys.executable, str(script), str(folder), str(tmp_path / "d.grain")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=100, check=True)
    lines = done.stdout.splitlines()
    assert lines[0] == str(COUNT)
    assert "define it at the top of a module" in lines[1]


def test_names_of_numbers_stay_where_the_function_does_not_touch_them(folder: Path, tmp_path: Path) -> None:
    for function in (doubled, without_label_of_odd):
        summary = convert(folder, tmp_path / "d.grain", transform=function, workers=1, overwrite=True)
        assert summary["warnings"] == []
        assert grainstore.open(tmp_path / "d.grain").metadata == {"class_names": ["cat", "dog"]}


def test_changed_numbers_under_the_names_of_the_source_cause_a_warning(folder: Path, tmp_path: Path) -> None:
    summary = convert(folder, tmp_path / "d.grain", transform=relabelled, workers=1)
    (warning,) = summary["warnings"]
    assert 'the transform changed numbers of "label"' in warning
    assert 'metadata={"class_names": [...]}' in warning
    names = {"class_names": ["dog", "cat"]}
    summary = convert(folder, tmp_path / "own.grain", transform=relabelled, workers=1, metadata=names)
    assert summary["warnings"] == []
    with grainstore.open(tmp_path / "own.grain", keys=True) as ds:
        assert all(ds.metadata["class_names"][sample["label"]] == sample["key"][:3] for sample in ds)


def test_numbers_without_a_name_are_refused_and_name_the_sample(folder: Path, tmp_path: Path) -> None:
    wanted = r'"(cat|dog)/(\d\d).bin": the transform gave label \2, and there are 2 names .*metadata=\{"class_names"'
    with pytest.raises(grainstore.ConvertFailed, match=wanted):
        convert(folder, tmp_path / "d.grain", transform=numbered, workers=1)
    with pytest.raises(grainstore.ConvertFailed, match=r"dog/07.bin.*label -2, and there are 2 names"):
        convert(folder, tmp_path / "d.grain", transform=negative_at_seven, workers=1)
    summary = convert(folder, tmp_path / "d.grain", transform=negative_at_seven, workers=1, skip_bad=True)
    assert summary["samples"] == COUNT - 1 and "label -2" in summary["skipped"][0][1]
    names = [f"class {number}" for number in range(COUNT)]
    convert(folder, tmp_path / "all.grain", transform=numbered, workers=1, metadata={"class_names": names})
    assert grainstore.open(tmp_path / "all.grain").metadata["class_names"] == names
    with pytest.raises(grainstore.ConvertFailed, match="there are 59 names"):
        convert(folder, tmp_path / "few.grain", transform=numbered, workers=1, metadata={"class_names": names[:-1]})


def test_names_of_numbers_that_the_function_does_not_make_are_left_out(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain", transform=without_label, workers=1)
    assert grainstore.open(tmp_path / "d.grain").metadata == {}


def test_other_attributes_get_names_by_their_own_member(folder: Path, tmp_path: Path) -> None:
    metadata = {"class_names": ["cat", "dog"], "half_names": ["first", "second"]}
    convert(folder, tmp_path / "d.grain", transform=halves, workers=1, metadata=metadata)
    assert grainstore.open(tmp_path / "d.grain").metadata == metadata
    metadata["half_names"].pop()
    with pytest.raises(grainstore.ConvertFailed, match='half 1, and there are 1 names .*"half_names"'):
        convert(folder, tmp_path / "few.grain", transform=halves, workers=1, metadata=metadata)


def test_append_gives_the_numbers_of_a_function_their_own_names(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain", transform=halves, workers=1, metadata={"class_names": ["cat", "dog"]})
    again = tmp_path / "again"
    folder.rename(again)
    names = {"class_names": ["wolf", "cat"]}
    grainstore.append([again], tmp_path / "d.grain", transform=rekeyed_halves, workers=1, metadata=names)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds.metadata["class_names"] == ["cat", "dog", "wolf"]
        assert sorted(set(ds.column("label")[COUNT:].tolist())) == [0, 2]


def values_of(name: str) -> Any:
    values = {
        "texts": np.array(["a", "b"]),
        "list of texts": ["a", "b"],
        "complex": np.zeros(2, complex),
        "dictionary": {"a": 1},
        "set": {1, 2},
    }
    return values[name]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("texts", 'gives "v" an array of texts, and arrays are of numbers'),
        ("list of texts", 'gives "v" an array of texts, and arrays are of numbers'),
        ("complex", 'gives "v" an array of complex numbers'),
        ("dictionary", 'gives "v" values of type dict, and a dataset has bytes, texts, numbers and arrays'),
        ("set", 'gives "v" values of type set'),
    ],
)
def test_a_value_that_no_dataset_holds_is_refused_by_what_it_is(folder: Path, tmp_path: Path, name: str, message: str) -> None:
    with pytest.raises(grainstore.InvalidOption, match=message):
        convert(folder, tmp_path / "d.grain", transform=partial(with_value, name), workers=1)


def with_value(name: str, sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": sample["data"], "v": values_of(name)}


def with_text_of_numpy(sample: dict[str, Any]) -> dict[str, Any]:
    return {"data": np.bytes_(b"x"), "text": np.str_("é")}


def test_texts_of_numpy_are_texts(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain", transform=with_text_of_numpy, workers=1)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert ds.schema == {"data": "bytes", "text": "str"} and ds[0] == {"data": b"x", "text": "é"}
