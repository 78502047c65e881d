"""No words of a search bring back a secret that it leaves out; the oracle is grep."""

import tempfile
from pathlib import Path

import anyio
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handrail.shell.tables.search import GREP
from tests.builtin.bash.session import Session

OPTIONS = [*GREP.flags.split(), *" ".join(GREP.values).split()]
OTHERS = [
    "--", "-", "-e", ".", "..", "src", "src/.", "src/.aws", ".env*", "*", "{.,src}", "{-n,--}", "$x", "$y",
    '"$PWD"', "''",
    "--reg", "--fil", "--inclu", "--include=.env", "--exclude=a", "--include=*", "-X", "-nre", "-re", "-f/dev/null",
    "--color", "--context=1", "--directories=recurse", "-drecurse", "-1", "+x",
]  # fmt: skip


@pytest.mark.proves("X24")
@given(st.lists(st.sampled_from([*OPTIONS, *OTHERS]), max_size=3), st.lists(st.sampled_from(OTHERS), max_size=2))
@settings(max_examples=60, deadline=None)
def test_no_words_of_a_search_bring_a_secret_back(before: list[str], behind: list[str]) -> None:
    line = " ".join(["x=-e; y=--; grep", "-r", *before, "-e", "TOKEN", ".", *behind, "< /dev/null"])

    async def search(folder: str) -> str:
        session = Session(Path(folder))
        (session.project / "src/.aws").mkdir(parents=True)
        for name in (".env", "src/.aws/config"):
            (session.project / name).write_text("TOKEN=hunter2\n")
        return (await session.bash(line, session.rules())).result.text

    with tempfile.TemporaryDirectory() as folder:
        assert "hunter2" not in anyio.run(search, folder)
