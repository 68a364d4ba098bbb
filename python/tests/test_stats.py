"""docs/python/stats.md lists the members of `stats()`, and its example runs."""

import re
from pathlib import Path

import pytest

import grainstore

PAGE = (Path(__file__).parents[2] / "docs/python/stats.md").read_text()


def members(heading: str) -> set[str]:
    section = PAGE.split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return set(re.findall(r"^\| `(\w+)` \|", section, re.M))


def test_the_page_lists_every_member(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "a.grain", {"data": "bytes"}) as writer:
        for number in range(10):
            writer.write(key=str(number), data=b"x" * number)
    with grainstore.open(tmp_path / "a.grain") as ds:
        assert set(ds.stats()) == members("A dataset")
        loader = grainstore.Loader(ds, batch_size=2)
        assert loader.stats() == {}
        assert sum(len(batch) for batch in loader) == 10
        assert set(loader.stats()) == members("A loader")


def test_the_example_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```python\n(.*?)```", PAGE, re.S)
    names: dict[str, object] = {}
    exec(compile(block, "stats.md", "exec"), names)
    assert names["stats"]["samples"] == 1000  # type: ignore[index]


@pytest.mark.parametrize("url", ["s3://bucket/a.grain", "gs://bucket/a.grain", "https://host/a.grain"])
def test_a_url_is_named_as_such(url: str, tmp_path: Path) -> None:
    with pytest.raises(grainstore.Error, match="URLs are not supported yet.*; copy the data"):
        grainstore.open(url)
    with pytest.raises(grainstore.Error, match="URLs are not supported yet"):
        grainstore.convert(url, tmp_path / "a.grain")
    with pytest.raises(grainstore.Error, match="URLs are not supported yet"):
        grainstore.Writer(url, {"data": "bytes"})


def test_an_append_of_nothing_adds_nothing(tmp_path: Path) -> None:
    with grainstore.Writer(tmp_path / "a.grain", {"data": "bytes"}) as writer:
        writer.write(key="a", data=b"x")
    (tmp_path / "day").mkdir()
    summary = grainstore.append(tmp_path / "day", tmp_path / "a.grain")
    assert summary["samples"] == 0
    assert "no files in it" in summary["notes"][0]
    with grainstore.open(tmp_path / "a.grain") as ds:
        assert len(ds) == 1
        assert ds.fingerprint == summary["fingerprint"]
        assert ds.stats()["generation"] == 0
