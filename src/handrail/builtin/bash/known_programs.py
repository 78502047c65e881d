"""
Whether a program is one that its table entry describes: npm from version 7 on, Python from 3.11 on.

Before version 7 npm ran the script that `onload-script` of a project's `.npmrc` names; before 3.11 Python looks for
modules in the working folder. A program that chooses another version of itself does not look like npm's own file.
"""

import json
import os
from collections.abc import Awaitable, Callable
from pathlib import Path

from handrail.files.search_path import find_program
from handrail.processes.run import Ended

NPM_FILE = "/npm/bin/npm-cli.js"
FIRST_NPM = 7
MAX_PACKAGE = 1_000_000
# Isolated (-I), so that neither the folder nor the environment brings code in.
ASK_PYTHON = ("-I", "-c", "import sys; print(sys.version_info >= (3, 11))")

RunProgram = Callable[[list[str], str], Awaitable[Ended]]


def npm_problem(path: str) -> str:
    """Why the npm of a search path may run code of the project; empty = it does not, or there is none."""
    found = find_program("npm", path)
    if not found:
        return ""
    real = os.path.realpath(found)
    if not real.endswith(NPM_FILE) or npm_version(real) < FIRST_NPM:
        return f"{found!r} is not known to be npm {FIRST_NPM} or newer"
    return ""


def npm_version(program: str) -> int:
    """The first number of npm's version, by the package that a program belongs to; 0 if it is not known."""
    try:
        with Path(program).parent.parent.joinpath("package.json").open(encoding="utf-8") as file:
            package = json.loads(file.read(MAX_PACKAGE))
        return int(str(package["version"]).partition(".")[0]) if package["name"] == "npm" else 0
    except (OSError, ValueError, KeyError, TypeError):
        return 0


async def python_problem(name: str, folder: str, run_program: RunProgram) -> str:
    """Why a Python may load modules of the working folder; empty = it does not, or there is none."""
    try:
        ended = await run_program([name, *ASK_PYTHON], folder)
    except OSError:
        return ""
    return "" if ended.stdout == b"True\n" else f"{name} is not known to be Python 3.11 or newer"
