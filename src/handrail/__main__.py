"""The `handrail` command. Asking for the version loads nothing else."""

import os
import sys

from handrail import __version__

INTERRUPTED = 130
"""The exit code of a program that Ctrl+C ended."""
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import NoReturn


def main() -> int:
    """Run the command line and return its exit code."""
    if sys.argv[1:] in (["--version"], ["-v"]):
        sys.stdout.write(f"handrail {__version__}\n")
        return 0
    if sys.platform == "win32":
        sys.stderr.write("handrail does not support Windows yet. It runs on Linux and macOS, also under WSL.\n")
        return 1
    from handrail.cli.main import run  # noqa: PLC0415  # the version must not pay for the rest

    return run(sys.argv[1:])


def program() -> "NoReturn":
    """Run the command line as a program, and exit without tearing down the interpreter."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # it was closed; what is opened later must not take its place
            setattr(sys, name, open(os.open(os.devnull, os.O_WRONLY), "w"))  # noqa: SIM115, PTH123  # until the end
    try:
        code = main()
    except KeyboardInterrupt:  # while the first modules were loaded
        code = INTERRUPTED
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)


if __name__ == "__main__":
    program()
