# ruff: noqa: E501 - an attempt is one line
"""Attempts to get out, run for real. Nothing outside the project may change, and no secret may be shown."""

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from handrail.processes.sandbox.choose import MethodTrial
from tests.processes.sandbox.box import SECRET, Box, method, run

HELPERS = r"""
try_python() { python3 -c "$1" && echo ESCAPED; }
"""
SYSCALL = "import ctypes,platform;l=ctypes.CDLL(None,use_errno=True);x=platform.machine()=='x86_64'"

ATTEMPTS = {
    "write outside": "echo new > ../../outside/file.txt",
    "append outside": "echo new >> ../../outside/file.txt",
    "remove outside": "rm -rf ../../outside",
    "move something outside away": "mv ../../outside ../../moved",
    "write through a link in the project": "ln -s ../../../outside src/link; echo new > src/link/file.txt",
    "write through a hard link": "ln ../../outside/file.txt src/hard && echo new > src/hard",
    "write into the home folder": "echo evil >> ../.bashrc; cat ../.bashrc",
    "read a key": "cat ../.ssh/id_ed25519",
    "read a key through a link": "ln -s ../../.ssh src/keys; cat src/keys/id_ed25519",
    "copy a key": "cp -r ../.ssh src/stolen; cat src/stolen/*",
    "read the home folder": "cat ../notes.txt; ls -la ..; grep -r secret ..",
    "read our own state": "cat ../../state/trust.json",
    "move the project away": "mv ../project ../other",
    "create a settings folder": "mkdir -p .handrail && echo '{}' > .handrail/settings.json",
    "create another agent's settings": "mkdir -p .claude && echo '{}' > .claude/settings.json",
    "create a server file": "echo '{}' > .mcp.json",
    "put a settings folder in place": "mkdir src/x && touch src/x/settings.json && mv src/x .handrail",
    "put a link in place of a settings folder": "rmdir .handrail; ln -s src .handrail && echo ESCAPED",
    "free the name, then create": "rm -rf .claude; mkdir .claude && echo 1 > .claude/settings.json && echo ESCAPED",
    "unmount what protects": "umount .handrail && mkdir .handrail && echo ESCAPED",
    "mount over it": "mount -t tmpfs none . && echo ESCAPED; mount --bind src .handrail && echo ESCAPED",
    "make a repository": "git init . && echo ESCAPED",
    "make the folder itself a bare repository": "mkdir objects refs; echo 'ref: refs/heads/x' > HEAD && echo ESCAPED; rmdir objects refs",
    "read the first process's environment": "tr '\\0' '\\n' < /proc/1/environ | grep -q SSH_AUTH_SOCK && echo ESCAPED",
    "reach another root through a process": "ls /proc/1/root/root/.ssh /proc/1/cwd && cat /proc/*/root$OUTSIDE/file.txt",
    "signal a process outside": "kill -0 $OUTSIDE_PID && echo ESCAPED",
    "trace a process outside": "try_python \"import ctypes,os;os._exit(ctypes.CDLL(None).ptrace(16,int(os.environ['OUTSIDE_PID']),0,0)&1)\"",
    "change kernel settings": "cat /proc/sys/kernel/core_pattern > /proc/sys/kernel/core_pattern && echo ESCAPED",
    "press the magic key": "[ -e /proc/sysrq-trigger ] && echo h > /proc/sysrq-trigger && echo ESCAPED",
    "talk to the container engine": "ls /run/docker.sock /var/run/docker.sock && echo ESCAPED",
    "talk to a bus": "ls /run/dbus/system_bus_socket /run/user/* && echo ESCAPED; [ -n \"$DBUS_SESSION_BUS_ADDRESS\" ] && echo ESCAPED",
    "talk to the display": "ls /tmp/.X11-unix/* && echo ESCAPED; [ -n \"$DISPLAY$SSH_AUTH_SOCK\" ] && echo ESCAPED",
    "read passwords of the machine": "cat /etc/shadow && echo ESCAPED",
    "open a disk": "for d in /dev/vda /dev/sda /dev/nvme0n1 /dev/mem /dev/kmsg; do head -c 1 $d && echo ESCAPED; done",
    "make a device": "mknod src/disk b 8 0 && echo ESCAPED",
    "become root by a setuid program": "[ $(id -u) != 0 ] && su -c 'echo ESCAPED' < /dev/null",
    "get capabilities": "grep -E 'Cap(Prm|Eff|Bnd):' /proc/self/status | grep -qv 0000000000000000 && echo ESCAPED",
    "make a user namespace": "unshare -U true && echo ESCAPED; unshare -Ur mount -t tmpfs none src && echo ESCAPED",
    "make a user namespace by clone": f"try_python \"{SYSCALL};import os;r=l.syscall(56 if x else 220,0x10000000|17,0,0,0,0);os._exit(r<0)\"",
    "use the kernel's keyring": f"try_python \"{SYSCALL};import os;os._exit(l.syscall(250 if x else 219,0,-3,0)<0)\"",
    "use io_uring": f"try_python \"{SYSCALL};import os;b=ctypes.create_string_buffer(120);os._exit(l.syscall(425,8,b)<0)\"",
    "reach the host of a virtual machine": "try_python 'import socket;socket.socket(40,socket.SOCK_STREAM)'",
    "reach a raw network": "try_python 'import socket;socket.socket(socket.AF_PACKET,socket.SOCK_RAW)'",
    "type into a terminal": "try_python \"import fcntl,pty;a,b=pty.openpty();fcntl.ioctl(b,0x5412,b'x')\"",
    "reach the terminal": "echo x > /dev/tty && echo ESCAPED",
    "use a descriptor left open": "for n in 3 4 5 6 7 8 9 10 11 12 13 14 15; do [ -e /proc/$$/fd/$n ] && cat <&$n; done",
    "connect to this machine": "try_python \"import socket,os;socket.create_connection(('127.0.0.1',int(os.environ['OUTSIDE_PORT'])),2)\"",
    "connect to an abstract socket": "try_python \"import os,socket;s=socket.socket(socket.AF_UNIX);s.connect('\\0'+os.environ['ABSTRACT'])\"",
    "look up a name": "try_python \"import socket;socket.getaddrinfo('example.com',443)\"",
    "send a datagram": "try_python \"import socket;socket.socket(socket.AF_INET,socket.SOCK_DGRAM).sendto(b'x',('192.0.2.1',53))\"",
    "leave a process behind": "(setsid sh -c 'sleep 0.1; echo new > ../../outside/file.txt' &) ; exit 0",
}  # fmt: skip

