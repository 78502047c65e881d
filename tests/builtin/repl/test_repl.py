"""REPL: real interpreters that remember, are bounded, get lost cleanly, and end with their session."""

import asyncio
import os
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from handrail.builtin.powershell import PowerShell
from handrail.builtin.repl.interpreter import close_interpreter
from handrail.builtin.repl.tool import REPL
from handrail.builtin.support.live_output import ShellProgress
from handrail.errors import ToolError
from handrail.processes.sandbox_contract import UNCONFINED, Standing, Where
from handrail.session.tools import make_catalog
from handrail.tools.abort import AbortReason
from handrail.tools.context import Progress, ToolContext
from handrail.tools.outcome import Cause, Outcome, Status
from handrail.tools.permission import Verdict
from tests.builtin.bash.session import Session
from tests.builtin.bash.test_bash import Box
from tests.processes.sandbox.box import Box as RealBox
from tests.processes.seen import alive, noted, read_pipe, stay, wait_for_end

pytestmark = pytest.mark.anyio

ON = {"HANDRAIL_REPL": "1"}
LOST = "What the interpreter knew is lost; the next call starts a new one"


@pytest.fixture
async def session(tmp_path: Path) -> AsyncIterator[Session]:
    made = Session(tmp_path, ON)
    yield made
    await close_interpreter(made.services)


async def repl(session: Session, code: str, **given: Any) -> Outcome:
    return await session.use("REPL", {"code": code, **given})


async def text(session: Session, code: str, **given: Any) -> str:
    return (await repl(session, code, **given)).result.text


async def pid_of(session: Session) -> int:
    return int(await text(session, "import os; os.getpid()"))


def busy(folder: Path, code: str) -> str:
    """Code that starts a process in a session of its own, tells when that runs, and then does something."""
    return f"""
import os, subprocess, time
subprocess.Popen(["setsid", "sh", "-c", {stay(folder)!r}])
while not (os.path.exists("pids") and os.path.getsize("pids")): time.sleep(0.001)
{code}
"""


@pytest.mark.proves("N31")
async def test_what_was_defined_is_there_in_the_next_call(session: Session) -> None:
    assert await text(session, "import math\ndef area(r):\n    return math.pi * r * r") == "(The code said nothing.)"
    assert await text(session, "x = area(2)\nround(x, 2)") == "12.57"
    assert await text(session, "_ + 1") == "13.57"
    assert await text(session, "None") == "(The code said nothing.)"


async def test_output_of_all_kinds_comes_in_order_and_the_value_last(session: Session) -> None:
    lines = ("import sys, os", "print('out')", "print('err', file=sys.stderr)", "n = os.system('echo of a child')")
    code = "\n".join((*lines, "print('end')", "'value'"))
    outcome = await repl(session, code, description="say something")

    assert outcome.result.text == "out\nerr\nof a child\nend\n'value'"
    assert outcome.output is not None
    assert outcome.output.data == {
        "output": "out\nerr\nof a child\nend\n",
        "result": "'value'",
        "error": None,
        "interrupted": False,
    }


async def test_an_error_shows_the_lines_that_led_to_it_and_the_state_stays(session: Session) -> None:
    await text(session, "x = 5\ndef f(n):\n    return n / 0")
    outcome = await repl(session, "print('before')\nf(x)")

    assert outcome.status is Status.ERROR
    lines = outcome.result.text.splitlines()
    assert lines[0] == "before"
    assert lines[1] == "Traceback (most recent call last):"
    assert [line.strip() for line in lines if line.startswith("  File ")] == [
        'File "<cell 2>", line 2, in <module>',
        'File "<cell 1>", line 3, in f',
    ]
    assert "    return n / 0" in lines
    assert lines[-1] == "ZeroDivisionError: division by zero"
    assert await text(session, "x") == "5"


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("a b", "SyntaxError: invalid syntax"),
        ("import sys; sys.exit(3)", "SystemExit: 3"),
        ("raise KeyboardInterrupt", "KeyboardInterrupt"),
        ("input()", "EOFError: EOF when reading a line"),
        ("class A:\n    def __repr__(self): return 1 / 0\nA()", "ZeroDivisionError: division by zero"),
        ("def f(): f()\nf()", "RecursionError: maximum recursion depth exceeded"),
    ],
)
async def test_errors_of_every_kind_are_told_and_the_interpreter_goes_on(
    session: Session, code: str, said: str
) -> None:
    before = await pid_of(session)
    outcome = await repl(session, code)

    assert outcome.status is Status.ERROR
    assert outcome.result.text.splitlines()[-1] == said
    assert len(outcome.result.text.splitlines()) < 40
    assert await pid_of(session) == before


