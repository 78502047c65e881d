"""`handrail stats`: what sessions cost, where their time went, which calls failed and which rules denied."""

import argparse
import csv
import os
import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.cli.audit_log import parse_since
from handrail.cli.permission_flags import warn
from handrail.cli.terminal import DIM, ReportScreen
from handrail.conversation.plain import plain, plain_json
from handrail.session.state_folder import session_store, state_folder
from handrail.view.stats import STAGES, SessionStats
from handrail.view.stats_files import read_stats

MOST_ROWS = 10
MOST_DAYS = 14
BAR, SHORT_BAR = 12, 5
NAME = 18
SOON = 1.0
LONG = 600
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Spreadsheets take a cell that begins so for a formula."""


def run(chosen: argparse.Namespace) -> int:
    """0; sessions that cannot be read are named and left out."""
    since = 0.0 if chosen.all else parse_since(chosen.since)
    folder = str(Path(chosen.folder).expanduser().resolve()) if chosen.folder else ""
    entries = session_store(os.environ).entries()
    paths = [Path(each.path) for each in entries if each.updated >= since and is_inside(each.cwd, folder)]
    progress = StatsProgress(len(paths))
    stats, problems = read_stats(paths, state_folder(os.environ), since, progress.show)
    progress.clear()
    for problem in problems:
        warn(problem)
    if chosen.json:
        print(plain_json(stats.as_json()))
    elif chosen.csv:
        write_csv(stats.table(chosen.csv))
    else:
        screen = ReportScreen(sys.stdout)
        print("\n".join(report(stats, screen, folder)))
    return 0


def is_inside(cwd: str, folder: str) -> bool:
    """Whether a session worked in a folder or below it; without a folder, all do."""
    return not folder or cwd == folder or cwd.startswith(folder.rstrip("/") + "/")


class StatsProgress:
    """Says on a terminal how many sessions were read, when that takes longer than a second."""

    def __init__(self, total: int) -> None:
        self._total = total
        self._next = time.monotonic() + SOON
        self._shown = False

    def show(self, number: int) -> None:
        """Say it, a few times a second at most."""
        if sys.stderr.isatty() and (now := time.monotonic()) >= self._next:
            self._next, self._shown = now + 0.2, True
            sys.stderr.write(f"\r{number:,} of {self._total:,} sessions ")
            sys.stderr.flush()

    def clear(self) -> None:
        """Remove what was said."""
        if self._shown:
            sys.stderr.write("\r\x1b[K")


def write_csv(rows: Sequence[Mapping[str, Any]]) -> None:
    """A table with a line of names; counts of tokens get columns of their own."""
    flat = [{name: cell(value) for name, value in flatten(row)} for row in rows]
    if flat:
        writer = csv.DictWriter(sys.stdout, list(flat[0]), lineterminator="\n")
        writer.writeheader()
        writer.writerows(flat)


def flatten(row: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """The cells of a row."""
    for name, value in row.items():
        if isinstance(value, dict):
            yield from ((f"{name}_{part}", count) for part, count in value.items())
        else:
            yield name, " ".join(value) if isinstance(value, list) else value


def cell(value: Any) -> Any:
    """A value that a spreadsheet shows and does not compute."""
    if isinstance(value, str):
        shown = plain(value)
        return f"'{shown}" if shown.startswith(FORMULA) else shown
    return value


# For people


def report(stats: SessionStats, screen: ReportScreen, folder: str = "") -> Iterator[str]:
    """The sums, and a table for each question."""
    when = f"since {time.strftime('%Y-%m-%d %H:%M', time.localtime(stats.since))}" if stats.since else "so far"
    if not stats.total["sessions"]:
        yield from screen.wrap(
            f"There are no sessions{f' in {folder}' if folder else ''} {when}. --all looks at everything that is kept."
        )
        return
    sums = stats.as_json()
    yield from screen.wrap(head(sums["total"], when))
    yield from screen.table(list(overview(sums["total"])), indent="  ")
    yield from section(screen, "by day", group_rows(sums["days"][-MOST_DAYS:], "day"), SUM_HEAD)
    for title, table, name in (("by model", "models", "model"), ("by folder", "folders", "cwd")):
        yield from section(screen, title, group_rows(sums[table][:MOST_ROWS], name), SUM_HEAD)
    yield from section(screen, "time by stage", stage_rows(stats.stages), ("", "seconds", ""))
    yield from section(
        screen, "tools", tool_rows(sums["tools"][:MOST_ROWS]), ("", "calls", "failed", "denied", "ran", "")
    )
    denials = [(f"{row['count']:,}", f"{row['rule']} ({', '.join(row['tools'])})") for row in sums["denials"]]
    yield from section(screen, "denied by", denials[:MOST_ROWS])
    slow = [
        (seconds_text(row["seconds"]), short(row["tool"], NAME), f"{short(row['subject'], 40)} {row['session'][:8]}")
        for row in sums["slowest"][:MOST_ROWS]
    ]
    yield from section(screen, "slowest calls", slow)
    more = [name for name in ("models", "folders", "tools", "denials") if len(sums[name]) > MOST_ROWS]
    if more:
        yield from ("", *screen.wrap(f"The whole tables: handrail stats --csv {'|'.join(more)}"))


SUM_HEAD = ("", "calls", "tokens", "cost", "")


def head(total: Mapping[str, Any], when: str) -> str:
    """The first line."""
    return f"{several(total['sessions'], 'session')} {when}: {several(total['turns'], 'turn')}, {calls_text(total)}"


def calls_text(total: Mapping[str, Any]) -> str:
    """The calls, and what came of them."""
    return f"{several(total['calls'], 'call')} ({total['failed']:,} failed, {total['denied']:,} denied)"


def several(count: int, noun: str) -> str:
    """A count with its noun."""
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def overview(total: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """Cost, tokens, cache and questions."""
    tokens, share = total["tokens"], total["cache_share"]
    unpriced = f", without {several(total['unpriced'], 'answer')} of unknown price" if total["unpriced"] else ""
    yield "cost", f"{dollars_text(total['dollars'])}{unpriced}"
    counts = {name: count_text(count) for name, count in tokens.items()}
    yield "tokens", f"{counts['input']} in, {counts['output']} out"
    yield "cached", f"{counts['cache_read']} read, {counts['cache_write']} written"
    yield "", "no input was counted" if share is None else f"{share:.0%} of the input came from the cache"
    unanswered = f"; {total['unanswered']:,} more with no one there to answer" if total["unanswered"] else ""
    yield "asked", f"{several(total['asked'], 'question')}{unanswered}"


def section(
    screen: ReportScreen, title: str, rows: Sequence[Sequence[str]], names: Sequence[str] = ()
) -> Iterator[str]:
    """A table below its title; nothing if it has no rows."""
    if not rows:
        return
    lines = [[" ".join(cell_text.splitlines()) for cell_text in line] for line in ((names, *rows) if names else rows)]
    last = len(lines[0]) - 1
    widths = [max(len(plain(line[at])) for line in lines) for at in range(last)]
    aligned = [
        [
            f"{cell_text:>{widths[at]}}" if 0 < at < last or (not names and at == 0) else cell_text
            for at, cell_text in enumerate(line)
        ]
        for line in lines
    ]
    shown = screen.table(aligned)
    yield from ("", screen.heading(title))
    if names:
        yield screen.paint(shown[0], DIM)
        shown = shown[1:]
    yield from shown


def group_rows(rows: Sequence[Mapping[str, Any]], name: str) -> list[Sequence[str]]:
    """A row for each part, with a bar for its cost, or for its tokens if none has a price."""
    counts = [sum(row["tokens"].values()) for row in rows]
    priced = any(row["dollars"] for row in rows)
    sizes = [row["dollars"] for row in rows] if priced else counts
    return [
        (end_of(row[name], NAME), f"{row['calls']:,}", count_text(count), dollars_text(row["dollars"]), bar)
        for row, count, bar in zip(rows, counts, bars(sizes), strict=True)
    ]


def stage_rows(stages: Mapping[str, float]) -> list[Sequence[str]]:
    """A row for each stage."""
    drawn = bars([stages[stage] for stage in STAGES])
    return [(STAGE_TEXTS[stage], f"{stages[stage]:,.1f}", bar) for stage, bar in zip(STAGES, drawn, strict=True)]


STAGE_TEXTS = {
    "model": "model answers",
    "queued": "calls queued",
    "validated": "input checked",
    "decided": "permission decided",
    "waited": "people asked",
    "ran": "tools ran",
    "fitted": "results fitted",
}


def tool_rows(rows: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    """A row for each tool."""
    drawn = bars([row["calls"] for row in rows], SHORT_BAR)
    return [
        (
            short(row["tool"], NAME),
            f"{row['calls']:,}",
            f"{row['failed']:,}",
            f"{row['denied']:,}",
            seconds_text(row["seconds"]),
            bar,
        )
        for row, bar in zip(rows, drawn, strict=True)
    ]


def bars(values: Sequence[float], most: int = BAR) -> list[str]:
    """A bar for each value, the longest for the largest."""
    block = "█" if (sys.stdout.encoding or "").lower().replace("-", "") == "utf8" else "#"
    largest = max(values, default=0.0)
    return [block * max(round(most * value / largest), 1) if value > 0 else "" for value in values]


def short(text: str, most: int) -> str:
    """The beginning of a text, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"{text[: most - 3]}..."


def end_of(text: str, most: int) -> str:
    """The end of a text, which tells most of a path, in one line."""
    text = " ".join(text.split())
    return text if len(text) <= most else f"...{text[3 - most :]}"


def count_text(count: int) -> str:
    """A count in three digits or so."""
    for size, unit in ((1_000_000_000, "G"), (1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.1f}{unit}"
    return str(count)


def dollars_text(dollars: float) -> str:
    """A cost."""
    return f"${dollars:,.2f}" if dollars >= 1 or not dollars else f"${dollars:.4f}"


def seconds_text(seconds: float) -> str:
    """A duration in a few characters."""
    if seconds >= LONG:
        return f"{seconds / 60:,.1f} min"
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
