"""The measures of the source count what they say, and the picture in the docs is the one that the source gives."""

import json
import subprocess
import sys
from pathlib import Path

from tests.forked import unmeasured

ROOT = Path(__file__).resolve().parents[2]
LAYERS = """
[[tool.importlinter.contracts]]
type = "layers"
layers = ["top", "left | right", "base | lazy"]
"""
SOURCE = {
    "top.py": "from handrail.left import Twin\nfrom handrail.base import *\n",
    "left.py": """
from handrail import base
import handrail.base

class Twin:
    def __init__(self, a, b, c, d, e, f, g, *, h, i, j, k, l, m): ...
    @property
    def told(self): ...

def told(**options: Any): ...
def embed(): ...
def heeded():
    import os  # nobody knows why
""",
    "right.py": "class _Twin: ...\nclass Glob:\n    def is_destructive(self): ...\n",
    "base.py": "x = import_module('os')\ny = lazy('os')\n",
    "lazy.py": "def lazy(name): return import_module(name)\n",
}


def shape(*arguments: str | Path) -> str:
    command = [sys.executable, ROOT / "scripts" / "shape.py", *arguments]
    return subprocess.run(command, env=unmeasured(), capture_output=True, text=True, check=True).stdout


def project(folder: Path) -> Path:
    (folder / "pyproject.toml").write_text(LAYERS)
    (folder / "src" / "handrail").mkdir(parents=True)
    for name, text in SOURCE.items():
        (folder / "src" / "handrail" / name).write_text(text)
    return folder


def test_it_counts_what_it_says(tmp_path: Path) -> None:
    found = {each["what"]: each for each in json.loads(shape("--json", "--root", project(tmp_path)))}

    values = {what: (each["value"], each["names"]) for what, each in found.items()}
    assert values["lines of source"] == (21, [])
    assert values["class names with two meanings, in percent"] == (50.0, ["Twin: handrail.left, handrail.right"])
    assert values["constructors over 12 parameters"] == (1, ["13 handrail.left.Twin"])
    assert values["functions that take `**options: Any`"] == (1, ["handrail.left.told(**options)"])
    assert values["late imports in 1,000 lines"] == (142.86, ["handrail.base:1", "handrail.base:2", "handrail.left:13"])
    assert values["functions named by a bare participle"] == (2, ["handrail.left.told", "handrail.left.heeded"])
    assert values["nobody, somebody, whoever"] == (1, ["1 handrail.left"])
    assert values["source files that name the tool Glob; a new tool needs 2"] == (1, ["handrail.right"])
    assert [what for what, each in found.items() if not each["kept"]] == [
        "class names with two meanings, in percent",
        "constructors over 12 parameters",
        "functions that take `**options: Any`",
        "late imports in 1,000 lines",
        "functions named by a bare participle",
        "nobody, somebody, whoever",
    ]


def test_the_picture_has_a_row_for_each_package_and_a_rule_between_layers(tmp_path: Path) -> None:
    assert shape("--picture", "--root", project(tmp_path)).splitlines() == [
        "top    left base",
        "-----",
        "left   base",
        "right  nothing of ours",
        "-----",
        "base   nothing of ours",
        "lazy   nothing of ours",
    ]


def test_the_picture_in_the_documentation_is_the_one_of_the_source() -> None:
    page = (ROOT / "docs" / "architecture.md").read_text("utf-8")

    assert f"```text\n{shape('--picture')}```\n" in page, "run: make picture"


SEAMS = {
    "handrail": "the public names, each loaded when it is first used",
    "handrail.__main__": "the version is printed without the rest",
    "handrail.cli.main": "one module per command",
    "handrail.cli.permissions": "the table of its sub-commands",
    "handrail.cli.mcp": "one module per sub-command",
    "handrail.cli.mcp.serve": "modules of users, by their names",
    "handrail.processes.reaper": "a process that must stay small",
    "handrail.processes.supervisor_main": "a process that must stay small",
    "handrail.providers.choose": "the table of wire formats",
    "handrail.shell.grammars": "the table of grammars",
    "handrail.shell.tables": "the table of families",
    "handrail.testing": "the public names of the fakes",
    "handrail.testing.plugin": "pytest loads it in every run",
    "handrail.tools.stub": "the table of built-in tools",
}
"""Modules that import by name or inside functions, each with its reason; all others load late through `lazy`."""


def test_late_imports_go_through_the_one_helper() -> None:
    found = set()
    for file in (ROOT / "src").rglob("*.py"):
        parts = file.relative_to(ROOT / "src").with_suffix("").parts
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        text = file.read_text("utf-8")
        if name != "handrail.lazy" and ("import_module(" in text or "PLC0415" in text):
            found.add(name)

    assert found <= SEAMS.keys(), "use handrail.lazy, or say here why not"
