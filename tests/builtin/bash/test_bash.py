"""Bash runs commands, keeps the folder, bounds what comes back and leaves nothing behind."""

import asyncio
import base64
import os
import stat
import sys
import threading
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.bash.shell import Shell
from handrail.builtin.bash.shown_file import glance, remember
from handrail.builtin.bash.tool import Bash
from handrail.builtin.support.live_output import ShellProgress
from handrail.conversation.blocks import Image
from handrail.processes.sandbox_contract import UNCONFINED, Standing, Where, WrappedCommand
from handrail.shell import analyse
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress, ToolContext
from handrail.tools.outcome import Cause, Status
from tests.builtin.bash.session import Session
from tests.processes.seen import alive, noted, read_pipe, stay

pytestmark = pytest.mark.anyio

PNG = base64.b64decode(
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
)


@pytest.mark.proves("N1")
async def test_output_comes_back_in_the_order_it_was_written(session: Session) -> None:
    assert await session.text("for i in 1 2 3; do echo out $i; echo err $i >&2; done") == "\n".join(
        f"{stream} {i}" for i in (1, 2, 3) for stream in ("out", "err")
    )


async def test_a_command_that_fails_says_its_code_first(session: Session) -> None:
    outcome = await session.bash("echo before; exit 3")

    assert outcome.result.text == "Exit code 3\nbefore"
    assert (outcome.status, outcome.cause) == (Status.ERROR, Cause.FAILED)


async def test_a_command_that_says_nothing_still_gets_an_answer(session: Session) -> None:
    assert await session.text("true") == "(The command printed nothing.)"


async def test_programs_get_the_fields_they_know(session: Session) -> None:
    outcome = await session.bash("echo hi")

    assert outcome.output is not None
    assert outcome.output.data == {
        "stdout": "hi\n",
        "stderr": "",
        "interrupted": False,
        "isImage": False,
        "noOutputExpected": False,
    }


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("grep nothing /dev/null", "no match was found"),
        ("timeout 5 grep nothing /dev/null", "no match was found"),
        ("echo a | grep b", "no match was found"),
        ("echo a > a; echo b > b; cmp -s a b", "they differ"),
        ("echo a > a; echo b > b; diff -q a b > /dev/null", "they differ"),
        ("test -e nothing", "the condition is false"),
        ("[ -e nothing ]", "the condition is false"),
        ("which no-such-program", "it was not found"),
    ],
)
async def test_some_codes_are_answers_and_no_failures(session: Session, command: str, said: str) -> None:
    outcome = await session.bash(command)

    assert outcome.status is Status.OK
    assert f"(exit code 1: {said})" in outcome.result.text
    assert outcome.output is not None
    assert outcome.output.data["returnCodeInterpretation"] == said


@pytest.mark.parametrize("command", ["grep x /no/such/file", "false", "grep nothing /dev/null; false", "test a -eq b"])
async def test_other_codes_are_failures(session: Session, command: str) -> None:
    assert (await session.bash(command)).status is Status.ERROR


async def test_only_a_real_failure_cancels_the_commands_after_it(session: Session) -> None:
    answer = await session.calls(
        ("Bash", {"command": "grep nothing /dev/null > found"}),
        ("Bash", {"command": "touch one"}),
        ("Bash", {"command": "exit 2"}),
        ("Bash", {"command": "touch two"}),
    )

    assert [outcome.cause for outcome in answer] == [Cause.DONE, Cause.DONE, Cause.FAILED, Cause.SIBLING_ERROR]
    assert [name.name for name in sorted(session.project.iterdir())] == ["found", "one"]


# Where it runs


async def test_the_working_folder_is_kept_from_call_to_call(session: Session) -> None:
    await session.bash("mkdir -p a/b && cd a/b")

    assert session.run.cwd == session.project / "a" / "b"
    assert await session.text("pwd") == str(session.project / "a" / "b")


