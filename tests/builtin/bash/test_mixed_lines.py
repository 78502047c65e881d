"""What a line does besides does not loosen the conditions of the commands in it that only read."""

import os
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.gate import Gate
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = [pytest.mark.anyio, pytest.mark.needs("git")]

MIXED = [
    "touch a; {}", "{}; touch a", "{} > x.patch", "{} && mkdir d", "touch a && bash -c '{}'", "{} | tee /dev/null > x",
    "for f in 1 2; do {}; touch a; done", "touch \"$({} | head -n 1)\"", "if {}; then touch a; fi", "( {} ) > x",
    "{{ {}; }} > x", "timeout 5 {}; touch a", "rm -f a; {}", "cp f.txt g.txt; {}", "{} >> x 2>&1", "{} &> x",
]  # fmt: skip
COMMANDS = ["git status", "git diff", "git diff HEAD", "git log -p", "git describe --always --dirty", "git blame f.txt"]
HELPERS = ["core.fsmonitor", "diff.external", "filter.x.clean", "diff.x.textconv", "diff.x.command", "gpg.program"]
RULES = ["Bash(git status)", "Bash(git *)", "Bash(git:*)", "Bash(touch *)", "Bash(timeout *)", "Bash(bash *)"]


def git(session: Session, *words: str) -> None:
    env = {"PATH": os.environ["PATH"], "HOME": str(session.home), "GIT_CONFIG_NOSYSTEM": "1"}
    who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
    subprocess.run(["git", *who, *words], cwd=session.project, env=env, check=True, capture_output=True)


def repository(session: Session) -> None:
    git(session, "init", "-q")
    (session.project / ".gitattributes").write_text("*.txt diff=x filter=x\n")
    for text in ("1\n", "2\n"):
        (session.project / "f.txt").write_text(text)
        git(session, "add", ".")
        git(session, "commit", "-qm", text)
    (session.project / "f.txt").write_text("3\n")


def configure(session: Session, helper: str) -> None:
    evil = session.project / "evil.sh"
    evil.write_text(f"#!/bin/sh\ntouch '{session.home / 'PWNED'}'\ncat\n")
    evil.chmod(0o755)
    git(session, "config", helper, str(evil))
    git(session, "config", "log.showSignature", "true")


def gate(session: Session, mode: str, *rules: str) -> Gate:
    policy = Policy.empty(str(session.project), str(session.home))
    policy = policy.adding(Behaviour.ALLOW, rules, RuleSource("user", "settings.json", 1))
    return PolicyGate(LivePolicy(lambda: replace(policy, mode=mode)), conditions=conditions_left_to_tools)


@pytest.mark.proves("X15", "R2")
@pytest.mark.parametrize("mixed", MIXED)
async def test_a_helper_does_not_run_in_a_line_that_does_more(session: Session, mixed: str) -> None:
    repository(session)
    configure(session, "filter.x.clean")

    for command in ("git status", "git diff"):
        outcome = await session.bash(mixed.format(command), gate(session, "acceptEdits", *RULES))
        assert outcome.status is Status.DENIED, outcome.use.input
    assert not (session.home / "PWNED").exists()


@pytest.mark.proves("X15")
@given(st.sampled_from(MIXED), st.sampled_from(COMMANDS), st.sampled_from(HELPERS), st.sets(st.sampled_from(RULES)))
@settings(max_examples=30, suppress_health_check=[HealthCheck.function_scoped_fixture])
async def test_no_rule_for_a_command_and_no_mode_lets_a_helper_run(
    session: Session, mixed: str, command: str, helper: str, rules: set[str]
) -> None:
    if not (session.project / ".git").exists():
        repository(session)
        (session.project / ".git" / "config").rename(session.home / "config")
    (session.project / ".git" / "config").write_bytes((session.home / "config").read_bytes())
    configure(session, helper)

    await session.bash(mixed.format(command), gate(session, "acceptEdits", *sorted(rules)))
    await session.bash(command, gate(session, "default", *sorted(rules)))

    assert not (session.home / "PWNED").exists()


