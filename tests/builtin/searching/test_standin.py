"""The stand-in says what ripgrep says, as far as both understand the pattern."""

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.searching.standin import answer, read_arguments
from handrail.errors import ToolError

FILES = {
    "a.py": b"def total(x):\n    return x\n\ntotal(2)\n",
    "b.md": b"# Total\n\nthe total\n- x\n",
    "sub/c.py": b"x = {'total': 1}\r\ny = x\r\n",
    "sub/deep/d.txt": b"aaa\nbbb\naaa bbb",
    "sub/.hidden": b"x\nTOTAL\n",
    "sub/made.py": b"x\n",
    "sub/.gitignore": b"made.py\n# note\n\n!kept.log\n",
    ".gitignore": b"*.log\n/build/\nsub/deep/*\n!sub/deep/d.txt\n",
    "build/x.py": b"x\n",
    "sub/build/x.py": b"x\n",
    "one.log": b"x\n",
    "sub/kept.log": b"x\n",
    "binary": b"x\n\0\1x\n",
    "empty": b"",
    ".git/HEAD": b"x\n",
}


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name, data in FILES.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(data)
    return root


def said(tree: Path, arguments: list[str]) -> list[bytes]:
    out: list[bytes] = []
    before = Path.cwd()
    os.chdir(tree)
    try:
        answer(read_arguments(arguments), out.append, lambda error: None)
    finally:
        os.chdir(before)
    return parts(b"".join(out), arguments)


def parts(output: bytes, arguments: list[str]) -> list[bytes]:
    if "--json" in arguments:
        return output.splitlines()
    return sorted(output.split(b"\n" if "--count" in arguments else b"\0"))


def by_ripgrep(tree: Path, arguments: list[str]) -> list[bytes] | None:
    done = subprocess.run(["rg", *arguments], cwd=tree, capture_output=True, check=False)
    if done.returncode == 2:
        return None
    return parts(done.stdout, arguments)


PATTERNS = st.sampled_from(["total", "x", "^x", r"\w+", "bbb$", "^$", r"\d", "[a-c]{3}", "(a|b)c?", "a.*b", "nope"])
GLOBS = st.lists(st.sampled_from(["*.py", "sub/**", "*.{py,md}", "!*.md", "/a.py", "sub/", "**/c.py"]), max_size=2)


@pytest.mark.needs("rg")
@given(
    pattern=PATTERNS,
    ignore_case=st.booleans(),
    no_ignore=st.booleans(),
    mode=st.sampled_from(["--files-with-matches", "--count", "--files"]),
    globs=GLOBS,
)
def test_the_same_files(
    tree: Path, pattern: str, ignore_case: bool, no_ignore: bool, mode: str, globs: list[str]
) -> None:
    arguments = ["--no-config", "--hidden", "--null", mode, *(f"--glob={glob}" for glob in globs), "--glob=!.git"]
    arguments += ["--ignore-case"] * ignore_case + ["--no-ignore"] * no_ignore
    arguments += ["--with-filename"] * (mode == "--count")
    arguments += [f"--regexp={pattern}"] * (mode != "--files") + ["--", "./"]

    assert said(tree, arguments) == by_ripgrep(tree, arguments)


def told(events: list[bytes]) -> list[Any]:
    kept = [event for event in map(json.loads, events) if event["type"] in {"match", "context"}]
    for event in kept:
        del event["data"]["absolute_offset"]
        event["data"]["submatches"] = [part for part in event["data"]["submatches"] if part["start"] < part["end"]]
    return kept


@pytest.mark.needs("rg")
@settings(max_examples=80)
@given(pattern=PATTERNS, ignore_case=st.booleans(), before=st.integers(0, 3), after=st.integers(0, 3))
def test_the_same_lines(tree: Path, pattern: str, ignore_case: bool, before: int, after: int) -> None:
    arguments = ["--no-config", "--json", "--threads=1", f"--before-context={before}", f"--after-context={after}"]
    arguments += ["--ignore-case"] * ignore_case + [f"--regexp={pattern}", "--", "./a.py", "./b.md", "./sub/deep/d.txt"]

    mine, theirs = told(said(tree, arguments)), told(by_ripgrep(tree, arguments) or [])

    for event in (*mine, *theirs):  # whether the last line ends is not told by the stand-in
        event["data"]["lines"]["text"] = event["data"]["lines"]["text"].rstrip("\n")
    assert mine == theirs


@pytest.mark.parametrize("pattern", ["a(b", "a)", "*a", "[a", "a\nb"])
def test_a_wrong_pattern_is_told(tree: Path, pattern: str) -> None:
    with pytest.raises(ToolError, match="regex"):
        said(tree, ["--files-with-matches", "--null", f"--regexp={pattern}", "--", "./"])
