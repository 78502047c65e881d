"""
Handrail, and a foreign MCP server, as real processes that start in a moment.

Most of what a start of `handrail` costs is the imports, and more so when they are measured. Tests that need a process,
its streams, signals and exit codes, and not the start of an interpreter, start `program()`: a small client of a server
that has everything imported and forks itself. `reference_server()` is such a program too: the reference library of MCP
takes more than a second to import.
"""

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
REFERENCE_SERVER = "tests.mcp.reference_server"
FOREIGN = frozenset({REFERENCE_SERVER})
OWN = frozenset({"handrail", "pytest", "tests.transcripts.cutting"})


class Server:
    """Runs from the first use to the end of the tests of this process."""

    def __init__(self, modules: frozenset[str]) -> None:
        self._folder = tempfile.TemporaryDirectory(prefix="handrail-tests-")
        self.bin = Path(self._folder.name)
        address = self.bin / "server"
        foreign = modules == FOREIGN
        self._process = subprocess.Popen(
            [
                sys.executable,
                *(() if foreign else ("-W", "error")),
                "-m",
                "tests.forked.server",
                address,
                "foreign" if foreign else "own",
            ],
            cwd=HERE.parents[1],
            env=unmeasured() if foreign else None,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        assert self._process.stdout is not None
        assert self._process.stdout.readline() == b"ready\n"
        text = f"#!{sys.executable} -ISE\nSERVER = {str(address)!r}\n{(HERE / 'client.py').read_text()}"
        for module in modules:
            (self.bin / module).write_text(text)
            (self.bin / module).chmod(0o755)

    def close(self) -> None:
        self._process.communicate(timeout=30)
        self._folder.cleanup()


SERVERS: dict[frozenset[str], Server] = {}


def program(module: str = "handrail") -> Path:
    """What to start in place of `python -m handrail`, or of another of the modules."""
    modules = FOREIGN if module in FOREIGN else OWN
    if modules not in SERVERS:
        SERVERS[modules] = Server(modules)
    return SERVERS[modules].bin / module


def reference_server(**more: Any) -> dict[str, Any]:
    """An entry of the list of MCP servers: tests/mcp/reference_server.py on its standard streams."""
    return {"command": str(program(REFERENCE_SERVER)), "args": [], **more}


def end() -> None:
    while SERVERS:
        SERVERS.popitem()[1].close()


def unmeasured(variables: Mapping[str, str] = os.environ) -> dict[str, str]:
    """The variables of a process that starts faster, as its coverage is not measured: what it runs, others run too."""
    return {name: value for name, value in variables.items() if not name.startswith("COVERAGE_")}
