"""Glob: patterns, odd files, and bounds."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin import glob
from handrail.builtin.glob import MAX_FILES, Glob, alternatives, matcher
from handrail.errors import ToolError
from handrail.tools.abort import AbortReason
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext


def fits(pattern: str, path: str) -> bool:
    return matcher(pattern)(tuple(path.split("/")))


@pytest.mark.parametrize(
    ("pattern", "yes", "no"),
    [
        pytest.param("*.py", ["a.py", ".py", "a.b.py"], ["a.pyc", "d/a.py", "apy"], id="a star stays in its folder"),
        pytest.param("**/*.py", ["a.py", "d/a.py", "d/e/a.py"], ["a.txt"], id="two stars cross folders"),
        pytest.param("src/**", ["src/a", "src/b/c"], ["src", "a/src/b"], id="all below a folder"),
        pytest.param("src/", ["src/a", "src/b/c"], ["src"], id="a folder means all below it"),
        pytest.param("**", ["a", "a/b"], [], id="everything"),
        pytest.param("a/**/b", ["a/b", "a/x/b", "a/x/y/b"], ["a/xb", "b"], id="in the middle"),
        pytest.param("a/**/b/**/c", ["a/b/c", "a/b/x/b/c", "a/x/b/y/c"], ["a/b", "a/c"], id="twice in the middle"),
        pytest.param("**/a/**/a", ["a/a", "x/a/y/a", "a/a/a"], ["a", "x/a"], id="needs two of them"),
        pytest.param("a**.py", ["ab.py", "a.py"], ["a/b.py"], id="two stars inside a name are one"),
        pytest.param("?.txt", ["a.txt", "☃.txt"], [".txt", "ab.txt", "/.txt"], id="one character"),
        pytest.param("[ab].txt", ["a.txt", "b.txt"], ["c.txt", "[ab].txt"], id="a set"),
        pytest.param("[!ab].txt", ["c.txt"], ["a.txt"], id="not in a set"),
        pytest.param("[a-c]1", ["a1", "c1"], ["d1", "-1"], id="a range"),
        pytest.param("[z-a]", [], ["z", "a", "-"], id="a range that goes backwards"),
        pytest.param("[]]", ["]"], ["["], id="a bracket in a set"),
        pytest.param("app/[[]id]/page", ["app/[id]/page"], ["app/i/page"], id="a bracket as itself"),
        pytest.param("[ab", ["[ab"], ["a"], id="a bracket that is not closed"),
        pytest.param("*.{ts,tsx}", ["a.ts", "a.tsx"], ["a.js", "a.{ts,tsx}"], id="alternatives"),
        pytest.param("{src,tests}/**/*.py", ["src/a.py", "tests/b/c.py"], ["docs/a.py"], id="alternative folders"),
        pytest.param("{*.md,docs/**}", ["a.md", "docs/x/y"], ["x/a.md"], id="wildcards in alternatives"),
        pytest.param("{a,{b,c}d}", ["a", "bd", "cd"], ["b", "ad"], id="alternatives in alternatives"),
        pytest.param("a{,b}", ["a", "ab"], ["a,b"], id="an empty alternative"),
        pytest.param("{a", ["{a"], ["a"], id="a brace that is not closed"),
        pytest.param("a}", ["a}"], ["a"], id="a brace that was not opened"),
        pytest.param("./a//b/./c", ["a/b/c"], ["a/b"], id="dots and double slashes"),
        pytest.param("a.b+(c)$^|\\", ["a.b+(c)$^|\\"], ["aXb+(c)$^|\\"], id="signs of other languages"),
        pytest.param("line\nbreak*", ["line\nbreak.txt"], ["line"], id="a line break"),
        pytest.param("*", ["line\nbreak", ".hidden", "a b"], ["a/b"], id="any name"),
        pytest.param("A*", ["Ab"], ["ab"], id="case matters"),
    ],
)
def test_a_pattern_fits_these_and_not_those(pattern: str, yes: list[str], no: list[str]) -> None:
    assert [path for path in yes if not fits(pattern, path)] == []
    assert [path for path in no if fits(pattern, path)] == []


def slowly(pattern: list[str], path: list[str]) -> bool:
    """The same question, answered by trying everything."""
    if not pattern:
        return not path
    head, *rest = pattern
    if head == "**":
        if not rest:
            return bool(path)
        return any(slowly(rest, path[skipped:]) for skipped in range(len(path) + 1))
    return bool(path) and name_slowly(head, path[0]) and slowly(rest, path[1:])


def name_slowly(pattern: str, name: str) -> bool:
    if not pattern:
        return not name
    if pattern[0] == "*":
        return any(name_slowly(pattern[1:], name[skipped:]) for skipped in range(len(name) + 1))
    return bool(name) and pattern[0] in {"?", name[0]} and name_slowly(pattern[1:], name[1:])


NAMES = st.text("ab", min_size=1, max_size=4)


@settings(max_examples=500)
@given(
    st.lists(
        st.just("**") | st.text("ab*?", min_size=1, max_size=4).filter(lambda part: "**" not in part),
        min_size=1,
        max_size=5,
    ),
    st.lists(NAMES, min_size=1, max_size=6),
)
def test_the_matcher_agrees_with_one_that_tries_everything(pattern: list[str], path: list[str]) -> None:
    assert fits("/".join(pattern), "/".join(path)) == slowly(pattern, path)


def test_no_pattern_makes_it_slow() -> None:
    assert not fits("**/a/" * 200 + "b", "a/" * 200 + "c")
    assert not fits("a*" * 100 + "b", "a" * 250)
    assert not fits("**/*" * 100 + "/b", "/".join(["a"] * 200))


@given(st.text("ab{},*[]/.!-", max_size=30))
def test_any_pattern_is_answered_or_refused(pattern: str) -> None:
    try:
        fits(pattern, "a/b")
    except ToolError as error:
        refused = str(error)
        assert "leads upwards" in refused or "alternatives" in refused  # both answers are fine


def test_too_many_alternatives_are_refused() -> None:
    assert len(alternatives("{a,b}" * 8)) == 256
    with pytest.raises(ToolError, match="more than 500 alternatives"):
        alternatives("{a,b}" * 30)


# The tool


def search(ctx: ToolContext, pattern: str, **rest: Any) -> list[str]:
    tool = Glob()
    return tool.call_blocking(tool.parse({"pattern": pattern, **rest}), ctx).text.split("\n")


def grow(root: Path, *names: str) -> None:
    """Files of growing age: the first one is the newest."""
    for age, name in enumerate(names):
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
        os.utime(path, ns=(10**18 - age, 10**18 - age))


def test_files_come_newest_first_and_as_read_takes_them(ctx: ToolContext) -> None:
    grow(ctx.cwd, "z.py", "sub/a.py", "sub/deep/m.py")

    assert search(ctx, "**/*.py") == ["z.py", "sub/a.py", "sub/deep/m.py"]
    assert search(ctx, "*.py", path="sub") == ["sub/a.py"]
    assert search(ctx, "*.py", path="sub/../sub") == ["sub/../sub/a.py"]
    assert search(ctx, "*.py", path=str(ctx.cwd / "sub")) == ["sub/a.py"]
    assert search(ctx, "*.txt") == ["No file matches."]


def test_an_absolute_pattern_brings_its_own_folder(ctx: ToolContext, run: RunContext, tmp_path: Path) -> None:
    grow(tmp_path, "there/a.py", "there/b/c.py")

    assert search(ctx, f"{tmp_path}/there/**/*.py") == [str(tmp_path / "there/a.py"), str(tmp_path / "there/b/c.py")]
    assert search(ctx, f"{tmp_path}/there/a.py") == [str(tmp_path / "there/a.py")]
    tool = Glob()
    args = tool.parse({"pattern": f"{tmp_path}/there/*.py"})
    assert tool.access(args, run) == Access.of(reads=[os.path.realpath(tmp_path / "there")])


@pytest.mark.parametrize("pattern", ["../*.py", "a/../../b", "{..,a}/x"])
def test_a_pattern_cannot_lead_upwards(ctx: ToolContext, pattern: str) -> None:
    with pytest.raises(ToolError, match="leads upwards"):
        search(ctx, pattern)


@pytest.mark.parametrize(
    ("path", "problem"),
    [("nowhere", "No such file"), ("file", "Not a directory"), ("loop", "symbolic links"), ("nul\0", "null")],
)
def test_a_folder_that_cannot_be_searched_is_told(ctx: ToolContext, path: str, problem: str) -> None:
    grow(ctx.cwd, "file")
    (ctx.cwd / "loop").symlink_to("loop")

    with pytest.raises(ToolError, match=f"cannot be searched: .*{problem}.*Give another folder"):
        search(ctx, "*", path=path)


def test_links_are_listed_if_they_lead_to_files_and_never_followed_into_folders(ctx: ToolContext) -> None:
    grow(ctx.cwd, "real/file")
    (ctx.cwd / "to_file").symlink_to("real/file")
    (ctx.cwd / "to_folder").symlink_to("real")
    (ctx.cwd / "real/up").symlink_to("..")
    (ctx.cwd / "broken").symlink_to("nowhere")
    (ctx.cwd / "loop").symlink_to("loop")

    assert sorted(search(ctx, "**")) == ["broken", "loop", "real/file", "to_file"]


def test_odd_names_stand_on_one_line_each_and_can_be_encoded(ctx: ToolContext) -> None:
    for name in (b"two\nlines", b"bad\xff", b"esc\x1b[31m", "snow ☃".encode()):
        (ctx.cwd / os.fsdecode(name)).write_text("")

    lines = search(ctx, "*")

    assert sorted(lines) == sorted(["'two\\nlines'", "'bad\\udcff'", "'esc\\x1b[31m'", "snow ☃"])
    "\n".join(lines).encode()


def test_a_fifo_is_a_name_like_any_other(ctx: ToolContext) -> None:
    os.mkfifo(ctx.cwd / "pipe")

    assert search(ctx, "*") == ["pipe"]


@pytest.mark.proves("R6")
def test_more_matches_than_shown_are_counted(ctx: ToolContext) -> None:
    grow(ctx.cwd, *(f"{number:03}" for number in range(MAX_FILES + 7)))

    lines = search(ctx, "*")

    assert lines[:-1] == [f"{number:03}" for number in range(MAX_FILES)]
    assert lines[-1] == "(7 more files match. Use a narrower pattern to see them.)"


def test_a_folder_with_too_many_files_is_refused(ctx: ToolContext, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(glob, "MAX_SEEN", 3)
    grow(ctx.cwd, "a", "b", "c")
    assert len(search(ctx, "*")) == 3

    grow(ctx.cwd, "d")
    with pytest.raises(ToolError, match="More than 3 files lie below"):
        search(ctx, "*")


def test_files_and_folders_that_vanish_while_listing_are_left_out(
    ctx: ToolContext, monkeypatch: pytest.MonkeyPatch
) -> None:
    grow(ctx.cwd, "stays", "goes", "folder/inside")
    real_scandir = os.scandir

    def scandir_and_remove(folder: str) -> Iterator[os.DirEntry[str]]:
        entries = list(real_scandir(folder))
        if folder == str(ctx.cwd):
            (ctx.cwd / "goes").unlink()
            (ctx.cwd / "folder/inside").unlink()
            (ctx.cwd / "folder").rmdir()
        return iter(entries)

    monkeypatch.setattr(os, "scandir", scandir_and_remove)
    assert search(ctx, "**") == ["stays", "(1 folders could not be read.)"]


def test_a_closed_folder_is_counted_below_and_told_as_the_root(ctx: ToolContext, closed: Path) -> None:
    (closed.parent / "open").mkdir(mode=0o755)

    assert search(ctx, "**", path=str(closed.parent)) == ["No file matches.", "(1 folders could not be read.)"]
    with pytest.raises(ToolError, match="cannot be searched: Permission denied"):
        search(ctx, "**", path=str(closed))


def test_an_aborted_search_stops(ctx: ToolContext) -> None:
    grow(ctx.cwd, "a")
    ctx.abort.abort(AbortReason.USER)

    assert search(ctx, "*") == ["No file matches."]


def test_it_declares_what_it_touches_and_that_it_only_reads(run: RunContext) -> None:
    tool = Glob()
    args = tool.parse({"pattern": "*", "path": "sub"})

    assert tool.is_read_only(args)
    assert tool.is_concurrency_safe(args)
    assert tool.access(args, run) == Access.of(reads=[os.path.realpath(run.cwd / "sub")])
    assert tool.summary(args) == "Glob(*)"
