"""What people see of a batch: how far it is, and the report."""

import sys
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.batch.outcome import CellStatus
from handrail.batch.results import CellResult
from handrail.cli.stats import dollars_text, seconds_text, section, short
from handrail.cli.terminal import ReportScreen
from handrail.conversation.plain import plain
from handrail.tools.wording import several

PAUSE = 30.0
"""Seconds between two lines that are not for a terminal."""
REDRAW = 0.2
MOST_ERRORS = 20
MOST_TEXT = 300


class BatchProgress:
    """Says on standard error how far a batch is: on a terminal in one line, else in a line now and then."""

    def __init__(self, total: int, before: Sequence[CellResult]) -> None:
        self._total = total
        self._done = self._before = len(before)
        self._solved = sum(each.status == CellStatus.SOLVED.value for each in before)
        self._dollars = sum(cost_of(each) for each in before)
        self.infrastructure = 0
        self._first_error = ""
        self._started = self._shown = time.monotonic()
        self._is_terminal = sys.stderr.isatty()
        if before:
            sys.stderr.write(f"handrail: {len(before):,} of {several(total, 'cell')} finished already\n")
        if self._is_terminal:
            self._write()

    def add(self, result: CellResult) -> None:
        """One more is finished."""
        self._done += result.is_final
        self._solved += result.status == CellStatus.SOLVED.value
        self.infrastructure += not result.is_final
        if not result.is_final and not self._first_error:
            self._first_error = f"{result.task}: {result.why}: {short(result.text, MOST_TEXT)}"
        self._dollars += cost_of(result)
        now = time.monotonic()
        if now - self._shown >= (REDRAW if self._is_terminal else PAUSE):
            self._shown = now
            self._write()

    def end(self, folder: Path, *, is_stopped: bool) -> None:
        """Say what came of it, and what comes next."""
        self._write()
        self.end_line()
        if self._first_error:
            sys.stderr.write(f"handrail: {plain(self._first_error)}\n")
        report = f"`handrail batch report {folder}` adds it up."
        if is_stopped:
            report = "It was stopped. The same command goes on with what is missing."
        elif self.infrastructure:
            report += " The same command tries again what the infrastructure ended."
        sys.stderr.write(f"handrail: {plain(report)}\n")
        sys.stderr.flush()

    def end_line(self) -> None:
        """On a terminal, let what follows begin in a line of its own."""
        if self._is_terminal:
            sys.stderr.write("\n")

    def _write(self) -> None:
        begin, end = ("\r\x1b[K", "") if self._is_terminal else ("handrail: ", "\n")
        sys.stderr.write(f"{begin}{self._text()}{end}")
        sys.stderr.flush()

    def _text(self) -> str:
        minutes = max(time.monotonic() - self._started, 0.001) / 60
        parts = [f"{self._done:,} of {several(self._total, 'cell')} done", f"{self._solved:,} solved"]
        parts += [several(self.infrastructure, "infrastructure error")] if self.infrastructure else []
        parts += [dollars_text(self._dollars), f"{(self._done - self._before) / minutes:.1f} a minute"]
        return ", ".join(parts)


def cost_of(result: CellResult) -> float:
    """What all attempts of a cell cost, as far as that is known."""
    return (result.dollars or 0.0) + result.lost_dollars


# The report

HEAD = ("", "solved", "of", "rate", "95 % interval", "cost", "per solve", "time", "turns", "denied", "unasked", "")


def report_lines(figures: Mapping[str, Any], screen: ReportScreen) -> Iterator[str]:
    """The tables, and what has to be known to read them."""
    total, rows = figures["total"], figures["groups"]
    shown = [*rows, {"name": "all", **total}] if len(rows) > 1 else rows
    title = "model and settings" if figures["by"] == "column" else figures["by"]
    yield from screen.wrap(head(figures))
    yield from section(screen, f"by {title}", [row_of(row) for row in shown], HEAD)
    passes = [(row["name"], *pass_cells(rate)) for row in rows for rate in row["pass"]]
    yield from section(screen, "several trials", passes, ("", "k", "pass@k", "pass^k", "tasks"))
    failures = [(f"{count:,}", why) for why, count in total["failures"].items()]
    yield from section(screen, "failed by", failures)
    if figures["comparison"]:
        yield from ("", screen.heading("comparison"), *screen.wrap(f"  {comparison_text(figures['comparison'])}", 2))
    yield from section(screen, "infrastructure errors", error_rows(figures["infrastructure"]))
    yield from notes(figures, screen)


