"""Programs are run to their end, and nothing of them is left."""

import asyncio
import os
import signal
import socket
import subprocess
import sys
from contextlib import ExitStack
from fcntl import ioctl
from pathlib import Path
from termios import TIOCOUTQ

import pytest

from handrail.files.paths import read_link
from handrail.processes.run import Ended, run
from handrail.processes.spawn import ProcessSpec, start
from handrail.processes.supervisor import SUPERVISOR, Supervisor
from handrail.processes.supervisor_main import READY_AT_FIRST
from handrail.processes.tree import children_of, descendants
from handrail.processes.wire import SWEEP, message
from tests.processes.seen import alive, noted, read_pipe, stay, wait_for, wait_for_end

pytestmark = [pytest.mark.anyio, pytest.mark.skipif(sys.platform != "linux", reason="looks into /proc")]

ENV = {"PATH": os.environ["PATH"]}


async def sh(text: str, cwd: Path, *, timeout: float | None = 30, stdin: bytes = b"", max_bytes: int = 10_000) -> Ended:
    return await run(["sh", "-c", text], cwd=str(cwd), env=ENV, stdin=stdin, timeout=timeout, max_bytes=max_bytes)


async def test_what_a_program_says_and_its_code_come_back(tmp_path: Path) -> None:
    assert await sh("pwd; cat; echo no >&2; exit 3", tmp_path, stdin=b"fed") == Ended(
        3, f"{tmp_path}\nfed".encode(), b"no\n"
    )


async def test_a_program_gets_the_environment_that_was_given_and_no_other(tmp_path: Path) -> None:
    ended = await run(["/usr/bin/env"], cwd="/", env={"A": "\udcff=ü"}, timeout=30, max_bytes=1000)

    assert ended == Ended(0, b"A=\xff=\xc3\xbc\n", b"")


async def test_a_program_has_a_session_of_its_own_no_terminal_and_no_descriptor_of_ours(tmp_path: Path) -> None:
    leak = os.open("/dev/null", os.O_RDONLY)
    os.set_inheritable(leak, True)
    try:
        ended = await sh("cut -d' ' -f6,7 /proc/$$/stat; echo $$; ls /proc/$$/fd", tmp_path)
    finally:
        os.close(leak)
    session_and_terminal, pid, *fds = ended.stdout.decode().split("\n")[:-1]

    assert session_and_terminal == f"{pid} 0"
    assert set(fds) - {"3", "10", "255"} == {"0", "1", "2"}  # a shell may keep its script or a listing open


async def test_a_signal_is_told_as_a_negative_code(tmp_path: Path) -> None:
    assert (await sh("kill -SEGV $$", tmp_path)).code == -signal.SIGSEGV


async def test_of_more_than_fits_the_beginning_is_kept(tmp_path: Path) -> None:
    ended = await sh("seq 100000; seq 100000 >&2", tmp_path, max_bytes=10)

    assert ended == Ended(0, b"1\n2\n3\n4\n5\n", b"1\n2\n3\n4\n5\n", cut=True)


async def test_much_in_and_much_out_do_not_block_each_other(tmp_path: Path) -> None:
    much = os.urandom(1 << 20)

    assert (await sh("cat", tmp_path, stdin=much, max_bytes=1 << 21)).stdout == much


async def test_a_program_that_does_not_read_is_no_problem(tmp_path: Path) -> None:
    assert (await sh("exit 0", tmp_path, stdin=bytes(1 << 20))).code == 0


@pytest.mark.parametrize("argv", [["no-such-program"], ["/no/such/program"]])
async def test_a_program_that_is_not_there_is_an_error_with_its_name(argv: list[str]) -> None:
    with pytest.raises(FileNotFoundError) as error:
        await run(argv, cwd="/", env=ENV, timeout=30, max_bytes=10)

    assert error.value.filename == argv[0]


