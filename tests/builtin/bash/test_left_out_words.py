"""No words of a search bring back a secret that it leaves out; the oracles are grep and ripgrep."""

import subprocess
import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.builtin.bash.left_out import rg_option
from handrail.builtin.support.ripgrep import packaged_rg
from handrail.shell.tables.format import Command
from handrail.shell.tables.search import COMMANDS, GREP
from tests.builtin.bash.session import Session

OTHERS = [
    "--", "-", "-e", ".", "..", "src", "src/.", "src/.aws", ".env*", "*", "{.,src}", "{-n,--}", "$x", "$y",
    '"$PWD"', "''",
    "--reg", "--fil", "--inclu", "--include=.env", "--exclude=a", "--include=*", "-X", "-nre", "-re", "-f/dev/null",
    "--color", "--context=1", "--directories=recurse", "-drecurse", "-1", "+x",
    "-g.env", "--iglob=.env", "'-g**/.aws/**'", "-uuu", "--glob=*", "--type-add=x:.env", "-tx", "--engine=auto",
]  # fmt: skip


def words_of(entry: Command) -> st.SearchStrategy[list[str]]:
    options = [*entry.flags.split(), *" ".join(entry.values).split()]
    return st.lists(st.sampled_from([*options, *OTHERS]), max_size=3)


async def search(line: str, folder: str) -> str:
    session = Session(Path(folder), {"PATH": f"{Path(packaged_rg()).parent}:/usr/bin:/bin"})
    (session.project / "src/.aws").mkdir(parents=True)
    for name in (".env", "src/.aws/config"):
        (session.project / name).write_text("TOKEN=hunter2\n")
    return (await session.bash(line, session.rules())).result.text


def shown_by(line: str) -> str:
    with tempfile.TemporaryDirectory() as folder:
        return anyio.run(search, line, folder)


@pytest.mark.proves("X24")
@given(words_of(GREP), st.lists(st.sampled_from(OTHERS), max_size=2))
@settings(max_examples=60, deadline=None)
def test_no_words_of_grep_bring_a_secret_back(before: list[str], behind: list[str]) -> None:
    line = " ".join(["x=-e; y=--; grep", "-r", *before, "-e", "TOKEN", ".", *behind, "< /dev/null"])

    assert "hunter2" not in shown_by(line)


@pytest.mark.proves("X24")
@given(words_of(COMMANDS["rg"]), st.lists(st.sampled_from(OTHERS), max_size=2))
@settings(max_examples=60, deadline=None)
def test_no_words_of_rg_bring_a_secret_back(before: list[str], behind: list[str]) -> None:
    line = " ".join(["x=-e; y=--; rg", *before, "-e", "TOKEN", *behind, "< /dev/null"])

    assert "hunter2" not in shown_by(line)


def test_no_option_of_rg_takes_what_leaves_a_secret_out_for_its_value(tmp_path: Path) -> None:
    (tmp_path / ".env").write_text("TOKEN=hunter2\n")
    words = [packaged_rg(), "-uuu", "TOKEN"]

    def shown(*more: str) -> bytes:
        ended = subprocess.run([*words, *more], check=False, cwd=tmp_path, input=b"", capture_output=True)
        return ended.stdout

    assert b"hunter2" in shown(".")
    assert [flag for flag in COMMANDS["rg"].flags.split() if b"hunter2" in shown(".", flag, rg_option(".env"))] == []
