"""The output of a command of the person's own, in whatever pieces it comes."""

from hypothesis import example, given
from hypothesis import strategies as st

from handrail.tui.interactive.own_command import CUT, LineStream


def show(pieces: list[bytes], room: int) -> list[str]:
    shown: list[str] = []
    output = LineStream(room, shown.append)
    for piece in pieces:
        output.add(piece)
    output.add(b"", is_last=True)
    assert output.text == "\n".join(shown)
    return shown


@given(st.lists(st.sampled_from([b"a", b"\n", b"\r", b"\r\n", b"\n\nb\n", "é".encode()[:1], "é".encode()[1:]])))
@example([b"one\n", b"\n", b"two\r", b"\n"])
def test_lines_are_shown_as_printed_in_whatever_pieces_they_come(pieces: list[bytes]) -> None:
    printed = b"".join(pieces).decode(errors="replace").replace("\r\n", "\n").rstrip("\n")

    assert "\n".join(show(pieces, 1000)) == printed


def test_what_is_too_long_is_cut_in_the_line_where_it_is() -> None:
    assert show([b"one\n", b"\n", b"two" * 5, b"\nthree\n"], 10) == ["one", f"\ntwotw\n{CUT}"]
