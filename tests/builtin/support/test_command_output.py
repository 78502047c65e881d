"""What of a command's output reaches the model: bounded, harmless, its ends in order."""

from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.builtin.support.command_output import head_and_tail, output_limit, read_output, readable

NOTICE = "\n[... of "


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("output") / "file"


@pytest.mark.proves("R6")
@given(data=st.binary(max_size=3_000), whole=st.integers(1, 400), part=st.integers(2, 200))
@example(data=bytes(5), whole=1, part=2)  # more is shown of a failure than of a whole output
def test_whatever_was_written_what_is_shown_is_bounded_and_can_be_sent(
    file: Path, data: bytes, whole: int, part: int
) -> None:
    file.write_bytes(data)
    shown = read_output(file, len(data), whole, part)

    assert len(shown.text) <= max(whole, part + 80)
    assert not set(shown.text) & {chr(code) for code in range(32) if chr(code) not in "\n\t"}
    shown.text.encode()


@given(text=st.text("aä漢\n ", max_size=2_000), part=st.integers(2, 200))
def test_the_ends_that_are_shown_are_the_ends_of_what_was_written(file: Path, text: str, part: int) -> None:
    data = text.encode()
    file.write_bytes(data)
    shown = read_output(file, len(data), 50, part)
    if not shown.cut:
        assert shown.text == text
        return
    head, _, rest = shown.text.partition(NOTICE)
    tail = rest.partition("left out ...]\n")[2]

    assert text.startswith(head)
    assert text.endswith(tail)
    assert (len(head), len(tail)) == (part // 2, part // 2)


@given(st.lists(st.sampled_from(["\x1b[31m", "\x1b]0;t\x07", "\x1b(B", "\x1bM", "\r\n", "a", "é", "\n", "\t"])))
def test_of_codes_for_terminals_nothing_is_left(pieces: list[str]) -> None:
    left = "".join(piece for piece in pieces if not piece.startswith("\x1b")).replace("\r\n", "\n")

    assert readable("".join(pieces)) == left


@pytest.mark.parametrize(
    ("text", "seen"),
    [
        ("10%\r50%\r100%\n", "100%\n"),
        ("done\r\n", "done\n"),
        ("a\rb\r\n", "b\n"),
        ("\x1b", "\\x1b"),
        ("\x00\x08", "\\x00\\x08"),
        ("\u202eabc", "\\u202eabc"),
    ],
)
def test_what_a_terminal_would_do_with_it(text: str, seen: str) -> None:
    assert readable(text) == seen


@pytest.mark.parametrize(
    ("value", "chars"), [("", 30_000), ("100", 100), ("999999", 150_000), ("0", 30_000), ("x", 30_000)]
)
def test_the_limit_comes_from_a_setting(value: str, chars: int) -> None:
    assert output_limit(value) == chars


def test_the_middle_is_named() -> None:
    assert head_and_tail("abcdef", "uvwxyz", 4, 12) == "ab\n[... of 12 bytes the middle is left out ...]\nyz"