@pytest.mark.parametrize("end", ["", "; exit 1", "; false"])
async def test_it_is_kept_however_the_command_ends(session: Session, end: str) -> None:
    (session.project / "a").mkdir()
    await session.bash(f"cd a{end}")

    assert session.run.cwd == session.project / "a"


async def test_a_command_that_only_looks_may_move_too(session: Session) -> None:
    (session.project / "a").mkdir()
    answer = await session.calls(("Bash", {"command": "cd a"}), ("Bash", {"command": "pwd"}))

    assert answer[1].result.text == str(session.project / "a")


async def test_a_folder_that_a_command_moves_is_kept_at_its_new_place(session: Session) -> None:
    await session.text("mkdir before && cd before")
    await session.text("mv ../before ../after")

    assert await session.text("pwd") == str(session.project / "after")


@pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")
async def test_no_shell_waits_for_a_command_that_cannot_change_the_folder(session: Session) -> None:
    assert session.services.sandbox is None
    await session.text("cp /proc/self/stat seen")

    process, _name, _state, _parent, _group, leader, *_ = (session.project / "seen").read_text().split()
    assert process == leader  # the shell became the program


async def test_outside_the_working_folders_it_is_set_back_with_a_word(session: Session) -> None:
    outcome = await session.bash("cd / && pwd")

    assert outcome.result.text == (
        f"/\n(the working folder is {session.project} again, because / lies outside the working folders)"
    )
    assert session.run.cwd == session.project


async def test_a_link_that_leads_outside_does_not_take_the_folder_along(session: Session) -> None:
    (session.project / "out").symlink_to("/")
    await session.bash("cd out")

    assert session.run.cwd == session.project


async def test_when_the_folder_is_gone_commands_start_in_the_project(session: Session) -> None:
    await session.bash("mkdir a; cd a")
    (session.project / "a").rmdir()
    text = await session.text("pwd")

    assert text.splitlines()[0] == str(session.project)
    assert "is not there any more" in text
    assert (await session.text("pwd")).splitlines()[0] == str(session.project)


async def test_the_project_folder_can_be_where_every_command_starts(tmp_path: Path) -> None:
    session = Session(tmp_path, {"CLAUDE_BASH_MAINTAIN_PROJECT_WORKING_DIR": "1"})
    await session.bash("mkdir a; cd a")

    assert session.run.cwd == session.project


async def test_a_command_cannot_talk_the_folder_to_somewhere_else(session: Session) -> None:
    """The descriptor on which the shell tells its folder is there for the command too."""
    await session.bash("for fd in /proc/$$/fd/*; do echo /etc > $fd; done 2>/dev/null; exec true")

    assert session.run.cwd == session.project


# What it finds there


async def environment(session: Session, command: str) -> dict[str, str]:
    data = await session.text(command)
    return dict(line.split("=", 1) for line in data.split("\n") if "=" in line)


DANGEROUS = {
    "BASH_ENV": "/evil", "ENV": "/evil", "LD_PRELOAD": "/evil.so", "GIT_DIR": "/evil", "GIT_EXTERNAL_DIFF": "/evil",
    "CDPATH": "/evil", "RIPGREP_CONFIG_PATH": "/evil", "BASH_FUNC_ls%%": "() { touch evil; }", "SECRET_TOKEN": "s",
    "DOCKER_HOST": "tcp://evil",
}  # fmt: skip


async def test_a_command_that_only_reads_gets_a_clean_environment(tmp_path: Path) -> None:
    session = Session(tmp_path, {**DANGEROUS, "PATH": ".::bin:/usr/bin:/bin:", "LANG": "C.UTF-8", "LC_ALL": "C"})
    found = (await Shell(session.services).prepare("ls", "/", None, inside=False)).command.env

    assert set(found) & {*DANGEROUS} == set()
    assert (found["HOME"], found["LANG"], found["LC_ALL"]) == (str(session.home), "C.UTF-8", "C")
    assert (found["PAGER"], found["GIT_TERMINAL_PROMPT"]) == ("cat", "0")
    assert found["PATH"] == "/usr/bin:/bin"


