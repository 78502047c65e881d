"""Hooks whose script or matcher cannot work: found before they are needed, never by mistake."""

from pathlib import Path

import pytest

from handrail.hooks.matcher_check import matcher_problem
from handrail.hooks.scripts import missing_script, project_variables
from handrail.hooks.specs import CommandHook, HookSource
from handrail.permissions.rules import RuleSource


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("./guard.sh", ""),
        ("./gone.sh", "./gone.sh"),
        ("./gone.sh --strict", "./gone.sh"),
        ('"$CLAUDE_PROJECT_DIR"/guard.sh', ""),
        ('"$CLAUDE_PROJECT_DIR/gone.sh"', "{cwd}/gone.sh"),
        ("${CLAUDE_PROJECT_DIR}/gone.sh", "{cwd}/gone.sh"),
        ("~/gone.sh", "{home}/gone.sh"),
        ("bash gone.sh", "gone.sh"),
        ("bash guard.sh", ""),
        ("/usr/bin/env bash gone.sh", "gone.sh"),
        ("env A=1 bash guard.sh", ""),
        ("no-such-program-here", "no-such-program-here"),
        ("sh -c 'gone.sh'", ""),
        ("bash -x gone.sh", ""),
        ("$UNKNOWN/guard.sh", ""),
        ("A=1 ./gone.sh", ""),
        ("test -f x && ./gone.sh", ""),
        ("echo no; exit 2", ""),
        ("exit 2", ""),
        ("cat > seen.json", ""),
        ('echo "unbalanced', ""),
    ],
)
def test_a_script_is_missed_only_if_it_is_surely_not_there(command: str, missing: str, tmp_path: Path) -> None:
    folder = tmp_path / "a folder"
    folder.mkdir()
    (folder / "guard.sh").touch()
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nowhere", **project_variables(HookSource("user"), str(folder))}

    found = missing_script(CommandHook(command), str(folder), env)

    assert found == missing.format(cwd=folder, home="/nowhere")


def test_a_program_without_a_shell_is_looked_for_as_it_is(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin"}

    assert missing_script(CommandHook("sh", ("gone.sh",)), str(tmp_path), env) == "gone.sh"
    assert missing_script(CommandHook("./gone", ()), str(tmp_path), env) == "./gone"
    assert missing_script(CommandHook("env", ()), str(tmp_path), env) == ""


@pytest.mark.parametrize(
    ("matcher", "meant", "broad"),
    [
        ("bash", {"Bash"}, False),
        ("Bash|bash", {"Bash"}, False),
        ("edit|Wirte", {"Edit", "Write"}, False),
        ("Shell", {"Bash", "PowerShell", "Monitor"}, False),
        ("^bash$", {"Bash"}, False),
        ("Frobnicate", set(), True),
        ("^Frob$", set(), True),
    ],
)
def test_a_matcher_that_fits_no_tool_says_which_it_may_have_meant(matcher: str, meant: set[str], broad: bool) -> None:
    found = matcher_problem(matcher, "hooks.PreToolUse[0].matcher", RuleSource("project"))

    assert found is not None
    assert ({rule.tool for rule in found.meant}, found.broad) == (meant, broad)


@pytest.mark.parametrize(
    "matcher",
    [
        "",
        "*",
        "Bash",
        "Edit|Write|MultiEdit",
        "Task",
        "mcp__memory__.*",
        "mcp__.*",
        "Notebook.*",
        ".*delete.*",
        "deploy",
        "^(Bash|Edit)$",
        "[broken",
    ],
)
def test_a_matcher_that_fits_a_tool_or_may_fit_one_of_a_server_is_fine(matcher: str) -> None:
    assert matcher_problem(matcher, "here", RuleSource("project"), {"deploy"}) is None
