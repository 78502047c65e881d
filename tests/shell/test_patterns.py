"""Patterns for names of files: what bash matches, in every locale, is what the analysis looks at."""

import os
import posixpath
import shutil
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.files.paths import match_files, normalize
from handrail.shell import analyse
from handrail.shell.effects import paths
from handrail.shell.patterns import PathPattern

BASH = shutil.which("bash") or ""
LOCALES = {"et_EE.UTF-8": "UTF-8", "en_US.ISO-8859-1": "ISO-8859-1"}

ATOMS = st.sampled_from(
    [
        "a", "b", "e", "Z", "z", "0", "5", ".", "-", "_", "é", "É", "!", "^", ",", ":", "=", "*", "?", "[", "]",
        "[ab]", "[a-e]", "[!a]", "[^a]", "[]a]", "[a-]", "[!]-]", "[^[:alpha:]]", "[[:alpha:]]", "[[:upper:]a]",
        "[[:digit:]-z]", "[é]", "[\\!a]",
        "[!é]", "[à-ê]", "[0-9]", "[[=e=]]", "[[.a.]]", "[[.hyphen.]-z]", "[[:nope:]]", "[A-z]",
        "[a\\]b]", "['^'a]", "[a'-'z]", '[a"]"b]', "\\*", "'*'", '"["', "\\]", "[a", "b]", "[[a]", "[.]", "[a.",
        "[!.]", "/", "d/", "/*", "//", "./", "'[d]'/", "[[d]]/",
    ]
)  # fmt: skip
WORDS = st.lists(ATOMS, min_size=1, max_size=5).map("".join)
LETTERS = st.sampled_from([*"abeZz05.-_!^,:=*?[]\\", "é", "É", "ê", "\udce9", "\udcc3"])
NAMES = st.lists(LETTERS, min_size=1, max_size=4).map("".join).filter(lambda name: name not in (".", ".."))
FOLDERS = st.sampled_from(["", "d/", "[d]/", "a/", ".e/"])


@pytest.fixture(scope="module")
def locales() -> Iterator[Path]:
    """Locales with their own letters, made here, since most machines have none but C."""
    with tempfile.TemporaryDirectory() as folder:
        for name, charset in LOCALES.items():
            made = Path(folder, name)
            words = ["localedef", "-i", name.partition(".")[0], "-f", charset, "--no-archive", str(made)]
            if shutil.which("localedef"):
                subprocess.run(words, capture_output=True, check=False)
        yield Path(folder)


def of_bash(words: list[str], folder: str, locale: str, locales: Path, ascii_ranges: bool) -> list[list[str]]:
    """What bash puts in the place of each word."""
    lines = [f"printf '%s\\0' {word}; printf '\\n\\0'" for word in words]
    env = {"LC_ALL": locale, "LOCPATH": str(locales), "PATH": ""} if locale in LOCALES else {"LC_ALL": locale}
    switch = f"shopt -{'s' if ascii_ranges else 'u'} globasciiranges"
    script = "\n".join([switch, *lines])
    run = subprocess.run([BASH, "--norc", "-c", script.encode()], cwd=folder, env=env, capture_output=True, check=True)
    found: list[list[str]] = [[]]
    for word in os.fsdecode(run.stdout).split("\0")[:-1]:
        if word == "\n":
            found.append([])
        else:
            found[-1].append(word)
    return found[:-1]


def of_analysis(word: str, folder: str) -> set[str] | None:
    """The paths that the analysis looks at for a word; None = it is not known which."""
    analysis = analyse(f"cat {word}")
    if analysis.problems or len(analysis.segments) != 1 or len(analysis.segments[0].argv) != 2:
        return None
    found: set[str] = set()
    for path in paths(analysis.segments[0].argv[1], folder, "/home"):
        if path is None:
            return None
        found.add(posixpath.join(folder, str(path)))
        if isinstance(path, PathPattern):
            found.update(match_files(path.parts, folder) or ())
    return {normalize(each) for each in found}


@pytest.mark.proves("X12")
@pytest.mark.skipif(not BASH, reason="needs bash")
@given(
    st.lists(st.tuples(FOLDERS, NAMES), max_size=12),
    st.lists(WORDS, min_size=1, max_size=30),
    st.sampled_from(["C", "C.UTF-8", *LOCALES]),
    st.booleans(),
)
def test_every_file_that_bash_matches_is_looked_at(
    locales: Path, names: list[tuple[str, str]], words: list[str], locale: str, ascii_ranges: bool
) -> None:
    understood = [word for word in words if not analyse(f"cat {word}").problems]
    with tempfile.TemporaryDirectory(prefix="[x]*") as folder:
        for inner, _ in names:
            Path(folder, inner).mkdir(exist_ok=True)
        for inner, name in names:
            if not Path(folder, inner, name).exists():
                Path(folder, inner, name).touch()
        expected = of_bash(understood, folder, locale, locales, ascii_ranges)
        for word, found in zip(understood, expected, strict=True):
            looked_at = of_analysis(word, folder)
            opened = {normalize(posixpath.join(folder, each)) for each in found}
            assert looked_at is None or opened <= looked_at, (word, locale, opened - looked_at)


MATCHES = [
    ("\\*", "*", "a"), ("'*'", "*", "a"), ("a\\?", "a?", "ab"), ("\\[a]", "[a]", "a"), ("[[:alpha:]]", "b", "5"),
    ("[[:upper:]a]", "Z", "z"), ("[^a]", "b", "a"), ("[!a]", "b", "a"), ("[a'-'z]", "-", "b"),
    ("['^'a]", "^", "b"), ("[]a]", "]", "b"), ("'[d]'/*", "[d]/a", "d/a"), ("[a-e]*", "b5", "5b"), ("?", "é", "ab"),
    ("*\\**", "a*b", "ab"), ("[\\!a]", "!", "b"),
]  # fmt: skip


@pytest.mark.proves("X12")
@pytest.mark.parametrize(("word", "matched", "other"), MATCHES)
def test_a_pattern_means_the_files_that_bash_matches_and_no_others(
    word: str, matched: str, other: str, locales: Path, tmp_path: Path
) -> None:
    for name in (matched, other):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).touch()
    looked_at = of_analysis(word, str(tmp_path))

    assert of_bash([word], str(tmp_path), "C.UTF-8", locales, True) == [[matched]]
    assert looked_at is not None
    assert str(tmp_path / matched) in looked_at
    assert str(tmp_path / other) not in looked_at