async def test_a_folder_that_is_not_there_is_an_error_with_its_name() -> None:
    with pytest.raises(FileNotFoundError) as error:
        await run(["true"], cwd="/no/such/folder", env=ENV, timeout=30, max_bytes=10)

    assert error.value.filename == "/no/such/folder"


LEFT_BEHIND = [
    pytest.param("sh -c '{stay}' & {wait}", id="a background child that holds the pipe"),
    pytest.param("nohup sh -c '{stay}' >/dev/null 2>&1 & {wait}", id="one that ignores hang-ups"),
    pytest.param("(sh -c '{stay}' & ) ; {wait}", id="a double fork"),
    pytest.param("setsid sh -c '{stay}' & {wait}", id="a session of its own"),
    pytest.param("(setsid env -i PATH=$PATH sh -c '{stay}' & ) ; {wait}", id="a daemon without environment"),
    pytest.param("sh -c 'trap \"\" TERM HUP INT; {stay}' & {wait}", id="one that ignores signals"),
    pytest.param("(setsid sh -c 'trap \"\" TERM; {stay}' & ) ; {wait}", id="a daemon that ignores signals"),
    pytest.param("sh -c '{stay}' & {wait}; kill -STOP $!", id="one that is stopped"),
    pytest.param(
        "setsid sh -c 'for i in 1 2 3 4 5 6 7 8 9; do (setsid sh -c \"{stay}\" &) ; done; {stay}' & {wait}", id="a herd"
    ),
]
WAIT = "while ! [ -s pids ]; do :; done"


@pytest.mark.proves("R8")
@pytest.mark.parametrize("text", LEFT_BEHIND)
async def test_nothing_that_a_program_left_behind_lives_when_it_is_over(text: str, tmp_path: Path) -> None:
    await sh(text.format(stay=stay(tmp_path), wait=WAIT), tmp_path)

    assert noted(tmp_path)
    assert not [pid for pid in noted(tmp_path) if alive(pid)]


@pytest.mark.proves("R8")
@pytest.mark.parametrize("text", LEFT_BEHIND)
async def test_nothing_lives_when_the_time_is_over(text: str, tmp_path: Path) -> None:
    line = text.format(stay=stay(tmp_path), wait=WAIT)
    ended = await sh(f"{line}; sleep 1000; sleep 1000", tmp_path, timeout=0.3)

    assert ended.timed_out
    assert ended.code == -signal.SIGTERM
    assert noted(tmp_path)
    assert not [pid for pid in noted(tmp_path) if alive(pid)]


async def test_a_program_that_will_not_end_is_killed(tmp_path: Path) -> None:
    ended = await sh("trap '' TERM; sleep 1000; sleep 1000", tmp_path, timeout=0.1)

    assert ended == Ended(-signal.SIGKILL, b"", b"", timed_out=True)


@pytest.mark.proves("R8")
async def test_whoever_forks_without_end_is_caught(tmp_path: Path) -> None:
    runaway = "import os\nwhile True:\n  if os.fork(): os._exit(0)\n  open('pids', 'a').write(f'{os.getpid()}\\n')"
    ended = await run(
        [sys.executable, "-S", "-c", f"{runaway}"], cwd=str(tmp_path), env=ENV, timeout=30, max_bytes=1000
    )

    assert ended.code == 0
    assert len(noted(tmp_path)) > 1
    assert not [pid for pid in noted(tmp_path) if alive(pid)]