GIT_ATTEMPTS = {
    "a hook for later": "echo 'touch PWNED' > .git/hooks/pre-commit; chmod +x .git/hooks/pre-commit",
    "another folder of hooks": "git config core.hooksPath src && echo ESCAPED",
    "a program in the configuration": "git config core.fsmonitor 'touch PWNED' && echo ESCAPED",
    "a written configuration": "printf '[core]\\nfsmonitor = x\\n' >> .git/config && echo ESCAPED",
    "a replaced configuration": "cp .git/config src/c; mv src/c .git/config && echo ESCAPED",
    "the repository moved away and made anew": "mv .git src/old && git init . && echo ESCAPED",
    "the repository removed and made anew": "rm -rf .git/hooks .git/config; git config core.pager x && echo ESCAPED",
    "another common folder": "mkdir -p src/c; cp -r .git/objects .git/refs .git/HEAD src/c; echo ../src/c > .git/commondir",
    "a configuration of the worktree": "echo '[core]' > .git/config.worktree && echo ESCAPED",
    "another worktree's folder": "mkdir -p .git/worktrees/x && echo ../../../src > .git/worktrees/x/commondir && echo ESCAPED",
    "a submodule's hooks": "mkdir -p .git/modules/x/hooks && echo ESCAPED",
    "a filter for later": "git config filter.x.clean 'touch PWNED' && echo '* filter=x' > .git/info/attributes && echo ESCAPED",
}  # fmt: skip

# Landlock has no process namespace: names of processes can be seen, and what is left behind has to be ended from outside.
WITH_NAMESPACES = {
    "see other processes": "ls /proc | grep -qx $OUTSIDE_PID && echo ESCAPED",
    "see their command lines": "cat /proc/[0-9]*/cmdline | tr '\\0' ' ' | grep -q 'neighbour-of-th[e]' && echo ESCAPED",
}


def tree(box: Box) -> dict[str, object]:
    """Everything outside the project's ordinary files, as it is now."""
    skipped = {box.project / "src", box.state / "session"}
    found: dict[str, object] = {}
    for path in box.root.rglob("*"):
        if skipped.isdisjoint((path, *path.parents)) and not _ordinary_git(path.relative_to(box.root)):
            kind = path.lstat().st_mode
            found[str(path)] = (kind, path.read_bytes() if path.is_file() and not path.is_symlink() else None)
    return found


