"""`permissions explain`, `test` and `simulate` decide as a live call does, and name the same unmet condition."""

import json
import os
import shutil
from contextlib import redirect_stdout
from functools import cache
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.cli.test_permissions import bash, examples, plant, session_in

from handrail.cli.main import run

UNMET = {
    "filter.x.clean": "sets filter.x.clean, which runs a program",
    "diff.x.textconv": "sets diff.x.textconv, which runs a program",
    "diff.external": "sets diff.external, which runs a program",
    "gpg.program": "gpg.program",
    "inner": "which git enters",
    "elsewhere": "outside the workspace",
    "include": "includes",
    "program": "is a program of the project itself",
    "none": "",
}
ELSEWHERE, NAMES_PROGRAMS = "another repository", "where the repository names no programs"
PARTS = (
    "git status", "git log -1", "git diff", "git log -p -1", "git -C inner status", "cat f.txt", "ls", "touch a",
    "cat .env", "grep -r 1 .", "echo x > b.txt", "nosuch x", "cd inner && git status", "wc -l $(git ls-files)",
    "git ls-files | xargs cat", "find . -name f.txt", "cat /etc/hostname", "mkdir -p c", "cat .git/config", "git show",
    "env A=1 git status", "sh -c 'git status'", "rg 1", "[ -f f.txt ]", "for f in *.txt; do cat $f; done",
    "git blame f.txt",
)  # fmt: skip
RULES = (
    "Bash", "Bash(git status *)", "Bash(git *)", "Bash(touch *)", "Bash(ls *)", "Bash(cat *)", "Read(.env)",
    "Read(./inner/**)",
    "Bash(nosuch *)", "Edit(**)", "Edit(./b.txt)", "Read(//etc/**)", "Bash(grep *)",
)  # fmt: skip
LINES = st.builds(
    lambda parts, sign: sign.join(parts),
    st.lists(st.sampled_from(PARTS), min_size=1, max_size=3),
    st.sampled_from(("; ", " && ", " | ")),
)
SOME_RULES = st.lists(st.sampled_from(RULES), max_size=2, unique=True)


def printed(*words: str) -> dict[str, Any]:
    out = StringIO()
    with redirect_stdout(out):
        run([*words])
    told: dict[str, Any] = json.loads(out.getvalue())
    return told


def simulate(state: Path, project: Path, line: str, flags: list[str]) -> tuple[str, str]:
    """What another policy would have decided on a recorded call that ran."""
    shutil.rmtree(state, ignore_errors=True)
    session_in(state, project, "mine", line)
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("HANDRAIL_STATE_DIR", str(state))
        report = printed("permissions", "simulate", "--session", "mine", "--json", *flags)
    assert report["calls"] == 1
    changed = report["changed"]
    return (changed[0]["after"], changed[0]["reason"]) if changed else ("allow", "")


def decision_of(live: dict[str, Any]) -> tuple[str, str]:
    """What was decided on a call that nobody could be asked about; a tool that rules take away is not there."""
    decision = live["decision"]
    if decision is None:
        return "deny", ""
    asked = any(each["layer"] == "nobody" for each in decision["opinions"])
    return "ask" if asked else decision["verdict"], decision["reason"]


@cache
def project_with(kind: str, base: Path) -> Path:
    project = base / kind
    project.mkdir()
    plant(project, kind)
    (project / ".env").write_text("A=1\n")
    return project


@pytest.mark.proves("X19")
@pytest.mark.needs("git")
@given(
    st.sampled_from(sorted(UNMET)),
    LINES,
    st.fixed_dictionaries({"allow": SOME_RULES, "ask": SOME_RULES, "deny": SOME_RULES}),
    st.sampled_from(("default", "acceptEdits", "plan", "dontAsk", "bypassPermissions")),
)
@settings(max_examples=settings().max_examples // 5)  # each asks four doors
def test_what_is_told_of_a_call_is_what_happens_to_it(
    tmp_path_factory: pytest.TempPathFactory, kind: str, line: str, rules: dict[str, list[str]], mode: str
) -> None:
    base = tmp_path_factory.getbasetemp() / "same"
    base.mkdir(exist_ok=True)
    project = project_with(kind, base)
    (base / "settings.json").write_text(json.dumps({"permissions": rules}))
    flags = ["--settings", str(base / "settings.json"), "--permission-mode", mode]
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(project)
        patched.setenv("IS_SANDBOX", "1")
        patched.setenv("HANDRAIL_STATE_DIR", str(base / "state"))
        if kind == "program":
            patched.setenv("PATH", f"{project}/bin:{os.environ['PATH']}")

        told = printed("permissions", "explain", "--json", *flags, f"Bash({line})")
        tested = printed("permissions", "test", "--json", examples(base, bash(line, "ask")), *flags)
        simulated = simulate(base / "recorded", project, line, flags)
        live = printed("call", "--json", *flags, "Bash", json.dumps({"command": line}))

    outcome, reason = decision_of(live)
    assert (told["decision"], told["reason"]) == (tested["decision"], tested["reason"])
    assert told["decision"] == outcome
    assert simulated == (told["decision"], told["reason"] if outcome != "allow" else "")
    assert reason.startswith(told["reason"]) or not reason
    if told["layer"] == "tool" and told["decision"] == "ask":
        assert any(words in told["reason"] for words in (UNMET[kind] or ELSEWHERE, ELSEWHERE, NAMES_PROGRAMS))
    if outcome != "allow":
        assert live["is_error"]
        assert not (project / "ran").exists()
