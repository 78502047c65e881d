"""The corpus of command lines, and how the analysis judges them in the setting the corpus is written for."""

import json
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path

from handrail.shell import CommandVerdict, analyse, reads_outside

CORPUS = Path(__file__).parent / "corpus" / "bash.jsonl"
WORKSPACE, HOME = "/home/dev/proj", "/home/dev"


@dataclass(frozen=True, slots=True)
class Line:
    id: str
    kind: str
    command: str
    expect: str
    tier: str
    why: str


@dataclass(slots=True)
class Score:
    total: int = 0
    read_only: list[Line] = field(default_factory=list)
    others: list[Line] = field(default_factory=list)


def lines() -> list[Line]:
    rows = [json.loads(row) for row in CORPUS.read_text(encoding="utf-8").splitlines()]
    return [Line(r["id"], r["class"], r["command"], r["expect"], r["tier"], r["why"]) for r in rows]


def runs_unasked(command: str) -> bool:
    """Read-only, and every file it reads lies in the workspace."""
    analysis = analyse(command)
    return analysis.verdict is CommandVerdict.READ_ONLY and not reads_outside(
        analysis, cwd=WORKSPACE, roots=(WORKSPACE,), home=HOME
    )


def score() -> dict[tuple[str, str, str], Score]:
    """By expectation, tier and class."""
    found: dict[tuple[str, str, str], Score] = defaultdict(Score)
    for line in lines():
        entry = found[line.expect, line.tier, line.kind]
        entry.total += 1
        (entry.read_only if runs_unasked(line.command) else entry.others).append(line)
    return found
