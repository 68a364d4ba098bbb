"""A short use of the installed package: packs a dataset, reads it, runs the command. Nothing else is needed."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import grainstore


def main(folder: Path) -> None:
    for tool in ("cargo", "rustc", "cc"):
        assert shutil.which(tool) is None, f"{tool} is in PATH: this is not a clean environment"
    path = folder / "d.grain"
    with grainstore.Writer(path, {"image": "bytes", "label": "int64"}) as writer:
        for label in range(1000):
            writer.write(key=f"{label:04}", image=label.to_bytes(4, "little") * 20, label=label)
    with grainstore.open(path) as dataset:
        assert len(dataset) == 1000 and dataset["0007"]["label"] == 7
        loader = grainstore.Loader(dataset, batch_size=64, seed=1)
        seen = [int(label) for batch in loader for label in batch["label"]]
        assert sorted(seen) == list(range(1000)) and seen != sorted(seen)
    command = Path(sys.executable).with_name("grainstore")
    version = subprocess.run([command, "--version"], capture_output=True, text=True, check=True).stdout
    assert version.split()[-1] == grainstore.__version__, version
    subprocess.run([command, "verify", path], check=True, stdout=subprocess.DEVNULL)
    print(f"grainstore {grainstore.__version__} works in {sys.prefix} with Python {sys.version.split()[0]}")


with tempfile.TemporaryDirectory() as folder:
    main(Path(folder))