@pytest.mark.proves("R8")
async def test_a_call_that_is_cancelled_ends_only_when_nothing_of_it_lives(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    call = asyncio.ensure_future(sh(f"setsid sh -c '{stay(tmp_path)}' & {WAIT}; echo > ready; sleep 1000", tmp_path))
    ready = await asyncio.to_thread(read_pipe, tmp_path / "ready")
    call.cancel()

    with pytest.raises(asyncio.CancelledError):
        await call
    assert ready == "\n"
    assert not [pid for pid in noted(tmp_path) if alive(pid)]


async def test_a_call_that_is_cancelled_at_once_starts_nothing_that_lives(tmp_path: Path) -> None:
    for turns in range(6):
        call = asyncio.ensure_future(sh(stay(tmp_path), tmp_path))
        for _ in range(turns):
            await asyncio.sleep(0)
        call.cancel()
        with pytest.raises(asyncio.CancelledError):
            await call
    started = noted(tmp_path) if (tmp_path / "pids").exists() else []

    assert not [pid for pid in started if alive(pid)]


@pytest.mark.proves("R8")
async def test_a_program_that_kills_its_reaper_takes_its_children_with_it(tmp_path: Path) -> None:
    ended = await sh(f"(setsid sh -c '{stay(tmp_path)}' &); {WAIT}; kill -9 $PPID; {stay(tmp_path)}", tmp_path)

    assert ended.code == -signal.SIGKILL
    assert noted(tmp_path)
    assert not [pid for pid in noted(tmp_path) if alive(pid)]


@pytest.mark.proves("R8")
async def test_that_holds_when_it_does_so_at_once(tmp_path: Path) -> None:
    for _ in range(5):
        ended = await sh(f"kill -9 $PPID; {stay(tmp_path)}", tmp_path)
        assert ended.code == -signal.SIGKILL

    assert not [pid for pid in (noted(tmp_path) if (tmp_path / "pids").exists() else []) if alive(pid)]


ATTACH = (
    "import ctypes, os, time; ctypes.CDLL(None).ptrace(16, os.getppid(), 0, 0); open('held', 'w'); time.sleep(1000)"
)


@pytest.mark.proves("R8")
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("echo $$ > pids; kill -STOP $PPID; echo > held; exec sleep 1000", id="stopped"),
        pytest.param(f'echo $$ > pids; exec python3 -c "{ATTACH}"', id="held by a debugger"),
    ],
)
@pytest.mark.parametrize("cancelled", [True, False])
async def test_a_reaper_that_is_stopped_by_its_command_ends_it_nevertheless(
    text: str, tmp_path: Path, cancelled: bool
) -> None:
    call = asyncio.ensure_future(sh(text, tmp_path, timeout=None if cancelled else 1))
    if cancelled:
        await asyncio.to_thread(wait_for, (tmp_path / "held").exists)
        call.cancel()
    done, _ = await asyncio.wait({call}, timeout=20)

    assert done
    assert noted(tmp_path)
    assert not [pid for pid in noted(tmp_path) if alive(pid)]
    assert (await sh("echo ok", tmp_path)).stdout == b"ok\n"


def stat(pid: int) -> list[str]:
    """State, parent and so on."""
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()


def ask_to_sweep(supervisor: Supervisor) -> socket.socket:
    """Hand a reaper the question after which it sweeps; it waits until that is put."""
    ours, theirs = socket.socketpair()
    ours.settimeout(20)
    with theirs:
        supervisor.submit(SWEEP, (theirs.fileno(),))
    return ours


def unread(sender: socket.socket) -> int:
    """How many bytes the other end has not read yet."""
    return int.from_bytes(ioctl(sender, TIOCOUTQ, bytes(4)), sys.byteorder)


@pytest.mark.proves("R8")
async def test_the_supervisor_goes_on_when_it_sees_a_dead_reaper_and_is_asked_to_sweep_after_it_at_once(
    tmp_path: Path,
) -> None:
    SUPERVISOR.close()  # the next one has no reapers of calls before
    pipe = os.pipe()
    command = await start(ProcessSpec(["sh", "-c", stay(tmp_path)], str(tmp_path), ENV, hello=0), *pipe, pipe[1])
    reaper = int(stat(command.pid)[1])
    supervisor = SUPERVISOR.pid
    assert wait_for(lambda: len({*children_of(supervisor)}) == READY_AT_FIRST)
    reapers = {*children_of(supervisor)}
    with ExitStack() as asking:
        asked = [asking.enter_context(ask_to_sweep(SUPERVISOR)) for _ in range(READY_AT_FIRST - 1)]  # all that are idle
        ours = asked[-1]
        assert wait_for(lambda: set(children_of(supervisor)) - reapers)  # one more, for the next call
        os.kill(supervisor, signal.SIGSTOP)
        os.kill(reaper, signal.SIGKILL)
        assert wait_for(lambda: not alive(reaper))
        ours.sendall(message(0))
        assert wait_for(lambda: not unread(ours) and all(stat(pid)[0] == "S" for pid in reapers - {reaper}))
        os.kill(supervisor, signal.SIGCONT)

        assert ours.recv(1) == b""
    assert (await command.wait()).why == "lost"
    assert not alive(command.pid)
    assert (await sh("echo ok", tmp_path)).stdout == b"ok\n"
    assert SUPERVISOR.pid == supervisor
    for fd in pipe:
        os.close(fd)


