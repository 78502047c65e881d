"""npm and pip look at what is installed unasked, where the program is one that runs no code of the project."""

import json
import os
from pathlib import Path

import pytest

from handrail.tools.outcome import Status
from tests.builtin.bash.session import Session

pytestmark = pytest.mark.anyio

NPMRC = """
cache={0}/planted-cache
logs-dir={0}/planted-logs
onload-script={0}/evil.js
node-options=--require {0}/evil.js
script-shell={0}/evil.sh
shell={0}/evil.sh
git={0}/evil.sh
viewer={0}/evil.sh
timing=true
logs-max=10
"""


def with_evil_files(session: Session) -> None:
    project = session.project
    (project / "package.json").write_text('{"name": "app", "version": "1.2.3", "scripts": {"build": "touch marker"}}')
    (project / ".npmrc").write_text(NPMRC.format(project))
    (project / "evil.js").write_text(f"require('fs').writeFileSync('{project}/marker', '')")
    (project / "evil.sh").write_text(f"#!/bin/sh\ntouch {project}/marker\n")
    (project / "evil.sh").chmod(0o755)


@pytest.mark.proves("X24")
@pytest.mark.needs("npm")
async def test_npm_lists_and_nothing_of_the_project_runs_or_is_written(tmp_path: Path) -> None:
    session = Session(tmp_path, {"PATH": os.environ["PATH"]})
    with_evil_files(session)
    before = sorted(session.project.iterdir())

    for line in ("npm ls", "npm ls --depth=0 left-pad", "npm root", "npm prefix", "npm run"):
        outcome = await session.bash(line, session.rules())

        assert outcome.status is not Status.DENIED, outcome.result.text

    assert sorted(session.project.iterdir()) == before
    assert list(session.home.iterdir()) == []


def make_npm(folder: Path, version: str, name: str = "npm") -> Path:
    """A folder for PATH with an npm of this version that notes that it was started."""
    package = folder / "lib" / name
    (package / "bin").mkdir(parents=True)
    (package / "package.json").write_text(json.dumps({"name": name, "version": version}))
    (package / "bin/npm-cli.js").write_text(f"#!/bin/sh\ntouch {folder}/started\n")
    (package / "bin/npm-cli.js").chmod(0o755)
    (folder / "bin").mkdir()
    (folder / "bin/npm").symlink_to(package / "bin/npm-cli.js")
    return folder / "bin"


@pytest.mark.parametrize(
    ("version", "name", "asked"),
    [
        ("11.0.0", "npm", False),
        ("7.0.0", "npm", False),
        ("6.14.0", "npm", True),
        ("x", "npm", True),
        ("9.0.0", "shim", True),
    ],
)
async def test_an_npm_that_may_run_code_of_the_project_is_asked_about(
    tmp_path: Path, version: str, name: str, asked: bool
) -> None:
    folder = make_npm(tmp_path / "npm", version, name)
    session = Session(tmp_path, {"PATH": f"{folder}:/usr/bin:/bin"})

    outcome = await session.bash("npm ls", session.rules())

    assert (outcome.status is Status.DENIED) == asked
    assert (tmp_path / "npm/started").exists() != asked


@pytest.mark.proves("X24")
@pytest.mark.parametrize(("answer", "asked"), [("True", False), ("False", True), ("", True)])
async def test_pip_of_a_python_that_loads_modules_of_the_folder_is_asked_about(
    tmp_path: Path, answer: str, asked: bool
) -> None:
    folder = tmp_path / "programs"
    folder.mkdir()
    (folder / "python3").write_text(f'#!/bin/sh\n[ "$1" = -I ] && echo {answer} && exit\ntouch {tmp_path}/started\n')
    (folder / "python3").chmod(0o755)
    session = Session(tmp_path, {"PATH": f"{folder}:/usr/bin:/bin"})

    outcome = await session.bash("python3 -m pip list", session.rules())

    assert (outcome.status is Status.DENIED) == asked
    assert (tmp_path / "started").exists() != asked


async def test_no_module_of_the_folder_is_loaded_by_pip(tmp_path: Path) -> None:
    session = Session(tmp_path, {"PATH": os.environ["PATH"]})
    for name in ("pip.py", "colorama.py", "keyring.py", "tomli.py", "_distutils_hack.py", "sitecustomize.py"):
        (session.project / name).write_text("open('marker', 'w')")

    await session.bash("python3 -m pip list; python3 -m pip show pip", session.rules())

    assert not (session.project / "marker").exists()
