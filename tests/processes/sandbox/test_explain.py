"""A violation is explained to the model: the sandbox is named, and what would be allowed."""

from contextlib import closing

import pytest

from handrail.processes.sandbox.choose import Method
from handrail.processes.sandbox.explain import explain
from handrail.processes.sandbox.plan import make_plan
from handrail.processes.sandbox.settings import Domain, Network, SandboxSettings
from tests.processes.sandbox.box import Box, run
from tests.processes.sandbox.test_plan import AROUND, ON

OFF = make_plan(ON, AROUND)
SOME = make_plan(SandboxSettings(enabled=True, network=Network(allowed=(Domain("packages.example"),))), AROUND)


@pytest.mark.parametrize(
    ("output", "said"),
    [
        ("touch: cannot touch '/etc/x': Read-only file system", "'/etc/x' is read-only"),
        ("/bin/bash: line 1: /etc/x: Read-only file system", "'/etc/x' is read-only"),
        ("/bin/sh: 1: cannot create /etc/x: Read-only file system", "'/etc/x' is read-only"),
        ("OSError: [Errno 30] Read-only file system: 'x'", "something it wanted to write is read-only"),
        ("cat: /home/dev/.ssh/id_rsa: No such file or directory", "'/home/dev/.ssh/id_rsa' is hidden"),
        ("cat: /etc/shadow: Permission denied", "'/etc/shadow' is hidden"),
        ("curl: (6) Could not resolve host: example.com", "there is no network"),
        ("connect: Network is unreachable", "there is no network"),
        ("npm error getaddrinfo EAI_AGAIN registry.example", "there is no network"),
        ("bwrap: Can't bind mount /x on /newroot/x", "could not be set up (Can't bind mount"),
    ],
)
def test_what_the_sandbox_stopped_is_explained(output: str, said: str) -> None:
    text = explain(f"first line\n{output}\n", 1, OFF, Method.BUBBLEWRAP, can_leave=False)

    assert text.startswith("The sandbox stopped this: ")
    assert said in text


@pytest.mark.parametrize(
    ("output", "code"),
    [
        pytest.param("Read-only file system", 0, id="a command that succeeded"),
        pytest.param("AssertionError: 1 != 2", 1, id="an ordinary failure"),
        pytest.param("cat: /home/dev/proj/x: No such file or directory", 1, id="a missing file of the project"),
        pytest.param("curl: (7) Failed to connect to localhost port 80", 7, id="a server of the command's own"),
        pytest.param("cat: /etc/nothing: No such file or directory", 1, id="a missing file that would be shown"),
    ],
)
def test_an_ordinary_failure_is_not_blamed_on_the_sandbox(output: str, code: int) -> None:
    assert explain(output, code, OFF, Method.BUBBLEWRAP, can_leave=True) == ""


def test_what_can_be_reached_is_named() -> None:
    text = explain("handrail sandbox: evil.example:443 is not among x", 1, SOME, Method.BUBBLEWRAP, can_leave=True)

    assert "evil.example:443 is not among x" in text
    assert "Only packages.example can be reached" in text
    assert "dangerouslyDisableSandbox" in text


def test_landlock_says_what_it_cannot_allow() -> None:
    text = explain("mkdir: cannot create directory 'x': Permission denied", 1, OFF, Method.LANDLOCK, can_leave=False)

    assert "New entries cannot be made directly in a working folder" in text


@pytest.mark.needs("bwrap")
@pytest.mark.parametrize(
    ("script", "said"),
    [
        ("touch /usr/x", "'/usr/x' is read-only"),
        ("python3 -c \"import socket; socket.getaddrinfo('example.com', 443)\"", "there is no network"),
        ("cat /etc/shadow", "'/etc/shadow' is hidden"),
    ],
)
def test_real_violations_are_recognised(box: Box, script: str, said: str) -> None:
    with closing(box.sandbox()) as sandbox:
        done = run(sandbox, script, box.project)

        assert done.returncode != 0
        assert said in sandbox.explain(done.stdout, done.returncode)
