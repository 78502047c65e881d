"""
The table of docs/benchmarks.md: what matters most, each row as a ratio to something measured in the same run.

    python -m benchmarks.table            measure all rows, keep them in benchmarks/figures.json, and draw
    python -m benchmarks.table --draw     draw the table and the picture of what is kept

Several minutes. A row is the quotient of two figures of one benchmark, which takes turns between them, so that a busy
machine slows both. The bar of a row is what we want to reach; where that is known in milliseconds only, it is divided
by what the floor (a program with httpx2, from its start to its request) takes at rest.
"""

import argparse
import json
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import Any, NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FIGURES = ROOT / "benchmarks" / "figures.json"
PAGE = ROOT / "docs" / "benchmarks.md"
PICTURE = ROOT / "docs" / "pictures" / "benchmarks.svg"
BEGIN, END = "<!-- table: made by `make bench-table` -->", "<!-- end of table -->"
FLOOR_AT_REST = 270.0
FIRST, STREAM, SEARCH = "first_call_bench", "stream_bench", "session_search_bench"


class Row(NamedTuple):
    """One line of the table: the figure of a benchmark, what it is divided by, and the bar of the quotient."""

    name: str
    bench: str
    figure: str
    base: str
    """The figure to divide by; empty if the figure is a quotient already."""
    beside: str
    """What that is, in words."""
    bar: float


def by_floor(name: str, bench: str, figure: str, milliseconds: float) -> Row:
    """A row that is compared with the floor, and whose bar is known in milliseconds."""
    return Row(name, bench, figure, "floor", "floor", milliseconds / FLOOR_AT_REST)


ROWS = (
    Row("start to first request", "start_bench", "handrail -p / floor", "", "floor", 1.15),
    Row(
        "start without bytecode", "start_bench", "the same / floor without bytecode", "", "floor without bytecode", 1.1
    ),
    Row("start with an MCP server whose tools are known", "start_bench", "with a known MCP server / without", "",
        "start without it", 1.3),
    by_floor("first call, the model answers at once", FIRST, "one read, model answers at once", 40),
    by_floor("first call, the model thought for 0.8 s", FIRST, "one read, model thought for 0.8 s", 20),
    by_floor("ten reads as first calls, at once", FIRST, "ten reads, at once", 38),
    by_floor("ten reads, warm", FIRST, "ten reads, warm", 8),
    Row("eight `sleep 0.2` as first calls, at once", FIRST, "eight sleeps of 0.2 s, at once", "sleep", "0.2 s", 1.23),
    Row("eight `sleep 0.2`, after 0.8 s", FIRST, "eight sleeps of 0.2 s, after 0.8 s", "sleep", "0.2 s", 1.11),
    by_floor("a turn with one read, the 2nd to the 10th", FIRST, "a turn with one read, the second to the tenth", 4),
    by_floor("an argument of 60 kB as first call", FIRST, "60 kB argument, at once", 120),
    by_floor("a command inside the stream starts, first call", STREAM, "changing command, first call", 10),
    by_floor("a command inside the stream starts, second call", STREAM, "changing command, second call", 5),
    by_floor("a command at the head of an answer that comes at once", STREAM, "changing command at the head", 40),
    Row("the request after it", STREAM, "changing command, next request", "stream", "the stream", 1.004),
    Row("Glob `**/*.py`, newest first, whole turn", SEARCH, "Glob **/*.py, whole turn", "", "rg --files", 1.5),
    Row("Glob `**/*`, newest first, whole turn", SEARCH, "Glob **/*, whole turn", "", "rg --files", 3.0),
    Row("Grep, a rare literal, whole turn", SEARCH, "Grep, a rare literal, whole turn", "", "rg", 1.08),
    Row("start in a git tree of 31,000 files", SEARCH, "start in a git tree of 31,000 files", "", "an empty one", 1.3),
    Row("start with 10,000 rules", SEARCH, "start with 10,000 rules", "", "ten rules", 1.3),
    Row("first call with 10,000 rules", SEARCH, "first call with 10,000 rules", "", "ten rules", 2.0),
    Row("one call per turn, the executor", "engine_bench", "ours / bare, 1 per turn", "", "bare event loop", 5.9),
    Row("ten calls per turn, the executor", "engine_bench", "ours / bare, 10 per turn", "", "bare event loop", 8.8),
    Row("a call that declares a file", "engine_bench", "Editing: 100 queued (us)", "Trivial: 100 queued (us)",
        "a call that declares none", 1.5),
    Row("one call per turn through `Agent`", "agent_bench", "through Agent / bare event loop", "",
        "bare event loop", 18.4),
    Row("500 conversations at once, CPU per turn", "agent_bench", "500 conversations / one", "", "one alone", 1.2),
)  # fmt: skip


