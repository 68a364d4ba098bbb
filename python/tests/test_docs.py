"""What the pages show runs as it is written there."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GUIDE = ROOT / "docs/python/README.md"
SAMPLING = ROOT / "docs/python/sampling.md"


def python_blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(), re.MULTILINE | re.DOTALL)


@pytest.mark.parametrize("page", [GUIDE, SAMPLING], ids=lambda page: page.name)
def test_the_blocks_of_the_guide_run_one_after_the_other(
    page: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    blocks = python_blocks(page)
    assert len(blocks) >= 6
    names: dict[str, object] = {}
    for block in blocks:
        exec(compile(block, str(page), "exec"), names)


def test_the_blocks_of_the_readme_run_one_after_the_other(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import grainstore

    monkeypatch.chdir(tmp_path)
    with grainstore.Writer("imagenet.grain", {"image": "bytes", "label": "int64"}) as writer:
        for number in range(1000):
            writer.write(key=f"n{number:08}/1.JPEG", image=b"not really a picture", label=number % 10)
        writer.write(key="n01440764/n01440764_18.JPEG", image=b"a fish", label=0)
    blocks = python_blocks(ROOT / "README.md")
    assert len(blocks) == 2
    seen: list[int] = []
    names: dict[str, object] = {"train": lambda images, labels: seen.append(len(images))}
    for block in blocks:
        exec(compile(block, "README.md", "exec"), names)
    assert sum(seen) == 1001
    assert len(grainstore.open("new.grain")) == 1


def test_the_chart_of_the_readme_is_drawn_from_its_data(tmp_path: Path) -> None:
    drawn = tmp_path / "speed.svg"
    subprocess.run([sys.executable, ROOT / "benches/compare/chart.py", ROOT / "docs/speed.json", drawn], check=True)
    assert drawn.read_text() == (ROOT / "docs/speed.svg").read_text()
