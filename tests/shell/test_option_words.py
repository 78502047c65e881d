"""A word that bash may turn into an option with a file is never taken for the name of a file."""

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.shell import CommandVerdict, analyse
from handrail.shell.effects import paths

PARTS = st.sampled_from(("", "-", "--", "-f", "-l", "--files0-from=", "f", "a", "-X", "0-from=f", "--files", "/"))
WORDS = st.recursive(
    PARTS,
    lambda inner: st.one_of(
        st.lists(inner, min_size=2, max_size=3).map(lambda parts: "{" + ",".join(parts) + "}"),
        st.lists(inner, min_size=2, max_size=3).map("".join),
    ),
    max_leaves=6,
).filter(bool)
FRAMES = ("{program} {word}", "for x in {word}; do {program} \"$x\"; done", "for x in a {word}; do {program} $x; done",
          "x={word}; {program} $x", "x={word}; {program} \"$x\"", "{program} '{word}'")  # fmt: skip
NAMES_FILE = re.compile(r"(?:--files0-from=|-[fX])(.+)")


@pytest.mark.proves("X17")
@given(WORDS, st.sampled_from(FRAMES), st.sampled_from(("wc", "du", "grep a")))
def test_no_word_that_bash_makes_an_option_of_is_read_as_a_file(word: str, frame: str, program: str) -> None:
    shown = frame.format(program="show", word=word)
    script = f"show() {{ printf '%s\\0' \"$@\"; }}; {shown}"
    ran = subprocess.run(["bash", "-c", script], capture_output=True, text=True, check=True, cwd="/")
    options = [text for text in ran.stdout.split("\0") if text.startswith("-")]

    analysis = analyse(frame.format(program=program, word=word))
    read = [path for segment in analysis.segments for each in segment.reads for path in paths(each, "/w", "/h")]

    if analysis.verdict is CommandVerdict.READ_ONLY and None not in read:
        files = [found[1] for text in options if (found := NAMES_FILE.match(text))]
        assert set(files) <= set(map(str, read))