@pytest.mark.proves("X15")
async def test_a_rule_for_the_command_covers_ordinary_repositories_only(session: Session) -> None:
    repository(session)
    ruled = gate(session, "default", "Bash(git status)", "Bash(git add *)", "Bash(git add . && git status)")

    assert (await session.bash("git add . && git status", ruled)).status is Status.OK
    assert (await session.bash("git status", ruled)).status is Status.OK

    configure(session, "filter.x.clean")
    for line in ("git status", "git add . && git status"):
        outcome = await session.bash(line, ruled)
        assert outcome.status is Status.DENIED
        assert "sets filter.x.clean, which runs a program" in outcome.result.text
    assert not (session.home / "PWNED").exists()
    os.utime(session.project / "f.txt", (1, 1))  # it looks touched, so that git compares it
    assert (await session.bash("git status", gate(session, "default", "Bash"))).status is Status.OK
    assert (session.home / "PWNED").exists()


@pytest.mark.proves("X15")
@pytest.mark.parametrize("helper", HELPERS)
async def test_a_line_that_runs_other_programs_has_git_judged_without_our_settings(
    session: Session, helper: str
) -> None:
    repository(session)
    (session.project / "Makefile").write_text("all:\n")
    ruled = gate(session, "default", "Bash(make *)", "Bash(git status)")
    assert (await session.bash("make all; git status", ruled)).status is Status.OK

    configure(session, helper)

    assert (await session.bash("make all; git status", ruled)).status is Status.DENIED
    assert not (session.home / "PWNED").exists()


@pytest.mark.proves("X15")
@pytest.mark.parametrize(
    ("line", "passes"),
    [
        ("git diff > x.patch", True), ("git log > log.txt; git status", True), ("mkdir d && cd d && touch a", True),
        ("touch a && ls", True), ("touch a; rg x", True), ("touch a; git status", False), ("rm -f a; git diff", False),
    ],
)  # fmt: skip
async def test_ordinary_edits_pass_unless_git_would_run_without_our_settings(
    session: Session, line: str, passes: bool
) -> None:
    repository(session)

    for mode in ("acceptEdits", "auto"):
        if mode == "auto" and line.startswith("rm"):
            continue
        outcome = await session.bash(line, gate(session, mode))
        assert (outcome.status is not Status.DENIED) is passes, (mode, outcome.result.text)


@pytest.mark.proves("X15")
@pytest.mark.parametrize(
    ("variable", "line"),
    [("CDPATH", "cd d; make a"), ("RIPGREP_CONFIG_PATH", "make a; rg x"), ("DOCKER_HOST", "make a; docker ps")],
)
async def test_a_variable_of_the_user_counts_where_a_line_runs_with_it(
    variable: str, line: str, tmp_path: Path
) -> None:
    session = Session(tmp_path, env={variable: "/tmp"})
    (session.project / "d").mkdir()

    outcome = await session.bash(line, gate(session, "acceptEdits", "Bash(make *)"))

    assert outcome.status is Status.DENIED
    assert variable in outcome.result.text


@pytest.mark.proves("X15")
@pytest.mark.parametrize("line", ["touch a; ls", "ls; touch a", "mkdir d && ls > x"])
async def test_a_program_of_the_project_is_not_run_by_a_line_that_does_more(line: str, tmp_path: Path) -> None:
    tools = tmp_path / "project" / "bin"
    tools.mkdir(parents=True)
    (tools / "ls").write_text("#!/bin/sh\ntouch PWNED\n")
    (tools / "ls").chmod(0o755)
    for path, rules in ((f"{tools}:{os.environ['PATH']}", ()), (f"bin:{os.environ['PATH']}", ("Bash(make *)",))):
        session = Session(tmp_path, env={"PATH": path})
        outcome = await session.bash(f"{line}; make a" if rules else line, gate(session, "acceptEdits", *rules))
        assert outcome.status is Status.DENIED
        assert not (session.project / "PWNED").exists()
