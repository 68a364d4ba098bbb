"""A model trains from grainstore as it does from files, and a run that was stopped goes on as if it had not been."""

import json
import pathlib
import re
import subprocess
import sys

import numpy as np

ROOT = pathlib.Path(__file__).parents[2]


def output(script, *arguments):
    command = [sys.executable, ROOT / "examples" / script, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_cnn_trains_alike_and_resumes_to_the_last_bit():
    figures = json.loads(output("train_cnn.py", "--quick", "--json"))
    resume, chance = figures["resume"], 1 / figures["classes"]
    assert len(resume["losses"]) == 60
    assert 0 < resume["stopped_after"] < 60 and resume["stopped_after"] % 20 != 0
    assert resume["losses_resumed"] == resume["losses"]
    assert np.mean(resume["losses"][-10:]) < 0.7 * np.mean(resume["losses"][:10])
    accuracies = [figures[name]["accuracy"] for name in ("files", "grainstore")]
    assert min(accuracies) > 4 * chance
    assert abs(accuracies[0] - accuracies[1]) < 0.25
    assert min(figures[name]["samples_per_second"] for name in ("files", "grainstore")) > 0


def test_the_numpy_example_runs():
    assert output("numpy_loop.py").splitlines()[-1] == "stopped and resumed: 2000 different samples of 2000"


def test_the_code_of_the_numpy_page_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    blocks = re.findall(r"```python\n(.*?)```", (ROOT / "docs/python/numpy.md").read_text(), re.DOTALL)
    assert len(blocks) == 7
    page = {}
    for block in blocks:
        exec(compile(block, "numpy.md", "exec"), page)
        if "images" in page and "checked" not in page:
            page["checked"] = [bytes(view) for view in page["pixels"]]
            assert [image.tobytes() for image in page["images"]] == page["checked"]
    numbers = [int(ordinal) for name in ("first", "second", "third") for ordinal in page[name].ordinals]
    assert len(set(numbers)) == 96
    assert len(page["loader"]) == 7
