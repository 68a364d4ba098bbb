"""Tables and charts from the JSON of a comparison: ``python report.py results.json docs/``.

Everybody that was measured is in every table, the fastest first, so losses show as they are.
"""

from __future__ import annotations

import json
import statistics
import sys
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from chart import draw

Cell = dict[str, Any]

_UNIFORM = 162
_TITLES = {"get": "One sample, at random", "batch": "256 samples in one call, at random", "epoch": "A shuffled epoch"}
_MEMORIES = {
    "cold": "nothing in memory",
    "warm": "everything in the page cache",
    "limited": "memory for a quarter of the data",
}
_MEANING = f"""\
- **Rates** are samples a second, medians of the rounds, with the lowest and the highest in brackets. Everybody hands out `bytes` to Python.
- **Mixing** belongs to every epoch's rate: of how many 256ths of the stored order a batch of 256 has samples. A uniform shuffle gives {_UNIFORM}. Speed with less mixing is another product.
- **First batch**: from its request. Opening is not in it. An epoch that was still under way after the time limit was cut off, which is marked by `*`.
- **CPU** is that of all processes, workers included. **Read** is bytes from the disk for each byte handed out.
- **Memory** is the most that was seen, apart from mapped files, which the kernel may take back, and includes what the imported modules take.
- With less memory than data, the process joined its control group after its imports, which are not counted in the limit.
- One machine and one disk: rates of other disks and with more cores differ. The device's limit was measured in the same run.
"""


def page(results: dict[str, Any]) -> str:
    """Everything as Markdown."""
    machine = results["machine"]
    parts = [
        "# Comparison",
        f"Written by `benches/compare/run`. Rounds: {results['rounds']}, on {machine['cores']} cores, Linux "
        f"{machine['kernel']}, Python {machine['python']}, {results['finished_at'] or 'not finished'}.",
        _MEANING.rstrip(),
        *_device(results),
    ]
    for size, shape in results["shapes"].items():
        lengths = f"{shape['shortest']:,}" if shape["shortest"] == shape["longest"] else f"{shape['shortest']:,} to {shape['longest']:,}"
        parts.append(f"## {shape['samples']:,} samples of {lengths} bytes")
        cells = [cell for cell in results["cells"] if cell["size"] == size]
        parts += _stored(cells)
        for memory, words in _MEMORIES.items():
            for kind, title in _TITLES.items():
                rows = _rows([cell for cell in cells if cell["kind"] == kind and cell["memory"] == memory], kind)
                if rows:
                    parts.append(f"### {title}, {words}\n\n" + rows)
    return "\n\n".join([*parts, *_who(results)]) + "\n"


def table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    lines = [list(headings)]
    lines.append(["---"] * len(lines[0]))
    return "\n".join(f"| {' | '.join(line)} |" for line in [*lines, *rows])


def _device(results: dict[str, Any]) -> list[str]:
    found = [one for one in results["device"] if "failed" not in one]
    if not found:
        return [f"The device's limit was not measured: {one['failed']}." for one in results["device"][:1]]
    rate = spread([one["bytes_per_s"] / 1e6 for one in found])
    small = spread([one["reads_4k_per_s"] for one in found])
    return [f"**The device**, measured by {found[0]['by']}: {rate} MB/s by random reads of 256 KiB, 16 at a time; {small} reads a second of 4 KiB, one at a time."]


def _stored(cells: list[Cell]) -> list[str]:
    written = [cell for cell in cells if cell["kind"] == "write" and "seconds" in cell]
    opened = _by_contestant([cell for cell in cells if "open_s" in cell and cell["kind"] in _TITLES])
    rows = [
        (cell["contestant"], f"{cell['seconds']:.1f} s", f"{cell['stored_bytes'] / cell['payload_bytes']:.3f}")
        for cell in sorted(written, key=lambda cell: cell["seconds"])
    ]
    opening = [
        (name, spread([cell["open_s"] * 1e3 for cell in of]), spread([cell["open_own_bytes"] / 1e6 for cell in of]))
        for name, of in sorted(opened.items(), key=lambda item: _median(item[1], "open_s"))
    ]
    parts = []
    if rows:
        parts.append("### Writing, once\n\n" + table(("", "until on the disk", "stored / payload"), rows))
    if opening:
        parts.append("### Opening\n\n" + table(("", "ms", "memory, MB"), opening))
    return parts