async def test_other_signals_do_not_reach_the_reaper(tmp_path: Path) -> None:
    assert (await sh("kill $PPID; kill -INT $PPID; kill -HUP $PPID; echo ok", tmp_path)).stdout == b"ok\n"


async def test_after_the_supervisor_was_killed_there_is_another(tmp_path: Path) -> None:
    await sh("true", tmp_path)
    before = SUPERVISOR.pid
    os.kill(before, signal.SIGKILL)
    assert wait_for_end(before)

    assert (await sh("echo ok", tmp_path)).stdout == b"ok\n"
    assert SUPERVISOR.pid != before


@pytest.mark.proves("R8")
def test_a_reaper_that_waits_for_a_supervisor_does_not_outlive_it() -> None:
    supervisor = Supervisor()
    supervisor._ready()  # without a command
    assert wait_for(lambda: len(children_of(supervisor.pid)) == READY_AT_FIRST)
    reapers = children_of(supervisor.pid)
    os.kill(supervisor.pid, signal.SIGSTOP)
    with ask_to_sweep(supervisor) as ours:
        ours.sendall(message(0))
        os.kill(supervisor.pid, signal.SIGKILL)

        assert ours.recv(1) == b""  # the one that was asked has ended
    supervisor.close()
    assert all(map(wait_for_end, reapers))


async def test_a_call_goes_on_when_the_supervisor_is_killed_under_it(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "gate")
    call = asyncio.ensure_future(sh("echo $PPID; read x < gate; echo $x", tmp_path))
    gate = await asyncio.to_thread((tmp_path / "gate").open, "w")  # it has been opened for reading
    os.kill(SUPERVISOR.pid, signal.SIGKILL)
    assert wait_for_end(SUPERVISOR.pid)
    with gate:
        gate.write("ok\n")
    reaper, *said = (await call).stdout.split()

    assert said == [b"ok"]
    assert wait_for_end(int(reaper))