@pytest.mark.proves("R8")
async def test_a_call_that_takes_too_long_loses_the_interpreter_and_all_it_started(session: Session) -> None:
    kernel = await pid_of(session)
    await text(session, busy(session.project, "kept = 1"))
    outcome = await repl(session, "print('begun')\ntime.sleep(1000)", timeout=300)

    assert outcome.status is Status.ERROR
    said = f"begun\n(it was stopped because it took longer than 0.3 seconds. {LOST})"
    assert outcome.result.text == said
    assert noted(session.project)
    assert not [pid for pid in (kernel, *noted(session.project)) if alive(pid)]
    assert (await text(session, "kept")).endswith("NameError: name 'kept' is not defined")


@pytest.mark.proves("R8")
async def test_an_interrupt_ends_it_and_the_next_call_says_so(session: Session) -> None:
    os.mkfifo(session.project / "ready")
    call = asyncio.ensure_future(
        repl(session, busy(session.project, "open('ready', 'w').close()\nwhile True: time.sleep(1)"))
    )
    await asyncio.to_thread(read_pipe, session.project / "ready")
    session.run.abort.abort(AbortReason.USER)
    outcome = await call
    session.run = Session(session.project.parent).run

    assert outcome.cause is Cause.USER_INTERRUPTED
    assert not [pid for pid in noted(session.project) if alive(pid)]
    assert await text(session, "1 + 1") == (
        "2\n(the interpreter was started anew, because the call before was interrupted: what it knew is lost)"
    )
    assert await text(session, "1 + 1") == "2"


async def test_code_that_ends_the_interpreter_is_told(session: Session) -> None:
    assert await text(session, "import os\nprint('last words', flush=True)\nos._exit(7)") == (
        f"last words\n(the interpreter ended with exit code 7. {LOST})"
    )
    assert await text(session, "1 + 1") == "2"


async def test_an_interpreter_that_died_between_calls_is_told(session: Session) -> None:
    kernel = await pid_of(session)
    os.kill(kernel, signal.SIGKILL)
    assert wait_for_end(kernel)

    assert await text(session, "x = 1") == f"(the interpreter ended by SIGKILL. {LOST})"
    assert await text(session, "1 + 1") == "2"


async def test_a_child_that_the_code_forks_does_not_answer_for_it(session: Session) -> None:
    assert await text(session, "import os\nchild = os.fork()\n'parent' if child else 'child'") == "'parent'"
    assert await text(session, "os.waitpid(child, 0)[1]") == "0"


@pytest.mark.proves("R6")
async def test_of_much_output_the_ends_come_back_and_all_of_it_stays_on_disk(session: Session) -> None:
    outcome = await repl(session, "for n in range(100_000): print(n)")
    assert outcome.output is not None
    path = Path(outcome.output.data["persistedOutputPath"])

    assert len(outcome.result.text) < 11_000
    assert outcome.result.text.startswith("The output is too large: 588,890 bytes in 100,000 lines. All of it is in ")
    assert outcome.result.text.partition("its end:\n")[2].startswith("0\n1\n2\n")
    assert path.read_text() == "".join(f"{n}\n" for n in range(100_000))
    assert stat.S_IMODE(path.stat().st_mode) == 0o600


@pytest.mark.proves("R6")
async def test_a_value_and_an_error_are_bounded_too(session: Session) -> None:
    value = await text(session, "list(range(1_000_000))")
    error = await text(session, "raise ValueError('x' * 1_000_000)")

    assert value.startswith("[0, 1, 2")
    assert value.endswith("999999]")
    assert len(value) < 31_000
    assert len(error) < 11_000


async def test_code_that_writes_without_end_is_stopped(tmp_path: Path) -> None:
    outcome = await repl(Session(tmp_path, ON, output_quota=lambda: 1_000_000), "while True: print('y' * 1000)")

    assert outcome.result.text.endswith(f"(it was stopped because it wrote more than 1,000,000 bytes. {LOST})")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
async def test_what_cannot_be_stored_is_told(session: Session, monkeypatch: pytest.MonkeyPatch) -> None:
    real = os.open
    monkeypatch.setattr(
        "handrail.builtin.support.live_output.open_store",
        lambda path: (path.touch(0o600), real("/dev/full", os.O_WRONLY))[1],
    )

    assert await text(session, "print('12345')\n1") == (
        "1\n(6 bytes of output were lost, because they could not be written to the disk)"
    )


