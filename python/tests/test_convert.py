"""Packing folders and tar files, and exporting them again."""

from __future__ import annotations

import io
import os
import tarfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import grainstore
from grainstore import convert, export
from grainstore._convert import Progress

FILES = {f"{name}/{number:02}.bin": f"{name} {number}".encode() * 9 for name in ("cat", "dog") for number in range(10)}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    path = tmp_path / "folder"
    for name, content in FILES.items():
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_bytes(content)
    return path


@pytest.fixture
def tar(tmp_path: Path) -> Path:
    """20 samples of two members each."""
    path = tmp_path / "shard.tar"
    write_tar(path, range(20))
    return path


def write_tar(path: Path, numbers: range) -> None:
    with tarfile.open(path, "w") as archive:
        for number in numbers:
            for extension, content in (("bin", bytes([number]) * 50), ("cls", str(number % 3).encode())):
                member = tarfile.TarInfo(f"{number:03}.{extension}")
                member.size = len(content)
                archive.addfile(member, io.BytesIO(content))


def by_key(path: Path, **options: Any) -> dict[str, dict[str, Any]]:
    with grainstore.open(path, keys=True, **options) as ds:
        return {sample.pop("key"): sample for sample in ds}


TAR = {f"{number:03}": {"bin": bytes([number]) * 50, "label": number % 3} for number in range(20)}


def test_a_folder_is_packed_with_its_labels(folder: Path, tmp_path: Path) -> None:
    summary = convert(folder, tmp_path / "d.grain")
    assert (summary["source"], summary["samples"], summary["segments"]) == ("folder", 20, 1)
    assert summary["payload_bytes"] == sum(map(len, FILES.values()))
    assert (summary["skipped"], summary["duplicates"], summary["resumed_samples"]) == ([], 0, 0)
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert summary["fingerprint"] == ds.fingerprint
        assert ds.metadata["class_names"] == ["cat", "dog"]
        assert ds.schema == {"data": "bytes", "label": "int64"}
    assert by_key(tmp_path / "d.grain") == {
        name: {"data": content, "label": int(name.startswith("dog"))} for name, content in FILES.items()
    }
    assert sorted(os.listdir(tmp_path)) == ["d.grain", "folder"]


def test_the_order_is_shuffled_once_or_that_of_the_source(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "source.grain", order="source")
    assert list(by_key(tmp_path / "source.grain")) == sorted(FILES)
    convert(folder, tmp_path / "a.grain", seed=1)
    convert(folder, tmp_path / "b.grain", seed=1)
    assert list(by_key(tmp_path / "a.grain")) == list(by_key(tmp_path / "b.grain")) != sorted(FILES)


def test_tar_files_are_packed_by_their_stems(tar: Path, tmp_path: Path) -> None:
    summary = convert([tar], tmp_path / "d.grain", compress="lz4", order="source")
    assert (summary["source"], summary["samples"]) == ("tar", 20)
    assert summary["stored_bytes"] < summary["payload_bytes"] == 1000
    assert by_key(tmp_path / "d.grain") == TAR
    mapped = {"pixels": "bin", "label": "cls"}
    ways: list[dict[str, str] | str] = [mapped, "pixels=bin,label=cls"]
    for number, how in enumerate(ways):
        convert(tar, tmp_path / f"mapped{number}.grain", map=how)
        with grainstore.open(tmp_path / f"mapped{number}.grain") as ds:
            assert ds.schema == {"pixels": "bytes", "label": "int64"}