async def test_without_an_interpreter_that_is_an_error(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    SUPERVISOR.close()
    monkeypatch.setattr(sys, "executable", "")

    with pytest.raises(OSError, match=r"sys\.executable is empty"):
        await sh("true", tmp_path)


async def test_a_supervisor_that_was_started_before_is_used(tmp_path: Path) -> None:
    SUPERVISOR.close()
    SUPERVISOR._ready()  # without a command
    before = SUPERVISOR.pid

    assert (await sh("echo ok", tmp_path)).stdout == b"ok\n"
    assert SUPERVISOR.pid == before


FORK = """
import os
from handrail.processes.supervisor import SUPERVISOR
SUPERVISOR._ready()  # without a command
pid = os.fork()
if not pid:
    os._exit(0 if SUPERVISOR.pid == 0 else 1)
assert os.waitpid(pid, 0)[1] == 0
assert SUPERVISOR.pid
"""


def test_a_forked_program_leaves_the_supervisor_to_its_parent() -> None:
    assert subprocess.run([sys.executable, "-c", FORK], check=False, timeout=60).returncode == 0


KILLED = """
import asyncio, sys
from handrail.processes.run import run
asyncio.run(run(["sh", "-c", sys.argv[1]], cwd=sys.argv[2], env={"PATH": sys.argv[3]}, timeout=None, max_bytes=10))
"""


@pytest.mark.proves("R8")
@pytest.mark.parametrize("text", LEFT_BEHIND)
async def test_nothing_lives_after_we_were_killed_ourselves(text: str, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "ready")
    line = text.format(stay=stay(tmp_path), wait=WAIT) + "; echo > ready; sleep 1000"
    program = subprocess.Popen([sys.executable, "-c", KILLED, line, str(tmp_path), ENV["PATH"]])
    await asyncio.to_thread(read_pipe, tmp_path / "ready")
    below = descendants(program.pid)
    program.kill()
    program.wait()

    assert noted(tmp_path)
    assert all(wait_for_end(pid) for pid in [*noted(tmp_path), *below])


async def test_reapers_are_used_again_and_keep_nothing_of_a_call(tmp_path: Path) -> None:
    async def reaper() -> tuple[str, ...]:
        look = "echo $PPID; readlink /proc/$PPID/cwd; ls /proc/$PPID/fd | wc -l"
        return tuple((await sh(look, tmp_path)).stdout.decode().split())

    first = {await reaper() for _ in range(6)}
    for _ in range(12):
        with pytest.raises(FileNotFoundError):
            await run(["/no/such/program"], cwd="/", env=ENV, timeout=30, max_bytes=10)
    later = {await reaper() for _ in range(6)}

    assert len({pid for pid, *_ in first | later}) < 12
    assert {where for _, where, _ in first | later} == {str(tmp_path)}
    counts = {int(count) for *_, count in first | later}
    assert max(counts) - min(counts) < 5  # it may still be closing what the command got


async def test_commands_at_once_find_a_reaper_each_that_was_ready_before(tmp_path: Path) -> None:
    SUPERVISOR.close()
    SUPERVISOR.start()
    assert wait_for(lambda: len(children_of(SUPERVISOR.pid)) == READY_AT_FIRST)
    ready = {*children_of(SUPERVISOR.pid)}

    ended = await asyncio.gather(*(sh("echo $PPID", tmp_path) for _ in range(READY_AT_FIRST)))

    assert {int(each.stdout) for each in ended} <= ready


def open_files(pid: int) -> list[str]:
    """What a process has open. Newer versions of libffi, which ctypes uses, keep their own file open."""
    names = map(read_link, map(str, Path(f"/proc/{pid}/fd").iterdir()))  # one of them may be closed meanwhile
    return [name for name in names if name and "/libffi" not in name]


async def test_a_reaper_that_waits_holds_nothing_of_its_rehearsal() -> None:
    SUPERVISOR.close()
    SUPERVISOR.start()
    assert wait_for(lambda: len(children_of(SUPERVISOR.pid)) == READY_AT_FIRST)

    for pid in children_of(SUPERVISOR.pid):
        assert wait_for(lambda: len(open_files(pid)) == 6)  # noqa: B023


async def test_an_idle_reaper_that_is_killed_is_replaced(tmp_path: Path) -> None:
    for _ in range(3):
        await sh("true", tmp_path)
        for pid in children_of(SUPERVISOR.pid):
            os.kill(pid, signal.SIGKILL)
            assert wait_for_end(pid)

    assert (await sh("echo ok", tmp_path)).stdout == b"ok\n"


@pytest.mark.skipif(sys.platform != "linux", reason="only Linux restricts programs this way")
async def test_a_program_that_cannot_be_restricted_or_found_does_not_start(tmp_path: Path) -> None:
    wrong = {"version": 1, "handled": 0, "for_files": 0, "rules": [], "filter": b""}
    marker = tmp_path / "ran"

    with pytest.raises(OSError, match="landlock_create_ruleset"):
        await run(["touch", str(marker)], cwd="/", env={}, timeout=5, max_bytes=100, restrictions=wrong)

    assert not marker.exists()