async def test_what_it_says_is_told_while_it_runs(session: Session, ctx: ToolContext) -> None:
    """It goes on only when it was heard."""
    os.mkfifo(session.project / "go")
    news: list[Progress] = []

    def heard(progress: Progress) -> None:
        if not news:
            threading.Thread(target=(session.project / "go").write_text, args=("",)).start()
        news.append(progress)

    tool = REPL(session.services)
    args = tool.parse({"code": f"print('first')\nprint('second')\nopen('{session.project}/go').read()\nprint('third')"})
    output = await tool.call(args, ctx.replace(progress=heard))

    assert news[0] == ShellProgress("second", None, "first\nsecond\n", 13)
    assert output.text == "first\nsecond\nthird"


async def test_odd_bytes_and_terminal_codes_are_made_harmless(session: Session) -> None:
    assert await text(session, r"import os; n = os.write(1, b'a\x1b[2Jb\xffc\ad\n')") == "ab\ufffdc\\x07d"
    assert await text(session, r"print('\ud800')") == r"\ud800"


async def test_code_longer_than_a_pipe_holds_is_run(session: Session) -> None:
    assert await text(session, f"x = {'a' * 1_000_000!r}\nlen(x)") == "1000000"


async def test_it_has_the_users_environment_without_the_keys_of_the_model(tmp_path: Path) -> None:
    session = Session(tmp_path, {**ON, "ANTHROPIC_API_KEY": "sk-1", "OPENAI_API_KEY": "sk-2", "MINE": "yes"})
    code = "import os\n[os.environ.get(name) for name in ('ANTHROPIC_API_KEY', 'OPENAI_API_KEY', 'MINE', 'PAGER')]"

    assert await text(session, code) == "[None, None, 'yes', 'cat']"
    await close_interpreter(session.services)


async def test_modules_of_the_project_can_be_imported_and_stand_in_for_no_others(session: Session) -> None:
    (session.project / "mine.py").write_text("word = 'hello'")
    (session.project / "colorsys.py").write_text("raise SystemError('not the library')")

    assert await text(session, "import mine, colorsys, os\nmine.word, os.getcwd()") == f"('hello', '{session.project}')"


async def test_functions_that_were_defined_can_be_pickled(session: Session) -> None:
    assert await text(session, "import pickle\ndef f(): return 3\npickle.loads(pickle.dumps(f))()") == "3"


async def test_it_runs_in_the_sandbox_and_its_refusals_are_explained(tmp_path: Path) -> None:
    box = Box()
    session = Session(tmp_path, ON, sandbox=box)

    assert await text(session, "import os; os.environ['BOXED'] + os.environ['FROM_BOX']") == "'1yes'"
    assert (await text(session, "raise OSError('Permission denied')")).endswith("(the sandbox kept it from the file)")
    assert box.closed == 0
    await close_interpreter(session.services)
    assert box.closed == 1


class Switched(Box):
    """A sandbox whose settings change."""

    now = UNCONFINED

    async def standing(self, commands: Sequence[Sequence[str]] | None, *, wants_out: bool = False) -> Standing:
        assert commands is None, "what code would start is not known"
        return self.now


async def test_it_runs_where_the_settings_of_the_sandbox_say_at_the_time(tmp_path: Path, ctx: ToolContext) -> None:
    box = Switched()
    session = Session(tmp_path, ON, sandbox=box)
    moved = "(the interpreter was started anew, because the sandbox was switched on or off: what it knew is lost)"

    assert await text(session, "import os; os.environ.get('BOXED', 'free')") == "'free'"
    assert (await text(session, "raise OSError('Permission denied')")).endswith("OSError: Permission denied")
    box.now = Standing(Where.INSIDE, spares=True)
    assert await text(session, "import os; os.environ.get('BOXED', 'free')") == f"'1'\n{moved}"
    assert (await session.use("REPL", {"code": "1"}, session.rules())).status is Status.DENIED
    box.now = Standing(Where.REFUSED, reason="it cannot be confined")
    assert (await repl(session, "open('evil', 'w')")).status is Status.DENIED
    tool = REPL(session.services)
    with pytest.raises(ToolError, match=r"Nothing was run: it cannot be confined\."):
        await tool.call(tool.parse({"code": "open('evil', 'w')"}), ctx)
    assert list(session.project.iterdir()) == []
    await close_interpreter(session.services)