async def test_what_the_environment_would_run_first_does_not_run(tmp_path: Path) -> None:
    first = tmp_path / "first"
    first.write_text("touch evil\n")
    session = Session(tmp_path, {"BASH_FUNC_ls%%": "() { touch evil; }", "BASH_ENV": str(first)})
    await session.bash("ls")

    assert list(session.project.iterdir()) == []


async def test_other_commands_get_the_users_environment_but_no_key_of_the_model(tmp_path: Path) -> None:
    keys = {"ANTHROPIC_API_KEY": "k", "OPENAI_API_KEY": "k", "ANTHROPIC_AUTH_TOKEN": "k"}
    session = Session(tmp_path, {"MINE": "1", "GH_TOKEN": "t", **keys})
    found = await environment(session, "touch x; printenv")

    assert (found["MINE"], found["GH_TOKEN"], found["PAGER"]) == ("1", "t", "cat")
    assert not set(found) & set(keys)


async def test_exports_of_the_environment_file_apply(tmp_path: Path) -> None:
    file = tmp_path / "env"
    file.write_text("export A='a b' B=\"$A c\" # both\ntouch evil\nexport 1=2\nexport C='not closed\nB=none\n")
    session = Session(tmp_path, {"CLAUDE_ENV_FILE": str(file)})
    found = await environment(session, "touch x; printenv")

    assert (found["A"], found["B"]) == ("a b", "a b c")
    assert "C" not in found
    assert not (session.project / "evil").exists()


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
async def test_an_environment_file_that_is_none_is_not_waited_for(make: Any, tmp_path: Path) -> None:
    make(tmp_path / "env")
    session = Session(tmp_path, {"CLAUDE_ENV_FILE": str(tmp_path / "env"), "MINE": "1"})

    assert (await environment(session, "touch x; printenv"))["MINE"] == "1"


@pytest.mark.parametrize("command", ["cat", "read -r x || echo none", "touch x; git -c core.pager=less -p log --help"])
async def test_nothing_waits_for_an_answer(session: Session, command: str) -> None:
    outcome = await session.bash(command, timeout=20_000)

    assert outcome.cause in {Cause.DONE, Cause.FAILED}
    assert "was stopped" not in outcome.result.text


# How it ends


@pytest.mark.proves("R8", "X8")
async def test_a_command_that_takes_too_long_is_stopped_with_all_it_started(session: Session) -> None:
    outcome = await session.bash(f"echo begun; setsid sh -c '{stay(session.project)}' & sleep 1000", timeout=300)

    assert outcome.status is Status.ERROR
    assert outcome.result.text == (
        "Exit code 143\nbegun\n"
        "(it was stopped because it took longer than 0.3 seconds. Give a longer timeout, or set run_in_background)"
    )
    assert outcome.output is not None
    assert outcome.output.data["interrupted"] is True
    assert not [pid for pid in noted(session.project) if alive(pid)]


@pytest.mark.parametrize(
    ("env", "given", "seconds"),
    [
        ({}, {}, 120),
        ({}, {"timeout": 5_000}, 5),
        ({}, {"timeout": 900_000}, 600),
        ({"BASH_DEFAULT_TIMEOUT_MS": "7000"}, {}, 7),
        ({"BASH_MAX_TIMEOUT_MS": "1000"}, {"timeout": 900_000}, 120),
        ({"BASH_MAX_TIMEOUT_MS": "1000", "BASH_DEFAULT_TIMEOUT_MS": "500"}, {"timeout": 900_000}, 1),
        ({"BASH_DEFAULT_TIMEOUT_MS": "soon"}, {}, 120),
    ],
)
async def test_time_limits_come_from_the_call_and_the_environment(
    tmp_path: Path, env: dict[str, str], given: dict[str, Any], seconds: float
) -> None:
    tool = Bash(Session(tmp_path, env).services)

    assert tool.seconds(tool.parse({"command": "true", **given})) == seconds


