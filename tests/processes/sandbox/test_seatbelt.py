"""The profile for macOS, as text."""

import re

from handrail.processes.sandbox.plan import NetworkReach, PathAccess, Plan, is_covered, make_plan
from handrail.processes.sandbox.seatbelt import profile, quote, wrap
from tests.processes.sandbox.test_plan import AROUND, ON

PLAN = make_plan(ON, AROUND)
RULE = re.compile(r"\((allow|deny) (file-read\*|file-write\*|file-read\* file-write\*) \(subpath \"(.*)\"\)\)")


def decided(text: str, action: str, path: str) -> bool:
    """What the profile says, the last rule that fits deciding."""
    answer = False
    for line in text.splitlines():
        found = RULE.fullmatch(line)
        if found and action in found[2] and is_covered(path, [found[3]]):
            answer = found[1] == "allow"
    return answer


def test_the_last_rule_that_fits_says_what_the_plan_says() -> None:
    text = profile(PLAN)

    for path in (
        "/usr/bin/env",
        "/etc/shadow",
        "/home/dev/notes",
        "/home/dev/.gitconfig",
        "/home/dev/proj/src/a.py",
        "/home/dev/proj/.git/hooks/x",
        "/home/dev/proj/.handrail/settings.json",
    ):
        access = PLAN.access(path)
        assert decided(text, "file-read*", path) is (access in (PathAccess.READ, PathAccess.WRITE)), path
        assert decided(text, "file-write*", path) is (access is PathAccess.WRITE), path
    assert decided(text, "file-write*", PLAN.tmp + "/x")


def test_everything_else_is_denied_and_there_is_no_network() -> None:
    text = profile(PLAN)

    assert text.startswith("(version 1)\n(deny default)\n")
    assert "network" not in text
    assert text.count("(") == text.count(")")


def test_the_network_opens_only_with_that_of_the_machine() -> None:
    fields = (PLAN.marks, PLAN.guarded, PLAN.pinned, PLAN.tmp)

    assert "network" not in profile(Plan(*fields, NetworkReach.PROXY))
    assert "(allow network*)" in profile(Plan(*fields, NetworkReach.HOST))


def test_a_path_cannot_break_out_of_its_quotes() -> None:
    assert quote('/a"b\\c') == '"/a\\"b\\\\c"'


def test_what_is_protected_cannot_be_moved_away() -> None:
    assert '(deny file-write-unlink (literal "/home/dev/proj/.git"))' in profile(PLAN)


def test_the_command_follows_the_profile() -> None:
    assert wrap(PLAN, ["ls", "-l"])[-2:] == ["ls", "-l"]