@pytest.mark.parametrize(
    ("standing", "verdict"),
    [
        (UNCONFINED, None),
        (Standing(Where.INSIDE, spares=True), None),
        (Standing(Where.OUTSIDE, reason="none works here"), Verdict.ASK),
        (Standing(Where.REFUSED, reason="none works here"), Verdict.DENY),
    ],
)
@pytest.mark.parametrize("kind", [REPL, PowerShell])
async def test_the_sandbox_spares_no_question_about_what_is_not_understood(
    tmp_path: Path, ctx: ToolContext, kind: type[REPL] | type[PowerShell], standing: Standing, verdict: Verdict | None
) -> None:
    box = Switched()
    box.now = standing
    tool = kind(Session(tmp_path, sandbox=box).services)
    args = tool.parse({"code" if kind is REPL else "command": "ls"})
    check = await tool.check_permission(args, ctx)  # type: ignore[arg-type]  # each gets its own input

    assert (check.verdict, check.reason) == (verdict, standing.reason)


@pytest.mark.needs("bwrap")
async def test_a_real_sandbox_holds_it(tmp_path: Path) -> None:
    made = RealBox(tmp_path / "box")
    with closing(made.sandbox()) as sandbox:
        session = Session(tmp_path, ON, sandbox=sandbox)
        session.run = replace(session.run, cwd=made.project)

        assert await text(session, "import os; os.getcwd()") == repr(str(made.project))
        assert await text(session, "open('mine', 'w').write('x')") == "1"
        assert "Error" in await text(session, f"open({str(made.outside / 'file.txt')!r}, 'w').write('new')")
        await close_interpreter(session.services)

    assert (made.project / "mine").read_text() == "x"
    assert (made.outside / "file.txt").read_text() == "old\n"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk", "auto"])
async def test_it_never_runs_without_being_agreed_to(session: Session, mode: str) -> None:
    outcome = await session.use("REPL", {"code": "open('evil', 'w')"}, session.rules(mode))

    assert outcome.status is Status.DENIED
    assert list(session.project.iterdir()) == []


async def test_empty_code_is_refused(session: Session) -> None:
    assert "There is no code." in await text(session, " \n")


@pytest.mark.proves("B5")
def test_it_is_there_only_where_the_environment_asks_for_it() -> None:
    def names(**variables: str) -> set[str]:
        return {tool.name for tool in make_catalog(variables=variables).pool.listed}

    assert "REPL" not in names()
    assert "REPL" not in names(HANDRAIL_REPL="0")
    assert names(HANDRAIL_REPL="1") == names() | {"REPL"}


# The end of the session


@pytest.mark.proves("R8")
async def test_it_ends_with_the_session_also_while_it_runs(session: Session) -> None:
    kernel = await pid_of(session)
    os.mkfifo(session.project / "ready")
    call = asyncio.ensure_future(repl(session, "open('ready', 'w').close()\nwhile True: pass"))
    await asyncio.to_thread(read_pipe, session.project / "ready")
    await close_interpreter(session.services)

    assert not alive(kernel)
    assert "(the interpreter ended by SIG" in (await call).result.text


LEFT = """
import asyncio, sys, time
from pathlib import Path
from tests.builtin.bash.session import Session

async def main():
    session = Session(Path(sys.argv[1]), {"HANDRAIL_REPL": "1"})
    outcome = await session.use("REPL", {"code": "import os; os.getpid()"})
    print(outcome.result.text, flush=True)
    time.sleep(1000)

asyncio.run(main())
"""


@pytest.mark.proves("R8")
def test_it_ends_when_the_program_is_killed(tmp_path: Path) -> None:
    root = Path(__file__).parents[3]
    program = subprocess.Popen([sys.executable, "-c", LEFT, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=root)
    assert program.stdout is not None
    kernel = int(program.stdout.readline())
    assert alive(kernel)
    program.kill()
    program.communicate()

    assert wait_for_end(kernel)


# What people see


def test_cards_and_lines_about_a_call(tmp_path: Path) -> None:
    tool = REPL(Session(tmp_path).services)
    args = tool.parse({"code": "first()\nsecond()", "timeout": 60_000})

    assert (tool.summary(args), tool.tag(args), tool.classifier_text(args)) == ("REPL(first()...)", "60 s", args.code)
    assert tool.tag(tool.parse({"code": "x"})) == ""
    card = tool.use_card({"code": "x = 1", "description": "set x"})
    assert (card.title, card.detail, card.body, card.body_kind) == ("REPL", "set x", "x = 1", "code")
    assert not tool.is_read_only(args)