@pytest.mark.proves("R8")
async def test_an_interrupt_ends_the_command_and_all_it_started(session: Session) -> None:
    os.mkfifo(session.project / "ready")
    command = f"setsid sh -c '{stay(session.project)}' & while ! [ -s pids ]; do :; done; echo > ready; sleep 1000"
    call = asyncio.ensure_future(session.bash(command))
    await asyncio.to_thread(read_pipe, session.project / "ready")
    session.run.abort.abort(AbortReason.USER)
    outcome = await call

    assert outcome.cause is Cause.USER_INTERRUPTED
    assert noted(session.project)
    assert not [pid for pid in noted(session.project) if alive(pid)]


async def test_a_command_that_dies_by_a_signal_says_so(session: Session) -> None:
    assert await session.text("kill -9 $$") == "Exit code 137\n(it was ended by SIGKILL)"


async def test_what_a_command_leaves_running_ends_with_it(session: Session) -> None:
    await session.bash(f"sh -c '{stay(session.project)}' & while ! [ -s pids ]; do :; done; echo done")

    assert not [pid for pid in noted(session.project) if alive(pid)]


# What comes back


@pytest.mark.proves("R6", "I5", "I1")
async def test_of_much_output_the_ends_come_back_and_all_of_it_stays_on_disk(session: Session) -> None:
    outcome = await session.bash("seq 1000000")
    assert outcome.output is not None
    path = Path(outcome.output.data["persistedOutputPath"])

    assert len(outcome.result.text) < 11_000
    notice, head, *_ = outcome.result.text.split("\n")
    assert notice == (
        f"The output is too large: 6,888,896 bytes in 1,000,000 lines. All of it is in {path}. Use Read with offset "
        "and limit, or Grep, for the part you need. These are its beginning and its end:"
    )
    assert head == "1"
    assert outcome.result.text.endswith("\n999999\n1000000")
    assert path.read_text().splitlines() == [str(number) for number in range(1, 1_000_001)]
    assert outcome.output.data["persistedOutputSize"] == path.stat().st_size
    assert [stat.S_IMODE(place.stat().st_mode) for place in (path, path.parent)] == [0o600, 0o700]


async def test_output_that_is_shown_whole_leaves_no_file(session: Session) -> None:
    await session.bash("seq 1000")

    assert list((session.state / "output").iterdir()) == []


async def test_how_much_is_shown_can_be_set(tmp_path: Path) -> None:
    session = Session(tmp_path, {"BASH_MAX_OUTPUT_LENGTH": "300"})

    assert await session.text("seq 70") == "\n".join(map(str, range(1, 71)))
    assert len((await session.text("seq 1000")).partition("its end:\n")[2]) < 200


async def test_a_command_that_writes_too_much_is_stopped(tmp_path: Path) -> None:
    outcome = await Session(tmp_path, output_quota=lambda: 1_000_000).bash("yes")

    assert outcome.status is Status.ERROR
    assert "(it was stopped because it wrote more than 1,000,000 bytes)" in outcome.result.text


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_what_cannot_be_stored_is_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open
    monkeypatch.setattr(
        "handrail.builtin.support.live_output.open_store",
        lambda path: (path.touch(0o600), real("/dev/full", os.O_WRONLY))[1],
    )
    outcome = await session.bash("echo 12345; echo more >&2; true")

    assert outcome.result.text == "(11 bytes of output were lost: No space left on device)"


async def test_without_a_place_for_output_nothing_is_run(tmp_path: Path) -> None:
    session = Session(tmp_path)
    session.state.write_text("a file where the folder should be")
    outcome = await session.bash("touch evil")

    assert outcome.cause is Cause.FAILED
    assert outcome.result.text.startswith(f"Nothing was run: output cannot be kept in {session.state / 'output'}: ")
    assert list(session.project.iterdir()) == []


