"""The corpora: what a rule matches, what becomes of a path or a URL, and of each command line, as decisions."""

from pathlib import Path
from typing import Any

import pytest

from handrail.permissions.matching import all_matches
from tests.permissions.world import World, lines
from tests.shell.corpus_report import lines as command_lines
from tests.shell.corpus_report import runs_unasked

ACCEPTABLE = {
    "error_or_ask": {"error", "ask"},
    "ask_or_error": {"error", "ask"},
    "deny_or_ask": {"deny", "ask"},
    "allow_or_ask": {"allow", "ask"},
    "ask_or_upgrade": {"ask", "allow"},  # the tool rewrites it to https, which the rule allows
    "ask_or_mode": {"ask"},
    "ask_always": {"ask"},
    "no_escape": {"allow", "ask", "deny", "error"},
}


@pytest.mark.proves("G22")
@pytest.mark.parametrize("line", lines("rules"), ids=lambda line: f"{line['id']} {line['rule']}")
def test_a_rule_matches_what_it_says(line: dict[str, Any], tmp_path: Path) -> None:
    world = World(tmp_path, cwd=line.get("cwd", "/home/dev/proj"), source_dir=line.get("rule_source_dir", ""))
    world.build(line.get("fs", {}))
    world.rules = {line["rule_kind"]: [line["rule"]]}

    found = all_matches(world.case(line["tool"], line["input"]))

    assert bool(found) == line["match"], line["why"]


@pytest.mark.parametrize("line", lines("paths"), ids=lambda line: f"{line['id']} {line['file_path']!r}")
def test_a_path_is_decided_as_expected(line: dict[str, Any], tmp_path: Path) -> None:
    world = World(tmp_path, line["cwd"], line["home"], line["working_dirs"])
    world.build(line.get("fs", {}))
    tool = "Read" if line["operation"] == "read" else "Write"
    expected = ACCEPTABLE.get(line["expect"], {line["expect"]})

    assert world.says(tool, {"file_path": line["file_path"]}) in expected, line["why"]

    if line["expect"] == "ask_always":
        for mode in ("acceptEdits", "auto"):
            world.mode = mode
            assert world.says(tool, {"file_path": line["file_path"]}) == "ask", mode
    if line["expect"] == "ask_or_mode":
        world.mode = "acceptEdits"
        assert world.says(tool, {"file_path": line["file_path"]}) == "allow"


@pytest.mark.parametrize("line", lines("urls"), ids=lambda line: f"{line['id']} {line['url']}")
def test_a_url_is_judged_as_expected(line: dict[str, Any], tmp_path: Path) -> None:
    world = World(tmp_path, rules=line["rules"])

    assert world.says("WebFetch", {"url": line["url"]}) in ACCEPTABLE.get(line["expect"], {line["expect"]}), line["why"]


def test_no_attack_and_no_change_runs_unasked(tmp_path: Path) -> None:
    world = World(tmp_path)
    wrong = [
        line for line in command_lines() if line.expect != "allow_read_only" and world.bash(line.command) == "allow"
    ]

    assert wrong == []


def test_no_attempt_at_what_manuals_offer_runs_unasked(tmp_path: Path) -> None:
    world = World(tmp_path)
    for name in ("f", "a", "b", "x", "sub/y"):
        world.file(name)

    assert [line for line in lines("attempts") if world.bash(line) == "allow"] == []


def test_ordinary_changes_are_asked_for_and_not_refused(tmp_path: Path) -> None:
    world = World(tmp_path)

    assert [line for line in command_lines() if line.expect == "ask" and world.bash(line.command) != "ask"] == []


def test_what_the_analysis_calls_harmless_runs_unasked(tmp_path: Path) -> None:
    world = World(tmp_path)
    harmless = [line for line in command_lines() if line.expect == "allow_read_only" and runs_unasked(line.command)]

    assert [line for line in harmless if world.bash(line.command) != "allow"] == []
    assert len(harmless) > 200
