"""A line cannot take back the environment that keeps the programs of a repository from running."""

import subprocess
import tempfile
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.builtin.bash.environment import clean_environment
from handrail.shell import CommandVerdict, analyse
from handrail.shell.clean_environment import SET_FOR_READING
from handrail.shell.tables.git.preconditions import FSMONITOR, LOCKS, RELIED_ON
from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

GIVEN = sorted(clean_environment({}, (FSMONITOR, LOCKS)))
WAYS_TO_SET = [
    "{name}=x {command}", "{name}= {command}", "{name}=x; {command}", "export {name}=x; {command}",
    "env {name}=x {command}", "declare {name}=x; {command}", "declare -x {name}=x; {command}",
    "readonly {name}=x; {command}", "for {name} in x; do {command}; done", "read -r {name} < f; {command}",
    "printf -v {name} x; {command}", "mapfile {name} < f; {command}", "unset {name}; {command}",
    "export -n {name}; {command}", "declare +x {name}; {command}", "env -u {name} {command}",
    "env --unset={name} {command}", "env --unset {name} {command}", "env -u{name} {command}",
    "echo f | xargs --process-slot-var={name} {command}", "getopts x {name}; {command}", "let {name}=1; {command}",
    "(( {name} = 1 )); {command}", ": $(( {name} = 1 )); {command}", ": ${{{name}:=x}}; {command}",
    "{name}+=x {command}", "{name}+=x; {command}", "typeset -n {name}=y; {command}", "local {name}=x; {command}",
    "select {name} in x; do {command}; done", "{name}[0]=x; {command}", "coproc {name} {{ {command}; }}",
]  # fmt: skip
WAYS_TO_CLEAR = [
    "env -i {command}", "env - {command}", "env --ignore-environment {command}", "env -0i {command}",
    "env -iC . {command}", "env --ignore-env {command}", "env -i PATH=/bin {command}", "exec -c {command}",
    "exec -cl {command}", "exec -lc {command}", "exec -c -a x {command}", "exec -a x {command}",
    "env -S '-i {command}'", "env -vS'-i {command}'", "sudo {command}", "su -c '{command}'",
    "setpriv --reset-env {command}",
]  # fmt: skip
CARRIERS = [
    "{}", "timeout 5 {}", "nice {}", "command {}", "bash -c '{}'", "env LC_ALL=C {}", "( {} )", "{{ {}; }}", "time {}",
    "if {}; then ls; fi", "cat f | {}", "echo $({})", "find . -exec {} \\;", "true && {}", "stdbuf -oL {}",
]  # fmt: skip


@pytest.mark.proves("X14")
@pytest.mark.parametrize("way", WAYS_TO_SET)
def test_no_line_sets_a_variable_that_read_only_commands_are_given(way: str) -> None:
    lines = [way.format(name=name, command="git status") for name in GIVEN]
    inner = way.format(name="GIT_CONFIG_COUNT", command="git status")
    lines += [carrier.format(inner) for carrier in CARRIERS]
    for line in lines:
        assert analyse(line).verdict is not CommandVerdict.READ_ONLY, line


@pytest.mark.proves("X14")
@pytest.mark.parametrize("way", WAYS_TO_CLEAR)
def test_no_line_takes_the_environment_away(way: str) -> None:
    for carrier in CARRIERS:
        if "'" not in way or "'" not in carrier:
            line = carrier.format(way.format(command="git status"))
            assert analyse(line).verdict is not CommandVerdict.READ_ONLY, line


@pytest.mark.proves("X14")
@pytest.mark.parametrize("name", RELIED_ON)
def test_a_setting_of_git_that_is_relied_on_has_one_value(name: str) -> None:
    pairs = [f"{name}=true", f"{name}=", name, f"{name}=x", f"{name}={RELIED_ON[name]}x", f"{name.upper()}=true"]
    lines = [f"git -c {pair} status" for pair in pairs]
    for line in (*lines, *(carrier.format(lines[0]) for carrier in CARRIERS)):
        assert analyse(line).verdict is not CommandVerdict.READ_ONLY, line
    assert analyse(f"git -c {name}={RELIED_ON[name]} status").verdict is CommandVerdict.READ_ONLY