async def test_terminal_codes_and_odd_bytes_are_made_harmless(session: Session) -> None:
    command = r"printf '\033[31mred\033[0m \033]0;title\007 \377 \a 10%%\r50%%\r100%%\r\n tab\tend\n'"

    assert await session.text(command) == "100%\n tab\tend"
    assert await session.text(r"printf 'a\033[2Jb\377c\ad'") == "ab\ufffdc\\x07d"


@pytest.mark.parametrize("form", ["cat picture.png", 'echo "data:image/png;base64,$(base64 -w0 picture.png)"'])
async def test_a_picture_comes_back_as_one(session: Session, form: str) -> None:
    (session.project / "picture.png").write_bytes(PNG)
    outcome = await session.bash(form)

    assert outcome.result.content == (Image(base64.b64encode(PNG).decode(), "image/png"),)
    assert outcome.output is not None
    assert outcome.output.data["isImage"] is True


async def test_what_it_says_is_told_while_it_runs(session: Session, ctx: ToolContext) -> None:
    """It goes on only when it was heard."""
    os.mkfifo(session.project / "go")
    news: list[Progress] = []

    def heard(progress: Progress) -> None:
        if not news:
            threading.Thread(target=(session.project / "go").write_text, args=("",)).start()
        news.append(progress)

    tool = Bash(session.services)
    args = tool.parse(
        {"command": f"cd {session.project}; echo first; echo second; cat go; echo third", "timeout": 20_000}
    )
    output = await tool.call(args, ctx.replace(progress=heard))

    assert news[0] == ShellProgress("second", None, "first\nsecond\n", 13)
    assert output.text.startswith("first\nsecond\nthird")


# Reading a file with it


@pytest.mark.parametrize(
    "command",
    [
        "cat a.txt",
        "head -n 1 a.txt",
        "tail -1 a.txt",
        "sed -n 1p a.txt",
        "grep one a.txt",
        "nl a.txt",
        "cat ./x/../a.txt",
    ],
)
async def test_showing_one_file_counts_as_reading_it(session: Session, command: str) -> None:
    (session.project / "x").mkdir()
    path = session.project / "a.txt"
    path.write_text("one\ntwo\n")
    await session.bash(command)

    record = session.run.files.get(path)
    assert record is not None
    assert record.size == 8


@pytest.mark.parametrize(
    "command",
    ["cat a.txt | head -1", "cat a.txt b.txt", "cat a.txt > c", "wc a.txt", "ls a.txt", "cat a.txt; true",
     "grep no a.txt", "cat < a.txt", "cat *.txt", "sed -i s/x/y/ a.txt", "cat $X/a.txt"],
)  # fmt: skip
async def test_anything_else_does_not(session: Session, command: str) -> None:
    path = session.project / "a.txt"
    path.write_text("one\n")
    (session.project / "b.txt").write_text("b\n")
    await session.bash(command)

    assert session.run.files.get(path) is None


async def test_a_file_that_changes_meanwhile_does_not_count(session: Session) -> None:
    path = session.project / "a.txt"
    path.write_text("one\n")
    seen = glance(analyse("cat a.txt"), session.project)
    assert seen is not None
    path.write_text("more\n")
    remember(seen, session.run.files)

    assert session.run.files.get(path) is None


# What it says of itself


@pytest.mark.parametrize(
    ("command", "read_only", "safe", "destructive"),
    [
        ("ls -l", True, True, False),
        ("cd a && ls", True, False, False),
        ("touch a", False, False, False),
        ("rm -rf a", False, False, True),
        ("for ((;;)); do rm x; done", False, False, True),
        ("git reset --hard", False, False, True),
        ("git push", False, False, False),
        ("", False, False, False),
    ],
)
def test_what_a_call_is_depends_on_the_command(
    tmp_path: Path, command: str, read_only: bool, safe: bool, destructive: bool
) -> None:
    tool = Bash(Session(tmp_path).services)
    args = tool.parse({"command": command})

    assert (tool.is_read_only(args), tool.is_concurrency_safe(args), tool.is_destructive(args)) == (
        read_only,
        safe,
        destructive,
    )
    assert not tool.is_read_only(tool.parse({"command": command, "run_in_background": True}))