def test_patterns_and_several_sources_are_packed_as_one(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", range(12))
    write_tar(tmp_path / "b.tar", range(12, 20))
    both: list[Any] = [tmp_path / "*.tar", [tmp_path / "a.tar", str(tmp_path / "b.tar")]]
    for number, sources in enumerate(both):
        assert convert(sources, tmp_path / f"{number}.grain")["samples"] == 20
        assert by_key(tmp_path / f"{number}.grain") == TAR


def test_samples_are_appended(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", range(12))
    write_tar(tmp_path / "b.tar", range(10, 20))
    convert(tmp_path / "a.tar", tmp_path / "d.grain")
    with pytest.raises(grainstore.InvalidSample, match="duplicate"):
        grainstore.append(tmp_path / "b.tar", tmp_path / "d.grain")
    assert len(by_key(tmp_path / "d.grain")) == 12
    summary = grainstore.append(tmp_path / "b.tar", tmp_path / "d.grain", on_duplicate="first")
    assert (summary["samples"], summary["duplicates"]) == (8, 2)
    assert by_key(tmp_path / "d.grain") == TAR
    assert len(by_key(tmp_path / "d.grain", generation=0)) == 12


def in_lower_case(sample: dict[str, Any]) -> dict[str, Any]:
    return sample | {"data": bytes(sample["data"]).lower()}


def test_every_content_is_packed_once(tmp_path: Path) -> None:
    for name, content in [("cat/1", b"x"), ("cat/2", b"X"), ("cat/3", b"y"), ("dog/4", b"x"), ("dog/5", b"z")]:
        path = tmp_path / "photos" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)

    def made(name: str, **options: Any) -> tuple[list[str], int, int]:
        summary = grainstore.convert(tmp_path / "photos", tmp_path / name, dedupe=True, **options)
        duplicates, other = summary["content_duplicates"], summary["content_duplicates_with_other_attributes"]
        return sorted(by_key(tmp_path / name)), duplicates, other

    assert made("a.grain") == (["cat/1", "cat/2", "cat/3", "dog/5"], 1, 1)
    with pytest.raises(grainstore.InvalidSample, match="duplicate"):
        grainstore.append(tmp_path / "photos", tmp_path / "a.grain")
    summary = grainstore.append(tmp_path / "photos", tmp_path / "a.grain", dedupe=True)
    assert (summary["samples"], len(by_key(tmp_path / "a.grain"))) == (0, 4)
    # What a function makes of the samples is compared.
    lowered = made("b.grain", transform=in_lower_case, workers=2)
    assert lowered == (["cat/1", "cat/3", "dog/5"], 2, 1)


def test_datasets_are_merged_filtered_and_trimmed(tmp_path: Path) -> None:
    write_tar(tmp_path / "a.tar", range(12))
    write_tar(tmp_path / "b.tar", range(10, 20))
    for name in "ab":
        convert(tmp_path / f"{name}.tar", tmp_path / f"{name}.grain")
    both = [tmp_path / "a.grain", tmp_path / "b.grain"]
    with pytest.raises(grainstore.InvalidSample, match="duplicate"):
        grainstore.convert(both, tmp_path / "x.grain")
    summary = grainstore.convert(both, tmp_path / "d.grain", on_duplicate="first")
    assert (summary["source"], summary["samples"], summary["duplicates"]) == ("dataset", 20, 2)
    assert by_key(tmp_path / "d.grain") == TAR
    grainstore.convert(both[:1], tmp_path / "few.grain", subset="ordinal < 5", only="bin", map={"blob": "bin"})
    with grainstore.open(tmp_path / "few.grain") as ds:
        assert len(ds) == 5 and set(ds[0]) == {"blob"}
    with pytest.raises(grainstore.Error, match="no attribute or field"):
        grainstore.convert(both, tmp_path / "y.grain", exclude=["nothing"])


def test_files_are_adopted_where_they_lie(tar: Path, tmp_path: Path) -> None:
    summary = grainstore.adopt(tar, tmp_path / "d.grain")
    assert (summary["source"], summary["samples"]) == ("tar", 20)
    assert by_key(tmp_path / "d.grain") == TAR
    with grainstore.open(tmp_path / "d.grain") as ds:
        seen = [image for batch in grainstore.Loader(ds, 7) for image in batch["bin"].tolist()]
    assert sorted(seen) == [sample["bin"] for sample in TAR.values()]
    tar.unlink()
    with pytest.raises(grainstore.DatasetNotFound) as raised:
        grainstore.open(tmp_path / "d.grain")[0]
    assert Path(str(raised.value.path)).resolve() == tar.resolve()


def test_a_dataset_or_a_view_is_written_out(folder: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain")
    made = export(tmp_path / "d.grain", tmp_path / "all", "folder")
    assert (made["samples"], made["payload_bytes"]) == (20, sum(map(len, FILES.values())))
    assert {name: (tmp_path / "all" / name).read_bytes() for name in FILES} == FILES
    with grainstore.open(tmp_path / "d.grain") as ds:
        assert export(ds.filter("label == 'dog'"), tmp_path / "dogs.tar", "tar")["samples"] == 10
        with pytest.raises(grainstore.InvalidOption, match="no samples"):
            export(ds[0:0], tmp_path / "none.tar", "tar")
        with pytest.raises(grainstore.InvalidOption, match="twice"):
            export(ds.select([1, 1]), tmp_path / "twice.tar", "tar")
        with pytest.raises(grainstore.AlreadyExists):
            export(ds, tmp_path / "dogs.tar", "tar")
        with pytest.raises(grainstore.InvalidOption, match="zip"):
            export(ds, tmp_path / "d.zip", "zip")  # type: ignore[arg-type]
    with tarfile.open(tmp_path / "dogs.tar") as archive:
        found = {name: archive.extractfile(name) for name in archive.getnames()}
        contents = sorted(file.read() for name, file in found.items() if file is not None and name.endswith(".bin"))
    assert contents == sorted(content for name, content in FILES.items() if name.startswith("dog"))
    assert sorted(os.listdir(tmp_path)) == ["all", "d.grain", "dogs.tar", "folder"]


def test_progress_is_reported(many_files: Path, tmp_path: Path) -> None:
    heard: list[Progress] = []
    summary = convert(many_files, tmp_path / "d.grain", jobs=1, progress=heard.append)
    assert heard
    for progress in heard:
        assert set(progress) == {"stage", "samples", "samples_total", "bytes", "bytes_total"}
        assert progress["stage"] in ("scanning", "packing", "finishing")
    counts = [progress["samples"] for progress in heard if progress["stage"] != "scanning"]
    assert counts == sorted(counts)
    assert counts[-1] == summary["samples"]


def test_progress_that_raises_stops_the_work(many_files: Path, tmp_path: Path) -> None:
    def stop(progress: Progress) -> None:
        raise ZeroDivisionError(progress["stage"])

    with pytest.raises(ZeroDivisionError):
        convert(many_files, tmp_path / "d.grain", jobs=1, progress=stop)
    assert not (tmp_path / "d.grain").exists()


@pytest.mark.parametrize("options", [
    {"format": "zip"}, {"order": "sorted"}, {"on_duplicate": "both"}, {"compress": "zip"}, {"chunk_bytes": 3},
    {"align": "3"}, {"jobs": 0}, {"values": "cooked"}, {"resume": True, "restart": True},
], ids=str)
def test_an_option_that_cannot_be_is_refused(folder: Path, tmp_path: Path, options: dict[str, Any]) -> None:
    with pytest.raises(grainstore.InvalidOption):
        convert(folder, tmp_path / "d.grain", **options)
    assert os.listdir(tmp_path) == ["folder"]


def test_an_invalid_source_is_reported(tmp_path: Path, folder: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "file.txt").write_text("not packed data\n" * 100)
    for source in (tmp_path / "absent", tmp_path / "*.nothing", tmp_path / "empty", tmp_path / "file.txt"):
        with pytest.raises(grainstore.ConvertFailed) as raised:
            convert(source, tmp_path / "d.grain")
        assert str(source) in str(raised.value)
    with pytest.raises(grainstore.ConvertFailed):
        convert([], tmp_path / "d.grain")
    with pytest.raises(TypeError):
        convert(3, tmp_path / "d.grain")  # type: ignore[arg-type]
    assert not (tmp_path / "d.grain").exists()


def test_a_tar_that_is_cut_short_is_refused(tar: Path, tmp_path: Path) -> None:
    tar.write_bytes(tar.read_bytes()[:7000])
    with pytest.raises(grainstore.ConvertFailed) as raised:
        convert(tar, tmp_path / "d.grain")
    assert str(tar) in str(raised.value)
    assert not (tmp_path / "d.grain").exists()


def test_what_exists_under_the_name_is_replaced_on_request(folder: Path, tar: Path, tmp_path: Path) -> None:
    convert(folder, tmp_path / "d.grain")
    with pytest.raises(grainstore.AlreadyExists, match="overwrite=True"):
        convert(tar, tmp_path / "d.grain")
    assert set(by_key(tmp_path / "d.grain")) == set(FILES)
    convert(tar, tmp_path / "d.grain", overwrite=True)
    assert by_key(tmp_path / "d.grain") == TAR


def test_a_lost_index_is_made_again(tmp_path: Path, folder: Path) -> None:
    convert(folder, tmp_path / "d.grain", segment_bytes=4096, chunk_bytes=4096)
    before = by_key(tmp_path / "d.grain")
    [index] = (tmp_path / "d.grain").glob("*.idx")
    content = index.read_bytes()
    index.unlink()
    with pytest.raises(grainstore.Error):
        grainstore.open(tmp_path / "d.grain")[0]
    grainstore.rebuild_index(tmp_path / "d.grain")
    assert index.read_bytes() == content
    assert by_key(tmp_path / "d.grain") == before


def test_samples_are_deleted(tar: Path, tmp_path: Path) -> None:
    path = tmp_path / "d"
    convert(tar, path, order="source")
    ds = grainstore.open(path)
    state = grainstore.Loader(ds, batch_size=4, seed=3).state_dict()
    assert grainstore.delete(path, subset="label == 0", dry_run=True) == {
        "deleted": 7,
        "deleted_bytes": 350,
        "samples": 13,
        "copied_bytes": 0,
        "replaced_bytes": 0,
        "freed": False,
        "fingerprint": ds.fingerprint,
    }
    assert grainstore.delete(path, subset="label == 0")["samples"] == 13
    # Opened before: it reads what it opened.
    assert [sample["bin"][0] for sample in ds] == list(range(20))
    left = grainstore.open(path)
    assert [sample["bin"][0] for sample in left] == [number for number in range(20) if number % 3 != 0]
    with pytest.raises(grainstore.InvalidState):
        grainstore.Loader(left, batch_size=4, seed=3).load_state_dict(state)
    assert grainstore.delete(path, keys=["001", b"002"], free=True)["freed"]
    assert grainstore.delete(path, ordinals=[10])["samples"] == 10
    assert set(by_key(path)) == {f"{number:03}" for number in range(4, 19) if number % 3 != 0}
    assert grainstore.delete(path, free=True)["freed"]
    assert len(list(path.iterdir())) == 2
    with pytest.raises(grainstore.WriteFailed, match="none of its 10 samples would be left"):
        grainstore.delete(path, subset="ordinal >= 0")
    with pytest.raises(grainstore.InvalidOption, match="expected one of"):
        grainstore.delete(path)
    with pytest.raises(grainstore.ConvertFailed, match="it has no sample of 1 of the 1 keys"):
        grainstore.delete(path, keys=["001"])


@pytest.mark.parametrize(
    "named",
    [
        {"keys": "001"},
        {"keys": b"001"},
        {"keys": [3]},
        {"ordinals": [2.0]},
        {"ordinals": "12"},
        {"ordinals": [True, False]},
        {"ordinals": np.ones(20, dtype=bool)},
        {"ordinals": [-1]},
        {"ordinals": [1 << 64]},
    ],
)
def test_what_is_no_key_or_ordinal_deletes_nothing(tar: Path, tmp_path: Path, named: Any) -> None:
    path = tmp_path / "d"
    convert(tar, path)
    before = by_key(path)
    with pytest.raises((TypeError, grainstore.InvalidOption)):
        grainstore.delete(path, **named)
    assert by_key(path) == before


def test_names_are_chosen_of_every_source(tar: Path, tmp_path: Path) -> None:
    convert(tar, tmp_path / "d.grain", exclude="cls")
    assert by_key(tmp_path / "d.grain")["003"] == {"bin": bytes([3]) * 50}
    with pytest.raises(grainstore.ConvertFailed, match=r'"jpg" to choose \(there are: .*bin'):
        convert(tar, tmp_path / "x.grain", only=["jpg"])


def test_a_table_adds_attributes_by_key(tar: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("name,split,score\n" + "".join(f"{number:03},val,{number / 4}\n" for number in range(1, 22)))
    summary = convert(tar, tmp_path / "d.grain", attributes=table, attributes_key="name")
    assert summary["notes"][-1].endswith("values are missing: 1; rows without a sample: 2")
    found = by_key(tmp_path / "d.grain")
    assert (found["003"]["split"], found["003"]["score"]) == ("val", 0.75)
    assert found["000"]["split"] is None
    with pytest.raises(grainstore.ConvertFailed, match="no column is called key"):
        convert(tar, tmp_path / "x.grain", attributes=table)


def test_a_table_that_no_sample_meets_is_a_warning_with_a_key_of_each(tar: Path, tmp_path: Path) -> None:
    table = tmp_path / "table.csv"
    table.write_text("key,score\nx/001,1\nx/002,2\n")
    warnings = convert(tar, tmp_path / "d.grain", attributes=table, order="source")["warnings"]
    assert len(warnings) == 1 and warnings[0].endswith(
        'none of its rows has the key of a sample, so all values are missing: a sample\'s key is "000", a row\'s is "x/001"'
    )


@pytest.mark.parametrize("kind", ["int8", "uint8", "uint64", "bool"])
def test_labels_of_every_type_follow_their_names(tmp_path: Path, kind: str) -> None:
    def written(name: str, names: list[str]) -> Path:
        schema = {"image": "bytes", "label": kind}
        with grainstore.Writer(tmp_path / name, schema, keyed=True, metadata={"class_names": names}) as writer:
            for number, class_name in enumerate(names):
                writer.write(key=f"{name}/{class_name}", image=class_name.encode(), label=bool(number) if kind == "bool" else number)
        return tmp_path / name

    first, second = written("a", ["cat", "dog"]), written("b", ["dog", "cat"] if kind == "bool" else ["ant", "dog"])

    def check(path: Path) -> None:
        with grainstore.open(path) as ds:
            names = ds.metadata["class_names"]
            assert [names[sample["label"]].encode() for sample in ds] == [sample["image"] for sample in ds]
            assert len(ds) == 4

    grainstore.convert([first, second], tmp_path / "both", order="source")
    check(tmp_path / "both")
    grainstore.append(second, first)
    check(first)


def test_a_bool_label_without_a_place_for_its_name_is_refused(tmp_path: Path) -> None:
    for name, names in (("a", ["cat", "dog"]), ("b", ["ant", "dog"])):
        schema = {"image": "bytes", "label": "bool"}
        with grainstore.Writer(tmp_path / name, schema, keyed=True, metadata={"class_names": names}) as writer:
            writer.write(key=name, image=b"x", label=False)
    with pytest.raises(grainstore.Error, match="its label becomes 2, which bool cannot hold"):
        grainstore.convert([tmp_path / "a", tmp_path / "b"], tmp_path / "both")


def test_names_of_labels_that_are_left_out_do_not_name_others(tmp_path: Path) -> None:
    with grainstore.Writer(
        tmp_path / "a", {"image": "bytes", "label": "int64"}, keyed=True, metadata={"class_names": ["cat", "dog"]}
    ) as writer:
        for key in ("x", "y"):
            writer.write(key=key, image=b"x", label=0)
    (tmp_path / "t.csv").write_text("key,label\nx,1\ny,0\n")
    grainstore.convert(tmp_path / "a", tmp_path / "b", exclude=["label"], attributes=tmp_path / "t.csv")
    with grainstore.open(tmp_path / "b") as ds:
        assert "class_names" not in ds.metadata
        assert ds["x"]["label"] == 1


def test_few_samples_of_many_are_read_in_pieces(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "a", {"data": "bytes"}, keyed=True) as writer:
        for number in range(6000):
            writer.write(key=str(number), data=number.to_bytes(4, "little") * 1000)
    grainstore.convert(tmp_path / "a", tmp_path / "b", order="source", subset="key_hash < 0.1")
    with grainstore.open(tmp_path / "a") as a, grainstore.open(tmp_path / "b") as b:
        expected = [sample["data"] for sample in a.filter("key_hash < 0.1")]
        assert [sample["data"] for sample in b] == expected and len(expected) > 400


def test_files_that_are_no_shards_are_counted(folder: Path, tmp_path: Path) -> None:
    shards = tmp_path / "shards"
    shards.mkdir()
    convert(folder, tmp_path / "a.grain")
    export(tmp_path / "a.grain", shards / "0.tar", to="tar")
    (shards / "README.md").write_text("read me")
    summary = convert(shards, tmp_path / "b.grain")
    assert (summary["left_out_files"], summary["left_out_keys"], len(summary["warnings"])) == (1, 0, 1)


def test_columns_of_text_become_categories_by_name(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "a", {"data": "bytes", "split": "str"}, keyed=True) as writer:
        for number in range(4):
            writer.write(key=f"{number}", data=b"x", split="val" if number % 2 else "train")
    grainstore.export(tmp_path / "a", tmp_path / "a.parquet", to="parquet")
    grainstore.convert(tmp_path / "a.parquet", tmp_path / "b")
    grainstore.convert(tmp_path / "a.parquet", tmp_path / "c", categories="split")
    with grainstore.open(tmp_path / "b") as ds:
        assert ds.schema["split"] == "str"
    with grainstore.open(tmp_path / "c") as ds:
        assert ds.schema["split"] == "category"
        assert sorted(ds.filter("split == 'val'").keys()) == ["1", "3"]
    grainstore.append(tmp_path / "a.parquet", tmp_path / "c", categories=["split"], on_duplicate="first")
    with pytest.raises(grainstore.Error, match="only texts become categories"):
        grainstore.convert(tmp_path / "a.parquet", tmp_path / "x", categories=["data"])
