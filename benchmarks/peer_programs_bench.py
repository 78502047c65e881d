"""
Whole sessions of handrail beside those of other programs, in one run.

    make bench-peers                                        (installs what is compared: scripts/peers)
    .venv-peers/bin/python -m benchmarks.peer_programs_bench [--json] [--keep] [--only ROWS]

All programs and the model, a server of scripted answers, run in namespaces in which there is nothing but loopback. For
every row the programs take turns, so that a busy machine slows all of them; the first round only warms the disk. The
table holds first quartiles, because other work on the machine only ever adds time; medians are kept beside them.
"""

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from benchmarks.loopback import enter_loopback
from benchmarks.peer_programs import NPM, PROGRAMS, ROOT, Program
from benchmarks.peer_rows import SCENARIOS, Place, prepare, searches
from benchmarks.peer_session import MeasureError
from benchmarks.peer_table import FIGURES, PAGE, draw, kept, table
from benchmarks.search_bench import grow

ROUNDS, MINUTES = 9, 60.0
GIT = ("git", "-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.looseCompression=0", "-c", "gc.auto=0")
Samples = dict[str, dict[str, list[float]]]
"""By row and program."""


def tree(folder: Path) -> Path:
    """A git tree of more than 30,000 files: copies of the packages of our own environment."""
    folder.mkdir()
    grow(folder, next((ROOT / ".venv" / "lib").glob("*/site-packages")))
    # a link to one of these files that is made or removed elsewhere changes its ctime, and is no change here
    for words in (("init", "-q"), ("config", "core.trustctime", "false"), ("add", "-A"), ("commit", "-qm", "all")):
        subprocess.run([*GIT, *words], cwd=folder, check=True, capture_output=True)
    return folder


def places(root: Path, homes: Path, programs: Sequence[Program], *, with_tree: bool) -> dict[str, Place]:
    """The place of each program; they share the folders and have homes of their own."""
    folder = root / "folder"
    folder.mkdir()
    prepare(folder)
    many = tree(root / "tree") if with_tree else folder
    found = {}
    for number, program in enumerate(programs):
        home = homes / str(number)
        home.mkdir()
        found[program.name] = Place(folder, many, home)
    return found


async def measure(
    programs: Sequence[Program], where: Mapping[str, Place], chosen: argparse.Namespace
) -> tuple[Samples, list[float]]:
    """The figures of all rounds but the first, and the load of the machine after each round."""
    samples: Samples = {}
    loads: list[float] = []
    end = time.monotonic() + 60 * chosen.minutes
    scenarios = [scenario for scenario in SCENARIOS if not chosen.only or scenario.__name__ in chosen.only]
    for number in range(chosen.rounds + 1):
        if number > 2 and time.monotonic() > end:
            break
        at = number % len(programs)  # each round begins with another one
        for scenario in scenarios:
            for program in (*programs[at:], *programs[:at]):
                try:
                    figures = await scenario(program, where[program.name])
                except MeasureError as problem:
                    print(f"{program.name}, {scenario.__name__}: {problem}", file=sys.stderr)
                    continue
                for row, figure in figures.items():
                    samples.setdefault(row, {}).setdefault(program.name, []).extend([figure] if number else [])
        loads.append(round(os.getloadavg()[0], 1))
        print(f"round {number} of {chosen.rounds}, load {loads[-1]}", file=sys.stderr)
    return samples, loads


def summary(values: Sequence[float]) -> dict[str, float]:
    """First quartile, median and third quartile."""
    quartiles = statistics.quantiles(values, n=4, method="inclusive")
    return dict(zip(("first", "median", "third"), (round(value, 3) for value in quartiles), strict=True))


def summaries(samples: Mapping[str, list[float]], programs: Sequence[Program]) -> dict[str, dict[str, float]]:
    """The summary of each program that was measured at least twice, in their order."""
    names = [program.name for program in programs]
    return {name: summary(samples[name]) for name in names if len(samples.get(name, ())) > 1}


def compare(chosen: argparse.Namespace) -> dict[str, Any]:
    """Versions, load and rows, measured now."""
    programs = [program for program in PROGRAMS if program.is_installed()]
    NPM.mkdir(exist_ok=True)
    within = partial(tempfile.TemporaryDirectory, ignore_cleanup_errors=True)
    # codex wants no home below /tmp
    with within(prefix="handrail-peers-") as made, within(prefix="home-", dir=NPM) as homes:
        with_tree = not chosen.only or searches.__name__ in chosen.only
        where = places(Path(made).resolve(), Path(homes), programs, with_tree=with_tree)
        versions = {program.name: program.version(where[program.name].home) for program in programs}
        samples, loads = asyncio.run(measure(programs, where, chosen))
    run = {"rounds": len(loads) - 1, "load": [min(loads), max(loads)]}
    rows = {row: {**run, "figures": summaries(each, programs)} for row, each in samples.items()}
    return {"versions": versions, "rows": rows}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--json", action="store_true", help="print all figures as JSON")
    parser.add_argument("--keep", action="store_true", help="keep them, and draw the table of docs/benchmarks.md")
    names = [scenario.__name__ for scenario in SCENARIOS]
    parser.add_argument("--only", nargs="+", choices=names, default=(), help="measure only these, and keep the others")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="at least 2")
    parser.add_argument("--minutes", type=float, default=MINUTES, help="begin no round after so many")
    chosen = parser.parse_args()
    enter_loopback("benchmarks.peer_programs_bench", sys.argv[1:])
    found = compare(chosen)
    if chosen.only:
        found = {**found, "rows": {**kept()["rows"], **found["rows"]}}
    print(json.dumps(found, indent=1) if chosen.json else table(found))
    if chosen.keep:
        FIGURES.write_text(json.dumps(found, indent=1) + "\n", "utf-8")
        PAGE.write_text(draw(found), "utf-8")


if __name__ == "__main__":
    main()
