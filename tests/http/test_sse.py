"""The event stream's framing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import EventTooLargeError
from handrail.http.sse import EventReader


def events(*chunks: bytes) -> list[tuple[str, str]]:
    reader = EventReader()
    found = [event for chunk in chunks for event in reader.feed(chunk)]
    return found + reader.end()


@pytest.mark.parametrize(
    ("chunks", "expected"),
    [
        pytest.param([b"data: a\n\ndata: b\n\n"], [("", "a"), ("", "b")], id="LF"),
        pytest.param([b"data: a\r\n\r\ndata: b\r\n\r\n"], [("", "a"), ("", "b")], id="CRLF"),
        pytest.param([b"data: a\r\rdata: b\r\r"], [("", "a"), ("", "b")], id="CR"),
        pytest.param([b"data: a\r", b"\n\r", b"\ndata: b\r\n\r\n"], [("", "a"), ("", "b")], id="cut between CR and LF"),
        pytest.param(
            [b"event: x\r", b"\ndata: a\r", b"\ndata: b\r\n\r\n"], [("x", "a\nb")], id="cut inside CRLF lines"
        ),
        pytest.param([b"data: a\r", b"\rdata: b\r\r"], [("", "a"), ("", "b")], id="cut between two CR"),
        pytest.param([b"event: x\ndata: a\n\ndata: b\n\n"], [("x", "a"), ("", "b")], id="a name holds for one event"),
        pytest.param([b"data: a\nevent: x\n\n"], [("x", "a")], id="name after data"),
        pytest.param([b"data:a\ndata:  b\ndata\n\n"], [("", "a\n b\n")], id="several data lines, one blank taken"),
        pytest.param(
            [b": note\n\nid: 1\nretry: 2\nother: 3\ndata: a\n\n"], [("", "a")], id="comments and other fields"
        ),
        pytest.param([b"event: x\n\ndata: a\n\n"], [("", "a")], id="an event without data is none"),
        pytest.param([b"\xef", b"\xbb\xbfdata: a\n\n"], [("", "a")], id="BOM, cut in two"),
        pytest.param(
            ["data: ü\n\n".encode()[:7], "data: ü\n\n".encode()[7:]], [("", "ü")], id="cut inside a character"
        ),
        pytest.param(["data: \u2028\x85\x0b\n\n".encode()], [("", "\u2028\x85\x0b")], id="other line ends are data"),
        pytest.param([b"data: a\n"], [("", "a")], id="no blank line at the end"),
        pytest.param([b"data: a"], [("", "a")], id="no line end at the end"),
    ],
)
def test_framing(chunks: list[bytes], expected: list[tuple[str, str]]) -> None:
    assert events(*chunks) == expected


@given(
    st.data(),
    st.lists(st.text(st.characters(exclude_characters="\r\n", exclude_categories=["Cs"]), min_size=1), max_size=8),
)
def test_any_split_gives_the_same_events(data: st.DataObject, texts: list[str]) -> None:
    body = b""
    for text in texts:
        end = data.draw(st.sampled_from([b"\n", b"\r\n", b"\r"]))
        body += b"event: x" + end + b"data: " + text.encode() + end + b"data: more" + end + end
    cuts = sorted(data.draw(st.lists(st.integers(0, len(body)), max_size=20)))

    assert events(*(body[a:b] for a, b in zip([0, *cuts], [*cuts, len(body)], strict=True))) == [
        ("x", f"{text}\nmore") for text in texts
    ]


@pytest.mark.proves("R6")
@pytest.mark.parametrize("line", [b"data: " + b"x" * 60, b"data: xxxxxxxxxxxxxxx\n"], ids=["one line", "many lines"])
def test_an_endless_event_is_refused_and_not_kept(line: bytes) -> None:
    reader = EventReader(limit=100)

    def endless() -> None:
        for _ in range(10):
            reader.feed(line)

    with pytest.raises(EventTooLargeError):
        endless()