def head(figures: Mapping[str, Any]) -> str:
    """The first line."""
    total = figures["total"]
    parts = [f"{total['solved']:,} of {several(total['counted'], 'cell')} solved"]
    for name, text in (("unchecked", "without a check"), ("infrastructure", "ended by the infrastructure")):
        parts += [f"{total[name]:,} {text}"] if total[name] else []
    parts += [f"{figures['missing']:,} not run yet"] if figures["missing"] else []
    return "; ".join(parts)


def row_of(row: Mapping[str, Any]) -> Sequence[str]:
    """The cells of a group."""
    low, high = row["interval"] or (0.0, 0.0)
    per_solve = row["cost_per_solve_usd"]
    return (
        short(row["name"], 40),
        f"{row['solved']:,}",
        f"{row['counted']:,}",
        "-" if row["rate"] is None else f"{row['rate']:.1%}",
        f"{low:.1%} to {high:.1%}" if row["interval"] else "-",
        dollars_text(row["cost_usd"]) + ("+" if row["unpriced"] else ""),
        "-" if per_solve is None else dollars_text(per_solve),
        "-" if row["median_seconds"] is None else seconds_text(row["median_seconds"]),
        "-" if row["median_turns"] is None else f"{row['median_turns']:g}",
        f"{row['denials']:,}",
        f"{row['unasked']:,}",
        "",
    )


def pass_cells(rate: Mapping[str, Any]) -> Sequence[str]:
    """The cells of one k."""
    return str(rate["k"]), f"{rate['pass_at_k']:.1%}", f"{rate['pass_all_k']:.1%}", f"{rate['tasks']:,}"


def comparison_text(found: Mapping[str, Any]) -> str:
    """What the pairs of two columns say."""
    first, second = found["first"], found["second"]
    left_out = f" {found['left_out']:,} without a partner that counts are left out." if found["left_out"] else ""
    return (
        f"{several(found['pairs'], 'pair')}: both solved {found['both']:,}, only {first} {found['only_first']:,}, "
        f"only {second} {found['only_second']:,}, neither {found['neither']:,}; "
        f"exact McNemar p = {found['p']:.3g}.{left_out}"
    )


def error_rows(errors: Sequence[Mapping[str, Any]]) -> list[Sequence[str]]:
    """A row for each error; the rest is counted."""
    rows: list[Sequence[str]] = []
    for each in errors[:MOST_ERRORS]:
        text = f"{each['why']}: {short(each['text'], MOST_TEXT)}"
        rows.append((f"{each['task']} {each['trial']}", each["model"], each["settings"], text))
    if more := len(errors) - len(rows):
        rows.append((f"and {more:,} more", "", "", "--json lists all"))
    return rows


def notes(figures: Mapping[str, Any], screen: ReportScreen) -> Iterator[str]:
    """What limits the figures."""
    total = figures["total"]
    lost, foreign = dollars_text(total["lost_usd"]), several(figures["foreign"], "result")
    found = [
        (total["pass"], "Trials of one task resemble each other; the interval takes that into account."),
        (total["unpriced"], f"The price of {several(total['unpriced'], 'cell')} is not known: + means at least."),
        (total["lost_usd"], f"{lost} of the cost went to attempts that the infrastructure ended, and is in no solve."),
        (
            figures["replaced"],
            f"{several(figures['replaced'], 'result')} of cells that changed since are left out.",
        ),
        (figures["foreign"], f"{foreign}, not written by your handrail on this machine, cannot be vouched for."),
        (figures["damaged_lines"], f"{several(figures['damaged_lines'], 'line')} of results.jsonl cannot be read."),
    ]
    for is_so, text in found:
        if is_so:
            yield from ("", *screen.wrap(text))
