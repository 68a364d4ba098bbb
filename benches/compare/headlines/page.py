"""The page of all papers: what holds for each, a section of each, what grainstore lost, and who took part."""

from __future__ import annotations

from typing import Any

from headlines import Cell, Paper
from report import bold, spread, table

_INTRO = """\
grainstore takes up ideas of three papers about reading training data. Here is what one machine can show of their headline
figures, the papers' own beside ours, and why they differ. Many of the papers' figures are of up to 512 nodes, which one
machine cannot show.

- Everything is measured side by side in one run, cold unless a row says otherwise. grainstore has its default options, apart
  from `order="sequential"` (*in order*) and `batch_size=32` where a row names them.
- Figures are medians of the rounds, with the lowest and the highest in brackets. Ratios are taken within a round, and **those
  below 1, our losses, are bold**.
- Samples are incompressible, and everybody hands out `bytes` to Python. Every byte of the files is checked before anything is
  measured; of each measured epoch, the number of every sample and one checksum in 64. The CPU time includes those checks.
- Rates count bytes of samples, MB and GB are 10^6 and 10^9."""


def page(results: dict[str, Any], papers: list[Paper]) -> str:
    """Everything as Markdown."""
    machine = results["machine"]
    parts = [
        "# The papers' figures",
        _INTRO,
        f"Written by `benches/compare/papers`. Rounds: {results['rounds']}, on {machine['cores']} cores, Linux "
        f"{machine['kernel']}, Python {machine['python']}, {results['finished_at'] or 'not finished'}.",
        "```sh\nexport GRAINSTORE_BENCH_DIR=/a/folder/on/the/disk\nbenches/compare/papers --docs docs\n```",
    ]
    if rates := [one["bytes_per_s"] / 1e6 for one in results["device"] if "bytes_per_s" in one]:
        parts.append(
            f"The device gave {spread(rates)} MB/s: random direct reads of 256 KiB, 16 at a time, before each size of each round."
        )
    for paper in papers:
        parts.append(paper.section(results, [cell for cell in results["cells"] if cell.get("paper") == paper.name]))
    return "\n\n".join([*parts, *_who(results)]) + "\n"


def _who(results: dict[str, Any]) -> list[str]:
    rows = [(bold(name), one["version"] or "", one["settings"]) for name, one in results["contestants"].items()]
    parts = ["## Who took part, and how\n\n" + table(("", "version", "settings"), rows)]
    failed = dict.fromkeys(f"- {cell['contestant']}, {cell['size']}: {_why(cell)}" for cell in results["cells"] if _why(cell))
    if failed:
        parts.append("Failed, or in some rounds:\n\n" + "\n".join(failed))
    return parts


def _why(cell: Cell) -> str | None:
    return cell.get("failed") or cell.get("wrong_contents")