@pytest.mark.parametrize(
    "line",
    ["GIT_OPTIONAL_LOCKS=0 git status", "PAGER=cat git log", "env LC_ALL=C.UTF-8 git log", "TZ=UTC git log", "CI=1 ls"],
)
def test_what_changes_nothing_may_be_written(line: str) -> None:
    assert analyse(line).verdict is CommandVerdict.READ_ONLY


WORDS = st.sampled_from(
    [
        "env", "-i", "-", "-u", "GIT_OPTIONAL_LOCKS", "exec", "-c", "nice", "timeout 5", "command", "LC_ALL=C", "CI=1",
        "GIT_OPTIONAL_LOCKS=1", "GIT_OPTIONAL_LOCKS=0", "npm_config_update_notifier=x", "PAGER=cat", "TERM=x", "export",
        "unset", ";", "&&", "time", "stdbuf -oL", "--", "-0", "-C .", "x=1", "declare", "readonly", "-x", "ionice",
    ]
)  # fmt: skip
FAKE = '#!/bin/sh\n/usr/bin/env -0 > "$0.seen"\n'


@pytest.mark.proves("X14")
@given(st.lists(WORDS, max_size=5), st.sampled_from(CARRIERS))
def test_whatever_a_read_only_line_starts_gets_the_whole_environment(words: list[str], carrier: str) -> None:
    line = carrier.format(f"{' '.join(words)} git version")
    if analyse(line).verdict is not CommandVerdict.READ_ONLY:
        return
    with tempfile.TemporaryDirectory() as folder:
        program = Path(folder, "git")
        program.write_text(FAKE)
        program.chmod(0o755)
        Path(folder, "f").touch()
        given = clean_environment({"PATH": f"{folder}:/usr/bin:/bin", "HOME": folder}, (FSMONITOR,))
        subprocess.run(["bash", "-c", line], cwd=folder, env=given, capture_output=True, check=False, timeout=20)
        seen = Path(folder, "git.seen")
        if seen.exists():
            found = dict(pair.split("=", 1) for pair in seen.read_text().split("\0") if pair)
            relied = {
                name: value for name, value in given.items() if name in SET_FOR_READING or name.startswith("GIT_")
            }
            assert {name: found.get(name) for name in relied} == relied, line


@pytest.mark.anyio
@pytest.mark.needs("git")
@pytest.mark.proves("X14", "R2")
@pytest.mark.parametrize(
    "line",
    [
        "env -i git status", "exec -c git status", "env -i bash -c 'git status'", "nice env -i git status",
        "git -c core.fsmonitor=./evil.sh status", "GIT_CONFIG_COUNT=0 git status", "env -u GIT_CONFIG_COUNT git status",
        "unset GIT_CONFIG_COUNT; git status", "find f -exec env -i git status \\;",
    ],
)  # fmt: skip
async def test_the_monitor_of_a_repository_does_not_run_behind_any_wrapper(line: str, tmp_path: Path) -> None:
    session = Session(tmp_path)
    evil = session.project / "evil.sh"
    evil.write_text("#!/bin/sh\ntouch PWNED\n")
    evil.chmod(0o755)
    (session.project / "f").touch()
    env = {"PATH": "/usr/bin:/bin:/usr/local/bin", "HOME": str(session.home)}
    for words in (["init", "-q"], ["config", "core.fsmonitor", "./evil.sh"]):
        subprocess.run(["git", *words], cwd=session.project, env=env, check=True)

    assert (await session.bash("git status", session.rules())).status is Status.OK
    assert (await session.bash(line, session.rules())).status is Status.DENIED
    assert (await session.bash(line, session.rules("acceptEdits"))).status is Status.DENIED
    assert not (session.project / "PWNED").exists()
