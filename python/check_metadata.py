"""Whether a wheel has what PyPI shows and what a licence demands: `python check_metadata.py WHEEL`."""

from __future__ import annotations

import email
import sys
import zipfile
from pathlib import Path


def main(path: Path) -> None:
    with zipfile.ZipFile(path) as wheel:
        names = wheel.namelist()
        info = next(name for name in names if name.endswith(".dist-info/METADATA"))
        metadata = email.message_from_bytes(wheel.read(info))
    missing = [name for name in ("Summary", "Keywords", "Classifier", "Requires-Python") if not metadata[name]]
    if metadata["License-Expression"] != "MIT OR Apache-2.0":
        missing.append("License-Expression")
    for licence in ("LICENSE-MIT", "LICENSE-APACHE"):
        if not any(name.endswith(f"/licenses/{licence}") for name in names):
            missing.append(licence)
    if "pip install" not in metadata.get_payload():
        missing.append("a description that says how to install it")
    if not any(name.endswith("py.typed") for name in names):
        missing.append("py.typed")
    foreign = [name for name in names if not name.startswith(("grainstore/", "grainstore-"))]
    if missing or foreign:
        sys.exit(f"{path}: missing: {', '.join(missing) or 'nothing'}; not of the package: {foreign}")
    print(f"{path}: metadata and licences are there")


main(Path(sys.argv[1]))
