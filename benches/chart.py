#!/usr/bin/env python3
"""Draws the chart of the README: one shuffled epoch, by grainstore and from plain files.

    python3 benches/chart.py docs/speed.json docs/speed.svg

To replace the data by a report of `grainstore demo --json`, which has one group of bars for each folder of files:

    grainstore demo --json > report.json
    python3 benches/chart.py --demo report.json --origin "MACHINE, DISK, DATE" docs/speed.json docs/speed.svg

It needs nothing but the standard library. The chart has no background, and its text follows the page's colour scheme.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path

LEFT, WIDTH, BAR, GAP = 150, 430, 18, 26
COLOURS = {"grainstore": "#3b82d6", "files, 16 threads": "#9a9a9a", "files, one by one": "#c4c4c4"}
STYLE = "text { fill: #333 } .group { font-weight: bold } @media (prefers-color-scheme: dark) { text { fill: #ccc } }"


def group_of(folder: dict) -> dict:
    """One group of bars from a folder of a report of `grainstore demo --json`."""
    mean_len = folder["payload_bytes"] / folder["samples"]
    size = f"{mean_len / 1000:.0f} KB" if mean_len >= 1000 else f"{mean_len:.0f} bytes"
    sources = {"grainstore": "epoch", "files, 16 threads": "files_16_threads", "files, one by one": "files_one_by_one"}
    rates = {name: round(folder[source]["mb_per_s"]) for name, source in sources.items()}
    return {"name": f"{folder['samples']:,} files of {size}", "rates": rates}


def text(x: float, y: float, words: str, more: str = "") -> str:
    return f'<text x="{x}" y="{y}"{more}>{escape(words)}</text>'


def draw(data: dict) -> str:
    """The chart as SVG."""
    longest = max(rate for group in data["groups"] for rate in group["rates"].values())
    lines, y = [], 24
    lines.append(text(0, y - 8, "One shuffled epoch, caches cold, MB/s (longer is faster)"))
    for group in data["groups"]:
        y += GAP
        lines.append(text(0, y - 8, group["name"], ' class="group"'))
        for name, rate in group["rates"].items():
            width = max(1.0, WIDTH * rate / longest)
            lines.append(text(LEFT - 8, y + 13, name, ' text-anchor="end"'))
            lines.append(f'<rect x="{LEFT}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{COLOURS[name]}"/>')
            lines.append(text(round(LEFT + width + 6, 1), y + 13, f"{rate:,.0f}"))
            y += BAR
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 640 {y + 8}" role="img" '
        'font-family="sans-serif" font-size="13">\n'
        "<title>One shuffled epoch in MB/s: grainstore, and the same files in the same order</title>\n"
        f"<desc>{escape(data['origin'])}</desc>\n<style>{STYLE}</style>\n"
    )
    return head + "\n".join(lines) + "\n</svg>\n"


def main() -> None:
    parser = argparse.ArgumentParser(description="Draws the chart of the README.")
    parser.add_argument("--demo", type=Path, help="a report of `grainstore demo --json`")
    parser.add_argument("--origin", help="where and when the report was made (with --demo)")
    parser.add_argument("data", type=Path)
    parser.add_argument("chart", type=Path)
    arguments = parser.parse_args()
    data = json.loads(arguments.data.read_text())
    if arguments.demo:
        if arguments.origin is None:
            parser.error("--demo needs --origin: a chart names its machine and date")
        data["origin"] = arguments.origin
        data["groups"] = [group_of(folder) for folder in json.loads(arguments.demo.read_text())["folders"]]
        arguments.data.write_text(json.dumps(data, indent=2) + "\n")
    arguments.chart.write_text(draw(data))


if __name__ == "__main__":
    main()
