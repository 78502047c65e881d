"""The rules of tests/conftest.py, seen from outside: a small project with the same conftest is run."""

import shutil
import signal
import socket
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from tests.forked import program, unmeasured

ROOT = Path(__file__).resolve().parents[2]
FILTERS = "ignore:It looks like `register_random` was passed"
"""Of Hypothesis about its own generator, on Python 3.14."""
MARKERS = "proves(*ids): x\n    needs(*programs): x"


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "tests").mkdir()
    (tmp_path / "scripts").mkdir()
    shutil.copy(ROOT / "tests" / "conftest.py", tmp_path / "tests")
    (tmp_path / "pytest.ini").write_text(
        f"[pytest]\naddopts = --strict-markers\nfilterwarnings =\n    {FILTERS}\nmarkers =\n    {MARKERS}\n"
    )
    (tmp_path / "checklist.toml").write_text('["A. Tools"]\nA1 = { landed = false, text = "It works." }\n')
    script = tmp_path / "scripts" / "system-deps"
    script.write_text("#!/bin/sh\necho installable\n")
    script.chmod(0o755)
    return tmp_path


def run(project: Path, tests: str, *options: str, ci: str = "") -> tuple[int, str]:
    (project / "tests" / "test_it.py").write_text(f"import pytest\n\n{tests}")
    command: list[str | Path] = [program("pytest"), "-p", "xdist", "-p", "no:cacheprovider", *options]
    # other plugins only cost time here
    environment = {**unmeasured(), "CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = subprocess.run(command, cwd=project, env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stdout + done.stderr


def needing(*programs: str) -> str:
    return "".join(
        f"@pytest.mark.needs({program!r})\ndef test_{number}(): assert {program!r} == 'sh', 'this ran'\n"
        for number, program in enumerate(programs)
    )


def test_tests_without_their_program_are_not_run_and_listed_at_the_end(project: Path) -> None:
    status, output = run(project, needing("installable", "rare", ".wheels", "sh"), "-n1")

    assert status == 0, output
    assert "1 passed, 3 skipped" in output
    listed = output[output.index("not run =") :].splitlines()[1:7]
    assert listed == [
        ".wheels is missing (make setup), so these were not run:",
        "  tests/test_it.py::test_2",
        "installable is missing (scripts/system-deps), so these were not run:",
        "  tests/test_it.py::test_0",
        "rare is missing (not installed by scripts/system-deps), so these were not run:",
        "  tests/test_it.py::test_1",
    ]


@pytest.mark.parametrize(
    ("program", "workers", "status"),
    [
        pytest.param("installable", "-n0", 1, id="what system-deps installs must be there"),
        pytest.param("installable", "-n1", 1, id="what system-deps installs must be there, with a worker"),
        pytest.param(".wheels", "-n0", 1, id="what set-up makes must be there"),
        pytest.param("rare", "-n0", 0, id="what nobody installs may be missing"),
    ],
)
def test_on_ci(project: Path, program: str, workers: str, status: int) -> None:
    assert run(project, needing(program), workers, ci="true")[0] == status


@pytest.mark.parametrize("workers", ["-n0", "-n1"])
def test_an_unknown_id_stops_the_run_and_is_named(project: Path, workers: str) -> None:
    status, output = run(project, "@pytest.mark.proves('A1', 'Z9')\ndef test_it(): ...\n", workers)

    assert status != 0
    assert "tests/test_it.py::test_it proves 'Z9', which checklist.toml does not know." in output
    assert "'A1'" not in output


@pytest.mark.parametrize("address", [("192.0.2.1", 80), ("2001:db8::1", 80), ("example.invalid", 80)])
def test_no_test_reaches_another_machine(address: tuple[str, int]) -> None:
    with pytest.raises(RuntimeError, match="Tests may only talk to"):
        socket.create_connection(address, timeout=1)


def test_no_datagram_leaves_either() -> None:
    with (
        socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as sender,
        pytest.raises(RuntimeError, match="Tests may only talk to"),
    ):
        sender.sendto(b"hello", ("192.0.2.1", 9))


def test_loopback_is_open_to_tests() -> None:
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(("localhost", server.getsockname()[1])) as client,
    ):
        assert client.getpeername() == server.getsockname()


def test_the_programs_that_can_be_installed_are_listed_one_a_line() -> None:
    done = subprocess.run([ROOT / "scripts" / "system-deps", "--list"], capture_output=True, text=True, check=True)

    everywhere = ["tmux", "node", "shfmt"]
    assert done.stdout.splitlines() == (["bwrap", *everywhere, "chromium"] if sys.platform == "linux" else everywhere)


SLOWLY_BROKEN = """
import time

from hypothesis import given, strategies as st

now, failures = 0.0, []
time.perf_counter = lambda: now  # what Hypothesis looks at to see how long it has been shrinking

@given(st.lists(st.integers(), min_size=1))
def test_it(numbers):
    global now
    now += 3
    if sum(numbers) >= 1000:
        failures.append(now)
        raise AssertionError(f"broken by {numbers}")

def test_time():
    assert now - failures[0] < 60
"""


def test_a_broken_property_is_told_within_a_minute_however_slow_its_examples_are(project: Path) -> None:
    status, output = run(project, SLOWLY_BROKEN, "-p", "_hypothesis_pytestplugin")

    assert "broken by [" in output
    assert (status, "1 failed, 1 passed" in output) == (1, True), output


def test_a_test_that_never_ends_fails_with_its_stack_and_the_others_run(project: Path) -> None:
    options = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["pytest"]["ini_options"]
    assert 60 <= options["faulthandler_timeout"] <= 600  # busy machines are slow, and a run is to end
    tests = "import threading\ndef test_1(): threading.Event().wait()\ndef test_2(): ...\n"
    given = {**options, "faulthandler_timeout": 1}
    limits = [f"--override-ini={name}={given[name]}" for name in given if name.startswith("faulthandler_")]
    status, output = run(project, tests, "-n1", *limits)

    assert (status, "1 failed, 1 passed" in output) == (1, True), output
    assert "crashed while running 'tests/test_it.py::test_1'" in output
    assert 'test_it.py", line 4 in test_1' in output


def test_a_run_that_is_deaf_to_ctrl_c_still_tests_what_ctrl_c_does(project: Path) -> None:
    asked = "import signal\ndef test_it(): assert signal.getsignal(signal.SIGINT) is signal.default_int_handler\n"
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        status, output = run(project, asked)
    finally:
        signal.signal(signal.SIGINT, before)

    assert status == 0, output
