#!/usr/bin/env python3
"""Writes the corpus: `make.py [FOLDER]` makes valid/, invalid/, newer/, expected.json and orders.json in FOLDER (by default,
here). It knows spec.md and order.md and nothing of any other program; the same bytes come out every time.
"""

import json
import pathlib
import shutil
import sys

import cases
import invalid
import orders
import valid


def write_lines(path, document):
    """JSON with each element of the lists in it on a line of its own."""
    parts = []
    for name, value in document.items():
        text = json.dumps(value)
        if isinstance(value, list):
            text = "[\n" + ",\n".join(map(json.dumps, value)) + "\n]"
        parts.append(f'"{name}": {text}')
    path.write_text("{\n" + ",\n".join(parts) + "\n}\n")


def main(folder):
    valid.make()
    invalid.make()
    for name in ("valid", "invalid", "newer"):
        shutil.rmtree(folder / name, ignore_errors=True)
    for case in cases.CASES:
        for name, data in case.files.items():
            path = folder / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(data)
    lines = [case.line() for case in cases.CASES]
    assert len({line["path"] for line in lines}) == len(lines), "a path twice"
    write_lines(folder / "expected.json", {"format_version": 0, "cases": lines})
    write_lines(folder / "orders.json", {"format_version": 0, **orders.make()})


if __name__ == "__main__":
    main(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else pathlib.Path(__file__).parent))
