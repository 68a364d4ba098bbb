#!/usr/bin/env python3
"""Draws bars: the chart of the README, one shuffled epoch by grainstore and from plain files, and those of a comparison.

    python3 benches/compare/chart.py docs/speed.json docs/speed.svg

To replace the data by a report of `grainstore demo --json`, which has one group of bars for each folder of files:

    grainstore demo --json > report.json
    python3 benches/compare/chart.py --demo report.json --origin "MACHINE, DISK, DATE" docs/speed.json docs/speed.svg

It needs nothing but the standard library. The chart has no background, and its text follows the page's colour scheme.
"""

from __future__ import annotations

import argparse
import json
from html import escape
from pathlib import Path

LEFT, WIDTH, BAR, GAP = 150, 430, 18, 26
OURS, THREADS, OTHERS = "#3b82d6", "#9a9a9a", "#c4c4c4"
# Of a letter, about.
LETTER = 7
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


def draw(heading: str, title: str, origin: str, groups: list[dict]) -> str:
    """Groups of bars, each of a name and a rate, as SVG. Bars of all groups have one scale."""
    longest = max(rate for group in groups for rate in group["rates"].values())
    names = [name for group in groups for name in group["rates"]]
    left = max(LEFT, LETTER * max(map(len, names)) + 8)
    lines, y = [], 24
    lines.append(text(0, y - 8, heading))
    for group in groups:
        y += GAP
        lines.append(text(0, y - 8, group["name"], ' class="group"'))
        for name, rate in group["rates"].items():
            width = max(1.0, WIDTH * rate / longest)
            colour = OURS if name.startswith("grainstore") else THREADS if "16 threads" in name else OTHERS
            lines.append(text(left - 8, y + 13, name, ' text-anchor="end"'))
            lines.append(f'<rect x="{left}" y="{y}" width="{width:.1f}" height="{BAR - 3}" fill="{colour}"/>')
            lines.append(text(round(left + width + 6, 1), y + 13, f"{rate:,.0f}"))
            y += BAR
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + WIDTH + 60} {y + 8}" role="img" '
        'font-family="sans-serif" font-size="13">\n'
        f"<title>{escape(title)}</title>\n<desc>{escape(origin)}</desc>\n<style>{STYLE}</style>\n"
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
    heading = "One shuffled epoch, caches cold, MB/s (longer is faster)"
    title = "One shuffled epoch in MB/s: grainstore, and the same files in the same order"
    arguments.chart.write_text(draw(heading, title, data["origin"], data["groups"]))


if __name__ == "__main__":
    main()
