"""
Handrail as a real process that starts in a moment.

Most of what a start of `handrail` costs is the imports, and more so when they are measured. Tests that need a process,
its streams, signals and exit codes, and not the start of an interpreter, start `program()`: a small client of a server
that has everything imported and forks itself.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from functools import cache
from pathlib import Path

HERE = Path(__file__).parent
MODULES = ("handrail", "pytest", "tests.transcripts.cutting")


class Server:
    """Runs from the first use to the end of the tests of this process."""

    def __init__(self) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="handrail-tests-")
        self.bin = Path(self._folder.name)
        address = self.bin / "server"
        self._process = subprocess.Popen(
            [sys.executable, "-W", "error", "-m", "tests.forked.server", address],
            cwd=HERE.parents[1],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        text = f"#!{sys.executable} -ISE\nSERVER = {str(address)!r}\n{(HERE / 'client.py').read_text()}"
        for module in MODULES:
            (self.bin / module).write_text(text)
            (self.bin / module).chmod(0o755)

    def close(self) -> None:
        self._process.communicate(timeout=30)
        self._folder.cleanup()


@cache
def server() -> Server:
    return Server()


def program(module: str = "handrail") -> Path:
    """What to start in place of `python -m handrail`, or of another of the modules."""
    return server().bin / module


def end() -> None:
    if server.cache_info().currsize:
        server().close()
        server.cache_clear()


def unmeasured(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a process that starts faster, as its coverage is not measured: what it runs, others run too."""
    return {name: value for name, value in variables.items() if not name.startswith("COVERAGE_")}