@pytest.mark.parametrize("command", ["", " \n", "echo a\0b"])
async def test_what_cannot_be_a_command_is_refused(session: Session, command: str) -> None:
    assert (await session.bash(command)).cause is Cause.REFUSED_INPUT


async def test_read_only_commands_run_side_by_side(session: Session) -> None:
    """Each is fed only when both are open: one after the other they would never end."""
    for name in ("a", "b"):
        os.mkfifo(session.project / name)
    answer = asyncio.ensure_future(session.calls(("Bash", {"command": "cat a"}), ("Bash", {"command": "cat b"})))

    def feed() -> None:
        with (session.project / "a").open("w") as a, (session.project / "b").open("w") as b:
            a.write("to a")
            b.write("to b")

    await asyncio.to_thread(feed)

    assert [outcome.result.text for outcome in await answer] == ["to a", "to b"]


class Box:
    """A sandbox that only shows what it was asked."""

    def __init__(self) -> None:
        self.closed = 0

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        return UNCONFINED if wants_out else Standing(Where.INSIDE)

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        resources = ExitStack()
        resources.callback(self.close)
        env = {"FROM_BOX": "yes", "LANG": None}
        return WrappedCommand(["/usr/bin/env", "BOXED=1", *argv], env, (), None, resources)

    def explain(self, output: str, code: int) -> str:
        return "the sandbox kept it from the file" if "Permission denied" in output else ""

    def close(self) -> None:
        self.closed += 1


async def test_commands_run_in_the_sandbox_and_its_refusals_are_explained(tmp_path: Path) -> None:
    box = Box()
    session = Session(tmp_path, sandbox=box)

    assert await session.text("printenv BOXED FROM_BOX") == "1\nyes"
    assert await session.text("printenv BOXED FROM_BOX; true", dangerouslyDisableSandbox=True) == (
        "(The command printed nothing.)"
    )
    assert "(the sandbox kept it from the file)" in await session.text("echo Permission denied; exit 1")
    await session.bash("cd /")
    assert (box.closed, session.run.cwd) == (3, session.project)


class SlowBox(Box):
    """A sandbox that waits, before and after a command, until it may go on."""

    def __init__(self) -> None:
        super().__init__()
        self.gate = threading.Semaphore(0)
        self.waits = 0
        self.went_on: list[bool] = []

    def wrap(self, argv: list[str], cwd: str) -> WrappedCommand:
        self.wait()
        return super().wrap(argv, cwd)

    def close(self) -> None:
        self.wait()
        super().close()

    def wait(self) -> None:
        self.waits += 1
        self.went_on.append(self.gate.acquire(timeout=20))


async def test_a_sandbox_that_looks_at_many_folders_holds_nothing_else_up(tmp_path: Path) -> None:
    box = SlowBox()
    session = Session(tmp_path, sandbox=box)

    answer = asyncio.ensure_future(session.text("echo done"))
    for step in (1, 2):
        while box.waits < step and not answer.done():
            await asyncio.sleep(0)
        box.gate.release()

    assert await answer == "done"
    assert box.went_on == [True, True]


async def test_a_call_that_ends_while_its_sandbox_is_made_frees_it(tmp_path: Path) -> None:
    box = SlowBox()
    session = Session(tmp_path, sandbox=box)
    answer = asyncio.ensure_future(session.text("echo done"))
    while not box.waits and not answer.done():
        await asyncio.sleep(0)

    answer.cancel()
    with pytest.raises(asyncio.CancelledError):
        await answer
    box.gate.release(2)
    async with asyncio.timeout(20):
        while not box.closed:
            await asyncio.sleep(0)

    assert box.went_on == [True, True]
