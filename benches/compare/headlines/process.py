"""One measurement of these papers, in a process of its own: as ``../measure.py``, with more kinds of them."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

# Instead of this folder, whose modules would hide others of the same names.
sys.path[0] = str(Path(__file__).resolve().parents[1])

# Makes its readers known.
import headlines.readers  # noqa: E402, F401
import measure  # noqa: E402
from headlines.lookup import lookup  # noqa: E402
from headlines.ranks import ranks  # noqa: E402


def epochs(job: measure.Job) -> dict[str, Any]:
    """Epochs of several readers of the same files, each cold. Where a library takes longer to import than to read."""
    return {"each": {name: measure.run(replace(job, contestant=name, kind="epoch")) for name in job.together}}


_KINDS = {"epochs": epochs, "lookup": lookup, "ranks": ranks}


def run(job: measure.Job) -> dict[str, Any]:
    return _KINDS.get(job.kind, measure.run)(job)


if __name__ == "__main__":
    measure.main(run)
