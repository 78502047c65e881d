"""The architecture page names every package, and every file and name that it refers to exists."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCE = ROOT / "src" / "handrail"
PAGE = (ROOT / "docs" / "architecture.md").read_text("utf-8")
REFERENCES = sorted(set(re.findall(r"`([\w/]+\.(?:py|json|toml))(?::([\w.]+))?`", PAGE)))


def defined_names(body: list[ast.stmt], prefix: str = "") -> Iterator[str]:
    """The functions, classes and variables of a module, and the methods of its classes as `Class.method`."""
    for node in body:
        match node:
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield prefix + name
            case ast.ClassDef(name=name):
                yield prefix + name
                yield from defined_names(node.body, f"{prefix}{name}.")
            case ast.Assign(targets=targets):
                yield from (
                    prefix + each.id for target in targets for each in ast.walk(target) if isinstance(each, ast.Name)
                )
            case ast.AnnAssign(target=ast.Name(id=name)):
                yield prefix + name


def problem_with(file: str, name: str) -> str:
    """Why a reference leads nowhere; empty if it leads somewhere."""
    path = SOURCE / file
    if "NAME" in file or (not name and (ROOT / file).exists()):
        return ""
    if not path.exists():
        return f"there is no file {file}"
    known = set(defined_names(ast.parse(path.read_text("utf-8")).body)) if name else set()
    return f"{file} defines no {name}" if name and name not in known else ""


@pytest.mark.parametrize(("file", "name"), REFERENCES)
def test_a_reference_leads_to_something_in_the_source(file: str, name: str) -> None:
    assert problem_with(file, name) == ""


def test_a_reference_that_leads_nowhere_is_found() -> None:
    assert problem_with("loop/run.py", "Run.interrupt") == problem_with("builtin/NAME.py", "") == ""
    assert problem_with("loop/no_such.py", "") == "there is no file loop/no_such.py"
    assert problem_with("loop/run.py", "Run.no_such") == "loop/run.py defines no Run.no_such"


def test_the_list_of_packages_is_complete() -> None:
    listed = re.findall(r"^(\w+) ", PAGE.partition("```text\n")[2].partition("```")[0], re.MULTILINE)
    packages = {path.stem for path in SOURCE.iterdir() if path.is_dir() or path.suffix == ".py"}

    assert sorted(listed) == sorted(packages - {"__init__", "__pycache__"})


def test_one_call_is_told_in_fifteen_steps() -> None:
    assert re.findall(r"^\| (\d+) \|", PAGE, re.MULTILINE) == [str(number) for number in range(1, 16)]
