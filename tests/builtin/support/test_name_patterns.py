"""Patterns of names, and what ripgrep is asked for them."""

import subprocess
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.support.name_patterns import alternatives, fixed_start, for_ripgrep, matcher
from handrail.builtin.support.ripgrep import packaged_rg
from handrail.errors import ToolError


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


@settings(max_examples=3 * settings().max_examples)
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


@pytest.mark.parametrize(
    ("pattern", "folders", "rest"),
    [
        ("src/app/*.py", ["src", "app"], "*.py"),
        ("*.py", [], "*.py"),
        ("src/a.py", ["src"], "a.py"),
        ("src/", [], "src/"),
        ("a/b/", ["a"], "b/"),
        ("./a//**/b", ["a"], "**/b"),
        ("{a,b}/c", [], "{a,b}/c"),
    ],
)
def test_folders_without_wildcards_are_where_the_search_begins(pattern: str, folders: list[str], rest: str) -> None:
    assert fixed_start(pattern) == (folders, rest)


TREE = [
    "a",
    "b",
    "ab",
    "a b",
    "[a]",
    "a{b",
    "x\\y",
    "é",
    "éa",
    "d/a",
    "d/é",
    "d/e/a",
    "d/e/ab",
    ".a/b",
    "d/.h",
    "-a",
    "!a",
    "#a",
]


@pytest.fixture(scope="module")
def tree(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("tree")
    for name in TREE:
        path = root / name
        if path.is_dir():
            continue
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("")
    return root


@settings(max_examples=2 * settings().max_examples)
@given(
    pattern=st.lists(
        st.text("ab*?é.{},[]!-^\\ d#", min_size=1, max_size=5) | st.just("**"), min_size=1, max_size=3
    ).map("/".join)
)
def test_ripgrep_finds_at_least_what_fits_and_exactly_that_where_we_say_so(tree: Path, pattern: str) -> None:
    try:
        globs, exact = for_ripgrep(pattern)
    except ToolError as error:
        upwards = str(error)
        assert "leads upwards" in upwards
        return
    found = subprocess.run(
        [
            packaged_rg(),
            "--no-config",
            "--files",
            "--hidden",
            "--no-ignore",
            "--null",
            *(f"--glob={glob}" for glob in globs),
        ],
        cwd=tree,
        capture_output=True,
        check=False,
    )
    listed = set(found.stdout.decode().split("\0")) - {""} if globs else set()
    wanted = {name for name in TREE if fits(pattern, name)}

    assert not found.stderr
    assert listed >= wanted
    assert not exact or listed == wanted