def _rows(cells: list[Cell], kind: str) -> str:
    of = _by_contestant([cell for cell in cells if "samples_per_s" in cell])
    failed = {cell["contestant"]: cell for cell in cells if "failed" in cell or "wrong_contents" in cell}
    columns: dict[str, Callable[[list[Cell]], str]] = {
        "samples/s": lambda one: spread(_all(one, "samples_per_s")) + ("" if all(c.get("whole", True) for c in one) else " `*`"),
    }
    if kind == "epoch":
        columns["mixing"] = lambda one: spread(_all(one, "mixing")) or "too few samples"
        columns["first batch, ms"] = lambda one: spread([s * 1e3 for s in _all(one, "first_s")])
    columns |= {
        "CPU s/GB": lambda one: spread(_all(one, "cpu_s_per_gb")),
        "read / byte": lambda one: spread(_all(one, "read_per_delivered")),
        "memory, MB": lambda one: spread([number / 1e6 for number in _all(one, "own_bytes")]),
    }
    fastest_first = sorted(of.items(), key=lambda item: -_median(item[1], "samples_per_s"))
    rows = [[bold(name), *(column(one) for column in columns.values())] for name, one in fastest_first]
    for name, cell in failed.items():
        why = cell.get("failed") or cell.get("wrong_contents")
        rounds = len(of.get(name, []))
        note = f"failed in some rounds ({rounds} succeeded): {why}" if rounds else f"failed: {why}"
        rows.append([bold(name), note.replace("|", "/"), *[""] * (len(columns) - 1)])
    return table(("", *columns), rows) if rows else ""


def _who(results: dict[str, Any]) -> list[str]:
    rows = [(bold(n), one["version"] or "", one["settings"]) for n, one in results["contestants"].items()]
    parts = ["## Who took part, and how\n\n" + table(("", "version", "settings"), rows)]
    dropped = {
        f"{cell['contestant']}, {results['shapes'][cell['size']]['name']}": cell.get("failed") or cell.get("wrong_contents")
        for cell in results["cells"]
        if cell["kind"] in ("write", "check") and ("failed" in cell or "wrong_contents" in cell)
    }
    not_here = [f"- {name}: {why}" for name, why in (results["missing"] | results["skipped"] | dropped).items()]
    if not_here:
        parts.append("Not measured:\n\n" + "\n".join(not_here))
    return parts


def _by_contestant(cells: list[Cell]) -> dict[str, list[Cell]]:
    found: dict[str, list[Cell]] = defaultdict(list)
    for cell in cells:
        found[cell["contestant"]].append(cell)
    return found


def _all(cells: list[Cell], member: str) -> list[float]:
    return [cell[member] for cell in cells if cell.get(member) is not None]


def _median(cells: list[Cell], member: str) -> float:
    return statistics.median(_all(cells, member))


def spread(numbers: list[float]) -> str:
    """The median, and in brackets the lowest and the highest."""
    if not numbers:
        return ""
    if len(numbers) == 1:
        return shown(numbers[0])
    return f"{shown(statistics.median(numbers))} ({shown(min(numbers))} to {shown(max(numbers))})"


def shown(number: float) -> str:
    if abs(number) >= 100:
        return f"{number:,.0f}"
    return f"{number:.1f}" if abs(number) >= 10 else f"{number:.2f}"


def bold(name: str) -> str:
    return f"**{name}**" if name.startswith("grainstore") else name


def charts(results: dict[str, Any]) -> dict[str, str]:
    """For each state of memory the rates of epochs, by file name."""
    drawn = {}
    for memory, words in _MEMORIES.items():
        groups = []
        for size, shape in results["shapes"].items():
            cells = [c for c in results["cells"] if (c["size"], c["kind"], c["memory"]) == (size, "epoch", memory)]
            of = _by_contestant([cell for cell in cells if "samples_per_s" in cell])
            # Bytes, so that sizes share a scale.
            rates = {n: statistics.median([c["delivered_bytes"] / c["seconds"] / 1e6 for c in one]) for n, one in of.items()}
            mixed = {n: _all(one, "mixing") for n, one in of.items()}
            named = {
                n if not mixed[n] or statistics.median(mixed[n]) > 0.9 * _UNIFORM else f"{n} (less mixed)": rate
                for n, rate in sorted(rates.items(), key=lambda item: -item[1])
            }
            if named:
                groups.append({"name": f"{shape['samples']:,} samples, {shape['name']}", "rates": named})
        if groups:
            heading = f"One shuffled epoch, {words}, MB/s (longer is faster)"
            drawn[f"comparison-{memory}.svg"] = draw(heading, heading, f"benches/compare, {results['finished_at']}", groups)
    return drawn


def write_docs(results: dict[str, Any], folder: Path) -> None:
    drawn = charts(results)
    for name, chart in drawn.items():
        (folder / name).write_text(chart)
    links = "\n\n".join(f"![]({name})" for name in drawn)
    head, meaning, rest = page(results).partition(_MEANING.rstrip())
    (folder / "comparison.md").write_text(f"{head}{links}\n\n{meaning}{rest}")


if __name__ == "__main__":
    write_docs(json.loads(Path(sys.argv[1]).read_text()), Path(sys.argv[2]))