@cache
def run(bench: str) -> dict[str, Any]:
    """The figures of one benchmark."""
    print(f"benchmarks.{bench}", file=sys.stderr)
    done = subprocess.run(
        [sys.executable, "-m", f"benchmarks.{bench}", "--json"], cwd=ROOT, stdout=subprocess.PIPE, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def quotient(row: Row) -> float:
    """The ratio of a row, measured now."""
    figures = run(row.bench)
    figure = figures[row.figure]
    if isinstance(figure, dict):
        return float(figure["ms"] / figure["base"])
    return float(figure / figures[row.base] if row.base else figure)


def table(ratios: dict[str, float]) -> str:
    """The table for docs/benchmarks.md."""
    lines = ["| what | beside | ratio | bar |", "|---|---|---|---|"]
    for row in ROWS:
        ratio = ratios[row.name]
        missed = "" if ratio <= row.bar else ", **missed**"
        lines.append(f"| {row.name} | {row.beside} | {short(ratio)} | {short(row.bar)}{missed} |")
    return "\n".join(lines)


def short(value: float) -> str:
    """A ratio with as many digits as say something."""
    return f"{value:.3f}" if value < 0.1 or 1 < value < 1.02 else f"{value:.2f}"


# The picture

WIDTH, LEFT, LINE, TOP, EDGE = 1010, 330, 22, 58, 16
UNIT = 150
"""The length of a bar that just meets what we want."""
LONGEST = 3.0
INK, MUTED, MET, MISSED, PAPER = "#24292f", "#6e7781", "#2da44e", "#d4722c", "#ffffff"


def picture(ratios: dict[str, float]) -> str:
    """The rows as horizontal bars, each as long as its ratio divided by its bar, as SVG."""
    height = TOP + LINE * len(ROWS) + EDGE
    middle = LEFT + UNIT
    heading = "Each ratio, divided by its bar: shorter is better, up to the line is met"
    size = f'width="{WIDTH}" height="{height}"'
    font = 'font-family="ui-sans-serif, system-ui, sans-serif" font-size="12"'
    line = f'x1="{middle}" x2="{middle}" y1="{TOP - 12}" y2="{height - EDGE}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} viewBox="0 0 {WIDTH} {height}" {font} role="img">',
        "<title>Each figure of handrail, divided by what we want to reach</title>",
        f'<rect {size} fill="{PAPER}"/>',
        f'<text x="{EDGE}" y="24" font-size="14" font-weight="600" fill="{INK}">{heading}</text>',
        *bars(ratios),
        f'<line {line} stroke="{INK}" stroke-dasharray="3 3"/>',
        f'<text x="{middle}" y="{TOP - 16}" text-anchor="middle" fill="{MUTED}">the bar</text>',
        "</svg>",
    ]
    return "\n".join(parts) + "\n"


def bars(ratios: dict[str, float]) -> Iterator[str]:
    for number, row in enumerate(ROWS):
        ratio, y = ratios[row.name], TOP + LINE * number
        share = ratio / row.bar
        length = round(min(share, LONGEST) * UNIT)
        name, beside = escape(row.name.replace("`", "")), escape(row.beside)
        more = "" if share <= LONGEST else f" ({share:.0f} times)"
        yield f'<text x="{LEFT - 8}" y="{y + 13}" text-anchor="end" fill="{INK}">{name}</text>'
        yield (
            f'<rect x="{LEFT}" y="{y + 2}" width="{length}" height="{LINE - 7}" rx="2" '
            f'fill="{MET if share <= 1 else MISSED}"/>'
        )
        yield (
            f'<text x="{LEFT + max(length, UNIT) + 8}" y="{y + 13}" fill="{MUTED}" font-size="11">'
            f"{short(ratio)} of {beside}{more}</text>"
        )


def draw(ratios: dict[str, float]) -> tuple[str, str]:
    """The page with its table, and the picture."""
    before, _, rest = PAGE.read_text("utf-8").partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n{table(ratios)}\n{END}{after}", picture(ratios)


def kept() -> dict[str, float]:
    """The ratios of the last measuring."""
    found: dict[str, float] = json.loads(FIGURES.read_text("utf-8"))
    return found


def main(words: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="only draw what was measured before")
    if not parser.parse_args(words).draw:
        measured = {row.name: round(quotient(row), 4) for row in ROWS}
        FIGURES.write_text(json.dumps(measured, indent=1, ensure_ascii=False) + "\n", "utf-8")
    page, drawn = draw(kept())
    PAGE.write_text(page, "utf-8")
    PICTURE.write_text(drawn, "utf-8")


if __name__ == "__main__":
    main()