def _ordinary_git(path: Path) -> bool:
    """What a command may change in a repository."""
    parts = path.parts
    return ".git" in parts and parts[-1] != ".git" and not {"hooks", "config", "modules", "worktrees"} & set(parts)


@pytest.fixture(scope="module")
def neighbours() -> Iterator[dict[str, str]]:
    """Things outside that an attempt might reach, as variables that name them."""
    name = f"handrail-test-{os.getpid()}"
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.socket(socket.AF_UNIX) as abstract,
        subprocess.Popen(
            ["cat", "-", "/neighbour-of-the-sandbox"], stderr=subprocess.DEVNULL, stdin=subprocess.PIPE
        ) as outside,
    ):
        abstract.bind("\0" + name)
        abstract.listen()
        agents = dict.fromkeys(("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "SSH_AUTH_SOCK"), f"unix:abstract={name}")
        port = str(server.getsockname()[1])
        yield {**agents, "ABSTRACT": name, "OUTSIDE_PID": str(outside.pid), "OUTSIDE_PORT": port}
        assert outside.poll() is None
        outside.communicate(b"")


@pytest.fixture(autouse=True)
def surroundings(neighbours: dict[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {**neighbours, "OUTSIDE": str(tmp_path / "outside")}.items():
        monkeypatch.setenv(name, value)


def attempt(box: Box, script: str) -> None:
    """Runs the script and asserts that it reached nothing."""
    before = tree(box)

    done = box.run(HELPERS + script)

    assert "ESCAPED" not in done.stdout, done.stdout
    assert SECRET not in done.stdout
    assert tree(box) == before


@pytest.fixture(params=["bubblewrap", "landlock"])
def working(request: pytest.FixtureRequest) -> MethodTrial:
    found = method(request.param)
    if found is None:
        pytest.skip(f"{request.param} does not work here")
    return found


@pytest.mark.parametrize("script", [pytest.param(each, id=name) for name, each in ATTEMPTS.items()])
def test_nobody_gets_out(box: Box, working: MethodTrial, script: str) -> None:
    box.method = working

    attempt(box, script)


@pytest.mark.parametrize("script", [pytest.param(each, id=name) for name, each in GIT_ATTEMPTS.items()])
def test_nothing_is_left_in_a_repository_that_runs_later(box: Box, working: MethodTrial, script: str) -> None:
    box.method = working
    box.git("init")
    box.git("config", "extensions.worktreeConfig", "true")

    attempt(box, script)

    assert not (box.project / ".git" / "commondir").exists()
    assert box.git("rev-parse", "--git-common-dir") == ".git\n"


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("script", [pytest.param(each, id=name) for name, each in WITH_NAMESPACES.items()])
def test_processes_outside_cannot_be_seen(box: Box, script: str) -> None:
    attempt(box, script)


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize("script", [pytest.param(each, id=name) for name, each in ATTEMPTS.items()])
def test_nobody_gets_out_as_an_ordinary_user(users_box: Box, script: str) -> None:
    attempt(users_box, script)


@pytest.mark.needs("bwrap")
def test_a_settings_file_that_was_missing_when_a_command_began_stays_missing(box: Box) -> None:
    with closing(box.sandbox()) as sandbox, closing(sandbox.wrap(["true"], str(box.project))):
        # the placeholder of a command that still runs does not open the way for the next one
        second = run(sandbox, "mkdir -p .handrail; echo '{}' > .handrail/settings.json && echo ESCAPED", box.project)
        assert "ESCAPED" not in second.stdout
        third = run(sandbox, "mkdir -p .handrail; echo '{}' > .handrail/settings.json && echo ESCAPED", box.project)
        assert "ESCAPED" not in third.stdout

    assert sorted(path.name for path in box.project.iterdir()) == ["src"]


@pytest.mark.needs("bwrap")
def test_a_folder_that_becomes_a_link_does_not_open_the_way_out(box: Box) -> None:
    shutil.rmtree(box.project / "src")
    (box.project / "src").symlink_to(box.outside)

    done = box.run("echo new > src/file.txt && echo ESCAPED; echo new > src/other.txt && echo ESCAPED")

    assert "ESCAPED" not in done.stdout
    assert [path.name for path in box.outside.iterdir()] == ["file.txt"]
    assert (box.outside / "file.txt").read_text() == "old\n"
