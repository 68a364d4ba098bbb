"""What the documentation shows of PyTorch runs as it stands."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def run(script, folder):
    # Unbuffered, a line and its end are two writes, and those of two processes come in any order.
    env = {name: value for name, value in os.environ.items() if name != "PYTHONUNBUFFERED"}
    ended = subprocess.run([sys.executable, str(script)], cwd=folder, env=env, capture_output=True, text=True, timeout=240)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_pages_code_runs_from_top_to_bottom(tmp_path):
    page = (ROOT / "docs/python/pytorch.md").read_text()
    blocks = re.findall(r"```python\n(.*?)```", page, re.DOTALL)
    assert len(blocks) == 12
    (tmp_path / "page.py").write_text("\n".join(blocks))
    assert run(tmp_path / "page.py", tmp_path).splitlines() == [
        "300 number 0",
        "16 batches of ['image', 'caption', 'label']",
        "['cat', 'dog'] ('dog/2.png', 1) (16, 16)",
    ]


@pytest.mark.parametrize(
    ("name", "last"),
    [
        ("pytorch_map", r"epoch 2: \d{3,4} of 1000 right"),
        ("pytorch_iterable", "resumed with 680 samples; every sample once: True"),
        ("pytorch_ddp", r"epoch 2, rank [01]: 16 batches, 500 samples, loss \d\.\d{4}"),
    ],
)
def test_examples_run(tmp_path, name, last):
    assert re.fullmatch(last, run(ROOT / f"examples/{name}.py", tmp_path).splitlines()[-1])
