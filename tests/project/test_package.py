"""What people install works, and set-up gives clear answers."""

import importlib.metadata
import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from tests.forked import unmeasured

import handrail

ROOT = Path(__file__).resolve().parents[2]


def must(*command: str | Path, cwd: Path = ROOT) -> str:
    done = subprocess.run(command, cwd=cwd, env=unmeasured(), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.mark.needs(".wheels")
def test_the_wheel_installs_with_all_extras_from_stored_wheels_and_runs(tmp_path: Path) -> None:
    must(sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", tmp_path)
    [wheel] = tmp_path.glob("handrail-*.whl")
    must(sys.executable, "-m", "venv", "--without-pip", tmp_path / "clean")
    python = tmp_path / "clean" / "bin" / "python"

    pip: list[str | Path] = [
        sys.executable,
        "-m",
        "pip",
        "--isolated",
        "--python",
        python,
        "install",
        "--quiet",
        "--no-compile",
        "--no-index",
    ]
    stored: list[str | Path] = ["--find-links", ROOT / ".wheels", "--constraint", ROOT / "constraints.txt"]
    must(*pip, "--no-build-isolation", *stored, f"{wheel}[all]")

    assert must(python.with_name("handrail"), "--version", cwd=tmp_path) == f"handrail {handrail.__version__}\n"
    assert must(python, "-m", "handrail", "--version", cwd=tmp_path) == f"handrail {handrail.__version__}\n"


def test_the_command_of_this_environment_tells_its_version() -> None:
    assert must(Path(sys.executable).with_name("handrail"), "--version") == f"handrail {handrail.__version__}\n"
    assert must(sys.executable, "-m", "handrail", "--version") == f"handrail {handrail.__version__}\n"


def pins() -> dict[str, str]:
    lines = (ROOT / "constraints.txt").read_text("utf-8").split()
    return {canonicalize_name(name): version for name, version in (line.split("==") for line in lines)}


def test_everything_that_set_up_installs_has_a_pinned_version() -> None:
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["dependency-groups"]
    included, *development = groups["dev"]
    assert included == {"include-group": "build"}
    waiting = [Requirement("handrail[all]"), *map(Requirement, (*groups["build"], *development))]
    seen: set[tuple[str, str]] = set()
    while waiting:
        requirement = waiting.pop()
        for extra in ("", *requirement.extras):
            name = canonicalize_name(requirement.name)
            if (name, extra) in seen:
                continue
            seen.add((name, extra))
            parts = map(Requirement, importlib.metadata.requires(name) or [])
            waiting += [part for part in parts if not part.marker or part.marker.evaluate({"extra": extra})]

    assert {name for name, _ in seen} - {"handrail"} <= pins().keys()


def test_the_extra_called_all_is_all_extras_for_one_machine() -> None:
    extras = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["optional-dependencies"]
    [everything] = map(Requirement, extras.pop("all"))

    assert (everything.name, everything.extras) == ("handrail", set(extras) - {"cluster"})


def set_up(folder: Path, python: str | Path, *words: str) -> tuple[int, str]:
    """Runs a copy of the script in a folder of its own, so that no mistake can harm this checkout."""
    (folder / "scripts").mkdir()
    script = shutil.copy(ROOT / "scripts" / "setup", folder / "scripts")
    environment = {**os.environ, "PYTHON": str(python)}
    done = subprocess.run([script, *words], env=environment, capture_output=True, text=True, check=False)
    return done.returncode, done.stderr


@pytest.mark.parametrize("version", ["3.8.18", "3.10.13", "3.15.0"])
def test_set_up_names_the_pythons_it_can_use(tmp_path: Path, version: str) -> None:
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\necho {version}\n")
    python.chmod(0o755)

    status, said = set_up(tmp_path, python)

    assert status == 1
    assert said.startswith(f"set-up: {python} is Python {version}, and handrail needs 3.11, 3.12, 3.13 or 3.14.")


def test_set_up_says_which_python_it_did_not_find(tmp_path: Path) -> None:
    status, said = set_up(tmp_path, "no-such-python")

    assert status == 1
    assert said.startswith("set-up: there is no no-such-python here.")


def test_set_up_refuses_a_word_that_it_does_not_know(tmp_path: Path) -> None:
    status, said = set_up(tmp_path, sys.executable, "demo")

    assert status == 2
    assert said == "set-up: demo is not known. Give 'run', or nothing for everything.\n"


def test_set_up_says_which_python_does_not_start(tmp_path: Path) -> None:
    status, said = set_up(tmp_path, shutil.which("false") or "false")

    assert status == 1
    assert "false does not start. Name another:" in said


REGISTRY_HOSTS = "|".join(re.escape(host) for host in ("pypi." + "org", "pythonhosted." + "org", "npmjs." + "org"))
ORDINARY_FOLDERS = {"tmp", "home", "root", "usr", "var", "opt", "srv", "mnt", "private", "Users"}


def forbidden() -> re.Pattern[str]:
    """This checkout's place, its top folder if that is a special one, a person's home, and package registries."""
    words = [re.escape(str(ROOT)), REGISTRY_HOSTS]
    if ROOT.parts[1] not in ORDINARY_FOLDERS:
        words.append(rf"(?<![\w.])/{re.escape(ROOT.parts[1])}/")
    if len(Path.home().parts) > 2:
        words.append(re.escape(str(Path.home())))
    return re.compile("|".join(words))


def test_no_committed_file_knows_this_machine() -> None:
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout")
    pattern = forbidden()
    found = []
    for name in must("git", "ls-files", "-z").split("\0"):
        file = ROOT / name
        if name and file.is_file():
            found += [f"{name}: {hit[0]}" for hit in pattern.finditer(file.read_text("utf-8", errors="replace"))]

    assert found == []
