"""The environment of the comparisons: ``run`` and ``papers`` make it and start their program in it.

No import from outside the standard library: this runs before the environment exists.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NoReturn

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]
ENVIRONMENT = ROOT / "target/compare"
WHEELS = ROOT / "target/compare-wheels"


def run_inside(program: str) -> NoReturn:
    """Install what is compared and a release wheel of this tree, and become ``program`` of this folder."""
    bin_folder = ENVIRONMENT / "bin"
    subprocess.run([ROOT / "python/environment", ENVIRONMENT, HERE / "requirements.txt"], check=True)
    shutil.rmtree(WHEELS, ignore_errors=True)
    build = [bin_folder / "maturin", "build", "--quiet", "--locked", "--release", "--out", WHEELS]
    subprocess.run([*build, "--manifest-path", ROOT / "python/Cargo.toml"], check=True)
    install = [bin_folder / "pip", "install", "--quiet", "--disable-pip-version-check", "--force-reinstall", "--no-deps"]
    subprocess.run([*install, *WHEELS.glob("*.whl")], check=True)
    python = bin_folder / "python"
    os.execv(python, [str(python), str(HERE / program), *sys.argv[1:]])
