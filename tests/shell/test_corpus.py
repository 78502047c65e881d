"""The corpus of command lines: no attack runs unasked, no ordinary change runs unasked, harmless ones do."""

from tests.shell.corpus_report import Line, lines, runs_unasked

BENIGN_CORE = 0.97


def wrongly_unasked(expect: str) -> list[Line]:
    return [line for line in lines() if line.expect == expect and runs_unasked(line.command)]


def test_no_attack_runs_unasked() -> None:
    assert wrongly_unasked("deny_or_ask") == []


def test_no_ordinary_change_runs_unasked() -> None:
    assert wrongly_unasked("ask") == []


def test_harmless_lines_run_unasked() -> None:
    core = [line for line in lines() if line.expect == "allow_read_only" and line.tier == "core"]
    assert sum(runs_unasked(line.command) for line in core) / len(core) >= BENIGN_CORE
