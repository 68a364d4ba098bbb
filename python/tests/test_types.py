"""Types: that they are there, that they are those of the compiled module, and that they serve who uses the package."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import grainstore

PACKAGE = Path(grainstore.__file__).parent
USER_CODE = Path(__file__).parent / "user_code.py"


def checked(folder: Path, *words: str | Path) -> str:
    """The output of a checker that runs in `folder`, where no settings are."""
    command = [sys.executable, "-m", *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, timeout=200, cwd=folder).stdout


def test_the_package_declares_that_it_is_typed() -> None:
    assert (PACKAGE / "py.typed").is_file()


def test_the_public_names_are_those_that_are_listed() -> None:
    names = {name for name, value in vars(grainstore).items() if not isinstance(value, ModuleType)}
    public = {name for name in names if not name.startswith("_")}
    assert public | {"__version__"} == set(grainstore.__all__)
    assert list(grainstore.__all__) == sorted(grainstore.__all__)


def test_the_types_of_the_compiled_module_are_its_own(tmp_path: Path) -> None:
    assert "no issues" in checked(tmp_path, "mypy.stubtest", "grainstore._core")


def test_code_of_users_is_checked(tmp_path: Path) -> None:
    printed = checked(tmp_path, "mypy", "--strict", "--cache-dir", os.devnull, USER_CODE)
    assert "no issues" in printed, printed


def test_code_of_users_that_is_wrong_is_found(tmp_path: Path) -> None:
    lines = [
        "ds[1.5]",
        "ds.select('a')",
        "grainstore.open('a', io='fast')",
        "grainstore.Loader(ds, order='random')",
        "len(ds.find('a'))",
        "for batch in grainstore.Loader(3): pass",
        "ds.filter(3)",
        "grainstore.convert('a', 'b', compress='zip')",
        "grainstore.convert('a', 'b')['nope']",
        "ds[0:1]['label']['x'].nope or ds.nope",
        "grainstore.Writer('a', {'image': 3})",
    ]
    (tmp_path / "wrong.py").write_text("\n".join(["import grainstore", "ds = grainstore.open('a')", *lines]))
    printed = checked(tmp_path, "mypy", "--strict", "--cache-dir", os.devnull, "wrong.py")
    found = {int(line.split(":")[1]) for line in printed.splitlines() if ": error:" in line}
    assert found == set(range(3, 3 + len(lines))), printed


def copied(folder: Path) -> Path:
    """The package's own source in a folder, where checkers see it as code and not as something installed."""
    copied = shutil.copytree(PACKAGE, folder / "grainstore", ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    return Path(copied)


ADAPTERS = ("torch", "jax", "tensorflow")


def test_the_package_is_checked_strictly(tmp_path: Path) -> None:
    files = [path.relative_to(tmp_path) for path in copied(tmp_path).glob("*.py") if path.stem not in ADAPTERS]
    printed = checked(tmp_path, "mypy", "--strict", "--cache-dir", os.devnull, *files)
    assert "no issues" in printed, printed


def test_the_adapters_are_checked_with_anything_for_the_frameworks(tmp_path: Path) -> None:
    package = copied(tmp_path)
    files = [path.relative_to(tmp_path) for name in ADAPTERS for path in [*package.glob(f"{name}.py"), *(package / name).glob("*.py")]]
    assert len(files) > len(ADAPTERS)
    unknown = ["--ignore-missing-imports", "--allow-subclassing-any", "--allow-untyped-decorators"]
    # With the frameworks installed there would be more to say.
    unknown += ["--no-warn-unused-ignores", "--no-warn-return-any"]
    printed = checked(tmp_path, "mypy", "--strict", *unknown, "--cache-dir", os.devnull, *files)
    assert "no issues" in printed, printed
