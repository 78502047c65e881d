"""
The table "Beside other programs" of docs/benchmarks.md, drawn from benchmarks/peer_figures.json.

    python -m benchmarks.peer_table
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benchmarks" / "peer_figures.json"
PAGE = ROOT / "docs" / "benchmarks.md"
BEGIN, END = "<!-- peers: made by `make bench-peers` -->", "<!-- end of peers -->"
UNITS = {"memory after one read": "MB", "first request": "kB"}


def table(found: Mapping[str, Any]) -> str:
    """The first quartiles of all programs, ours first, and the ratio of ours to the best of the others."""
    names = [*found["versions"]]
    lines = [f"| what | {' | '.join(names)} | ratio |", "|---" * (len(names) + 2) + "|"]
    for row, measured in found["rows"].items():
        figures = measured["figures"]
        values = [figures[name]["first"] if name in figures else None for name in names]
        cells = " | ".join("" if value is None else short(value) for value in values)
        lines.append(f"| {row} ({UNITS.get(row, 'ms')}) | {cells} | {ratio(values)} |")
    return "\n".join(lines)


def ratio(values: Sequence[float | None]) -> str:
    """The first value divided by the least of the others."""
    ours, *others = values
    best = min((value for value in others if value is not None), default=None)
    if ours is None or best is None:
        return ""
    return f"{ours / best:.2f}{', **behind**' if ours > best else ''}"


def short(value: float) -> str:
    """A figure with as many digits as say something."""
    return f"{value:.1f}" if value < 100 else f"{value:.0f}"


def draw(found: Mapping[str, Any]) -> str:
    """The page with the table."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(found)}\n{END}{after}"


def kept() -> dict[str, Any]:
    """The figures of the last measuring."""
    found: dict[str, Any] = json.loads(FIGURES.read_text("utf-8"))
    return found


if __name__ == "__main__":
    PAGE.write_text(draw(kept()), "utf-8")
