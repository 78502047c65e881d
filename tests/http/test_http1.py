"""HTTP/1.1 as bytes: what is read, what is refused, and that nothing is read which h11 would read differently."""

import re
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Any

import h11
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.errors import HttpProtocolError
from handrail.http.http1 import MAX_CHUNK_LINE, MAX_HEAD, ResponseReader, request_head

CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
UPGRADE = (("connection", "Upgrade"), ("upgrade", "websocket"))
Headers = Sequence[tuple[str, str]]


@dataclass
class Outcome:
    """What an answer was read as. `broken` names the reason why nothing more is read."""

    status: int = 0
    headers: dict[str, str] | None = None
    body: bytes = b""
    done: bool = False
    reusable: bool = False
    excess: bytes = b""
    broken: str = ""


def read(pieces: Sequence[bytes], method: str = "GET", headers: Headers = ()) -> Outcome:
    reader, body, broken = ResponseReader(method, headers), b"", ""
    for piece in pieces:
        try:
            reader.receive(piece)
            body += reader.take()
            reader.take()  # raises if what came after the good part is broken
        except HttpProtocolError as error:
            broken = str(error)
            break
    head = dict(reader.headers) if reader.status else None
    return Outcome(reader.status, head, body, reader.done, reader.is_reusable, reader.excess, broken)


def read_with_h11(pieces: Sequence[bytes], method: str = "GET", headers: Headers = ()) -> Outcome:
    wire = h11.Connection(h11.CLIENT, max_incomplete_event_size=MAX_HEAD)
    wire.send(h11.Request(method=method, target="/", headers=[("host", "x"), *headers]))
    wire.send(h11.EndOfMessage())
    found = Outcome()
    kept = False
    try:
        for piece in pieces:
            if wire.their_state is h11.CLOSED:
                break
            wire.receive_data(piece)
            while (event := wire.next_event()) not in (h11.NEED_DATA, h11.PAUSED):
                match event:
                    case h11.Response() | h11.InformationalResponse(status_code=101):
                        found.status = event.status_code
                        found.headers = {name.decode(): value.decode("latin-1") for name, value in event.headers}
                        found.done = wire.their_state is h11.SWITCHED_PROTOCOL
                    case h11.Data():
                        found.body += bytes(event.data)
                    case h11.EndOfMessage():
                        found.done = True
                        kept = wire.our_state is h11.DONE and wire.their_state is h11.DONE
                    case h11.ConnectionClosed():
                        kept = False
                        if not found.status:
                            raise h11.RemoteProtocolError("no answer")  # as a caller has to see it
                        break
    except h11.RemoteProtocolError as error:
        found.broken = str(error)
    found.excess = wire.trailing_data[0] if found.done else b""
    found.reusable = kept and not found.excess and not found.broken
    return found


def agree(pieces: Sequence[bytes], method: str = "GET", headers: Headers = ()) -> None:
    """What we read h11 reads the same way. What we refuse h11 does not read either, but for two things."""
    ours, theirs = read(pieces, method, headers), read_with_h11(pieces, method, headers)
    if theirs.done and theirs.broken:  # h11 reports what comes after the end, if the server wants to close
        theirs.broken = ""
        theirs.excess = ours.excess
    if ours.broken and (theirs.done or len(theirs.body) > len(ours.body)):
        assert "both a content-length" in ours.broken or re.search(r"chunk header: .*;.*\\(r|x00)", ours.broken)
    elif ours.broken:
        assert (ours.status, ours.body) == (theirs.status, theirs.body) or "both" in ours.broken
        assert not ours.reusable
    else:
        for each in (ours, theirs):
            if each.headers is not None:
                each.headers.pop("connection", None)  # several are one to us
        assert ours == replace(theirs, reusable=ours.reusable)
        assert ours.reusable <= theirs.reusable
        if b"" not in pieces and not ours.excess:
            assert ours.reusable == theirs.reusable


@pytest.mark.parametrize(
    ("answer", "body", "reusable"),
    [
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi", b"hi", True, id="by length"),
        pytest.param(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", b"", True, id="an empty body"),
        pytest.param(b"HTTP/1.1 200\r\ncontent-length: 2\r\n\r\nhi", b"hi", True, id="no reason"),
        pytest.param(b"HTTP/1.1 200 OK\ncontent-length: 2\n\nhi", b"hi", True, id="lines of a head end with LF"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2, 2\r\n\r\nhi", b"hi", True, id="one length twice"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\ncontent-length: 2\r\n\r\nhi", b"hi", True, id="in two headers"
        ),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length:\r\n 2\r\n\r\nhi", b"hi", True, id="a header in two lines"),
        pytest.param(b"HTTP/1.1 204 No\r\n\r\n", b"", True, id="204 has no body"),
        pytest.param(b"HTTP/1.1 304 No\r\ncontent-length: 9\r\n\r\n", b"", True, id="304 has no body"),
        pytest.param(
            b"HTTP/1.1 100 Go\r\n\r\nHTTP/1.1 103 x\r\na: b\r\n\r\nHTTP/1.1 204 No\r\n\r\n", b"", True, id="interim"
        ),
        pytest.param(CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n0\r\n\r\n", b"onetwo", True, id="chunks"),
        pytest.param(CHUNKED + b"0003;a=b;c\r\none\r\n0;x\r\n\r\n", b"one", True, id="extensions"),
        pytest.param(CHUNKED + b"A \t\r\n0123456789\r\n0\r\n\r\n", b"0123456789", True, id="blanks after a size"),
        pytest.param(CHUNKED + b"1\r\nx\r\n0\r\na: b\r\nc: d\r\n\r\n", b"x", True, id="trailers"),
        pytest.param(
            b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nconnection: close\r\n\r\n0\r\n\r\n",
            b"",
            False,
            id="close",
        ),
        pytest.param(
            b"HTTP/1.1 204 No\r\nconnection: Close, x\r\nconnection: keep-alive\r\n\r\n", b"", False, id="close, first"
        ),
        pytest.param(
            b"HTTP/1.0 200 OK\r\nconnection: keep-alive\r\ncontent-length: 1\r\n\r\nx", b"x", False, id="HTTP/1.0"
        ),
        pytest.param(b"HTTP/1.1 204 No\r\n\r\nHTTP/1.1 200 OK\r\n\r\n", b"", False, id="an answer nobody asked for"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nhi!", b"hi", False, id="more than the length"),
        pytest.param(CHUNKED + b"0\r\n\r\n!", b"", False, id="more than the chunks"),
    ],
)
def test_an_answer_is_read_to_its_end_wherever_it_is_split(answer: bytes, body: bytes, reusable: bool) -> None:
    whole = read([answer])
    assert (whole.body, whole.done, whole.reusable, whole.broken) == (body, True, reusable, "")
    assert read([answer[at : at + 1] for at in range(len(answer))]) == whole
    for at in range(1, len(answer)):
        assert read([answer[:at], answer[at:]]) == whole
        agree([answer[:at], answer[at:]])


OK = b"HTTP/1.1 200 OK\r\n"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(b"\x16\x03\x01", "not speak HTTP", id="TLS"),
        pytest.param(b"\r\nHTTP/1.1 200 OK\r\n\r\n", "not speak HTTP", id="a blank line first"),
        pytest.param(b"ICY 200 OK\r\n\r\n", "not speak HTTP", id="another protocol"),
        pytest.param(b"HTTP/1.1 20 OK\r\n\r\n", "status line", id="two digits"),
        pytest.param(b"HTTP/1.1 099 OK\r\n\r\n", "status line", id="no such status"),
        pytest.param(b"HTTP/1.1  200 OK\r\n\r\n", "status line", id="two blanks"),
        pytest.param(b"HTTP/1.1 200 a\rb\r\n\r\n", "status line", id="CR in a reason"),
        pytest.param(b"HTTP/1.1 101 Switch\r\n\r\n", "not asked for", id="a switch nobody asked for"),
        pytest.param(OK + b"a b: c\r\n\r\n", "header line", id="a blank in a name"),
        pytest.param(OK + b"a : c\r\n\r\n", "header line", id="a blank after a name"),
        pytest.param(OK + b": c\r\n\r\n", "header line", id="no name"),
        pytest.param(OK + b"abc\r\n\r\n", "header line", id="no colon"),
        pytest.param(OK + b" a: b\r\n\r\n", "header line", id="a first line that continues nothing"),
        pytest.param(OK + b"a: b\rc: d\r\n\r\n", "header line", id="CR in a value"),
        pytest.param(OK + b"a: b\x00c\r\n\r\n", "header line", id="NUL in a value"),
        pytest.param(OK + b"a: b\x0bc\r\n\r\n", "header line", id="VT in a value"),
        pytest.param(OK + b"\xe9: b\r\n\r\n", "header line", id="a name that is not ASCII"),
        pytest.param(OK + b"content-length: 1\r\ncontent-length: 2\r\n\r\nxx", "content-length", id="two lengths"),
        pytest.param(OK + b"content-length: 1, 2\r\n\r\nxx", "content-length", id="a list of lengths"),
        pytest.param(OK + b"content-length: 1\r\ncontent-length: 01\r\n\r\nx", "content-length", id="two spellings"),
        pytest.param(OK + b"content-length: -1\r\n\r\n", "content-length", id="less than nothing"),
        pytest.param(OK + b"content-length: +1\r\n\r\nx", "content-length", id="a plus"),
        pytest.param(OK + b"content-length: 0x1\r\n\r\nx", "content-length", id="a hexadecimal length"),
        pytest.param(OK + b"content-length: 1_0\r\n\r\nx", "content-length", id="an underscore in a length"),
        pytest.param(OK + b"content-length: \xb2\r\n\r\nx", "content-length", id="a digit that is not ASCII"),
        pytest.param(OK + b"content-length:\r\n\r\n", "content-length", id="an empty length"),
        pytest.param(OK + b"content-length: " + b"1" * 21 + b"\r\n\r\n", "content-length", id="an endless length"),
        pytest.param(OK + b"content-length: 1\r\ntransfer-encoding: chunked\r\n\r\n", "both", id="a length and chunks"),
        pytest.param(OK + b"transfer-encoding: gzip, chunked\r\n\r\n", "transfer coding", id="two codings"),
        pytest.param(OK + b"transfer-encoding: identity\r\n\r\n", "transfer coding", id="another coding"),
        pytest.param(OK + b"transfer-encoding: \x0bchunked\r\n\r\n", "header line", id="chunked, hidden"),
        pytest.param(OK + b"transfer-encoding: xchunked\r\n\r\n", "transfer coding", id="nearly chunked"),
        pytest.param(
            OK + b"transfer-encoding: chunked\r\ntransfer-encoding: chunked\r\n\r\n", "transfer coding", id="twice"
        ),
        pytest.param(CHUNKED + b"\r\n", "chunk header", id="no size"),
        pytest.param(CHUNKED + b"g\r\n", "chunk header", id="no hexadecimal size"),
        pytest.param(CHUNKED + b"0x1\r\nx\r\n", "chunk header", id="0x before a size"),
        pytest.param(CHUNKED + b"+1\r\nx\r\n", "chunk header", id="a sign before a size"),
        pytest.param(CHUNKED + b"1_0\r\nx\r\n", "chunk header", id="an underscore in a size"),
        pytest.param(CHUNKED + b" 1\r\nx\r\n", "chunk header", id="a blank before a size"),
        pytest.param(CHUNKED + b"1\nx\n", "chunk header", id="LF alone after a size"),
        pytest.param(CHUNKED + b"1;a\nb\r\nx\r\n", "chunk header", id="LF in an extension"),
        pytest.param(CHUNKED + b"1;a\rb\r\nx\r\n", "chunk header", id="CR in an extension"),
        pytest.param(CHUNKED + b"1;a\x00\r\nx\r\n", "chunk header", id="NUL in an extension"),
        pytest.param(CHUNKED + b"1" * 21 + b"\r\n", "chunk header", id="an endless size"),
        pytest.param(CHUNKED + b"1\r\nxy\r\n", "chunk header", id="a chunk over its size"),
        pytest.param(CHUNKED + b"1\r\nx\n0\r\n\r\n", "chunk header", id="LF alone after a chunk"),
        pytest.param(CHUNKED + b"0\r\na b\r\n\r\n", "header line", id="a trailer without a colon"),
        pytest.param(CHUNKED + b"0\r\na: b\x00\r\n\r\n", "header line", id="NUL in a trailer"),
    ],
)
def test_what_could_be_read_in_two_ways_is_refused(answer: bytes, reason: str) -> None:
    whole = read([answer])
    assert reason in whole.broken
    assert not whole.done
    for at in (1, 5, 20, len(answer) // 2, len(answer) - 1):
        split = read([answer[:at], answer[at:]])
        assert (split.body, split.done, bool(split.broken)) == (whole.body, False, True)
    agree([answer])


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        pytest.param(CHUNKED + b"1;" + b"x" * MAX_CHUNK_LINE, "chunk header", id="a chunk line without end"),
        pytest.param(OK + b"a: " + b"x" * MAX_HEAD, "headers are over", id="a head without end"),
        pytest.param(CHUNKED + b"0\r\na: " + b"x" * MAX_HEAD, "headers are over", id="trailers without end"),
        pytest.param(OK + b"a: " + b"x" * MAX_HEAD + b"\r\n\r\n", "headers are over", id="a head that is too long"),
    ],
)
def test_no_line_is_kept_that_never_ends(answer: bytes, reason: str) -> None:
    assert reason in read([answer]).broken
    assert reason in read([answer[at : at + 1000] for at in range(0, len(answer), 1000)]).broken


@pytest.mark.parametrize(
    ("answer", "rest"),
    [
        pytest.param(CHUNKED + b"1;", b" " * 16_000, id="blanks after the size of a chunk"),
        pytest.param(CHUNKED + b"1 ", b"\t" * 16_000, id="tabs after the size of a chunk"),
        pytest.param(CHUNKED + b"1;", b"x" * 16_000, id="an extension"),
        pytest.param(
            OK, b"connection: close" + b",x" * 50_000 + b"\r\n" + b"connection: x\r\n" * 8_000, id="many to close"
        ),
        pytest.param(OK, b"content-length: 5" + b",5" * 50_000 + b"\r\ncontent-length: 5" * 5_000, id="one length"),
        pytest.param(OK, b"a: b\r\n" + b" \r\n" * 80_000, id="a header over many lines"),
        pytest.param(OK, b"a:\r\n" * 60_000, id="many headers"),
        pytest.param(OK, b"a" * 250_000 + b"\r\n", id="a long name"),
        pytest.param(b"", b"HTTP/1.1 100\r\n\r\n" * 8_000, id="many interim answers"),
        pytest.param(CHUNKED, b"1\r\nx\r\n" * 40_000, id="many chunks"),
    ],
)
def test_no_server_can_make_one_receive_expensive(answer: bytes, rest: bytes) -> None:
    start = time.process_time()

    for pieces in ([answer + rest + b"\r\n"], [answer + rest, *[b" "] * 50]):
        read(pieces)

    assert time.process_time() - start < 10


@pytest.mark.parametrize(
    ("answer", "body", "reason"),
    [
        pytest.param(b"", b"", "without an answer", id="nothing"),
        pytest.param(b"HTTP/1.1 200 OK\r\n", b"", "before the end", id="in its head"),
        pytest.param(b"HTTP/1.1 100 Go\r\n\r\n", b"", "without an answer", id="after an interim answer"),
        pytest.param(b"HTTP/1.1 200 OK\r\ncontent-length: 3\r\n\r\nhi", b"hi", "before the end", id="by length"),
        pytest.param(CHUNKED + b"3\r\nhi", b"hi", "before the end", id="in a chunk"),
        pytest.param(CHUNKED + b"2\r\nhi\r\n", b"hi", "before the end", id="between chunks"),
        pytest.param(CHUNKED + b"2\r\nhi\r\n0\r\n", b"hi", "before the end", id="before the trailers"),
        pytest.param(CHUNKED + b"2\r\nhi\r\n0\r\na: b\r\n", b"hi", "before the end", id="in the trailers"),
    ],
)
def test_an_answer_that_a_closed_connection_cuts_is_not_whole(answer: bytes, body: bytes, reason: str) -> None:
    pieces = [answer, b""] if answer else [b""]
    found = read(pieces)

    assert (found.body, found.done, found.reusable) == (body, False, False)
    assert reason in found.broken
    agree(pieces)


def test_an_answer_without_length_ends_with_the_connection() -> None:
    answer = b"HTTP/1.1 200 OK\r\n\r\nsome"

    assert not read([answer, b" more"]).done
    found = read([answer, b" more", b""])
    assert (found.body, found.done, found.reusable, found.broken) == (b"some more", True, False, "")


def test_a_whole_answer_stays_whole_when_the_connection_closes_but_is_the_last() -> None:
    found = read([b"HTTP/1.1 204 No\r\n\r\n", b""])

    assert (found.done, found.reusable, found.broken) == (True, False, "")


@pytest.mark.parametrize("framing", [b"content-length: 9", b"transfer-encoding: chunked", b"a: b"])
def test_the_answer_to_head_has_no_body(framing: bytes) -> None:
    found = read([b"HTTP/1.1 200 OK\r\n" + framing + b"\r\n\r\n"], "HEAD")

    assert (found.body, found.done, found.reusable) == (b"", True, True)


@pytest.mark.parametrize(
    ("method", "headers", "answer"),
    [
        ("GET", UPGRADE, b"HTTP/1.1 101 Switch\r\nupgrade: websocket\r\n\r\n\x81\x00"),
        ("CONNECT", (), b"HTTP/1.1 200 Yes\r\ncontent-length: 7\r\n\r\n\x81\x00"),
    ],
)
def test_what_follows_a_switch_is_left_unread_and_the_connection_is_no_more_for_http(
    method: str, headers: Headers, answer: bytes
) -> None:
    found = read([answer], method, headers)

    assert (found.body, found.done, found.reusable, found.excess) == (b"", True, False, b"\x81\x00")


def test_a_refused_switch_leaves_the_connection_as_it_is() -> None:
    assert read([b"HTTP/1.1 204 No\r\n\r\n"], "GET", UPGRADE).reusable
    assert read([b"HTTP/1.1 407 No\r\ncontent-length: 0\r\n\r\n"], "CONNECT").reusable


def test_a_request_that_wants_to_close_is_the_last() -> None:
    assert not read([b"HTTP/1.1 204 No\r\n\r\n"], "GET", [("Connection", "Close")]).reusable


def test_all_chunks_of_one_receive_are_one_piece() -> None:
    reader = ResponseReader("GET")
    reader.receive(CHUNKED + b"3\r\none\r\n3\r\ntwo\r\n3\r\nth")

    assert reader.take() == b"onetwoth"
    assert reader.take() == b""


def test_the_good_part_of_a_broken_answer_comes_before_the_error_and_the_error_stays() -> None:
    reader = ResponseReader("GET")
    reader.receive(CHUNKED + b"3\r\none\r\nwrong\r\n")
    reader.receive(b"3\r\ntwo\r\n")

    assert reader.take() == b"one"
    for again in (reader.take, lambda: reader.receive(b"3\r\ntwo\r\n"), lambda: reader.receive(b"")):
        with pytest.raises(HttpProtocolError, match="chunk header"):
            again()


def test_the_head_of_a_request_is_written_as_given() -> None:
    head = request_head("POST", b"/a?b=%20", b"[::1]:8080", [("X-Key", "a\tb: c"), ("empty", ""), ("n", "\u00e9")], 12)

    assert head == (
        b"POST /a?b=%20 HTTP/1.1\r\nhost: [::1]:8080\r\ncontent-length: 12\r\n"
        b"X-Key: a\tb: c\r\nempty: \r\nn: \xc3\xa9\r\n\r\n"
    )
    assert request_head("GET", b"/", b"h", [], None) == b"GET / HTTP/1.1\r\nhost: h\r\n\r\n"


@pytest.mark.parametrize(
    ("method", "target", "host", "header"),
    [
        pytest.param("GET x", b"/", b"h", ("a", "b"), id="a blank in the method"),
        pytest.param("GET\r\n", b"/", b"h", ("a", "b"), id="CRLF in the method"),
        pytest.param("", b"/", b"h", ("a", "b"), id="no method"),
        pytest.param("GET", b"", b"h", ("a", "b"), id="no target"),
        pytest.param("GET", b"/ HTTP/1.1\r\nx: y", b"h", ("a", "b"), id="a second line in the target"),
        pytest.param("GET", b"/a b", b"h", ("a", "b"), id="a blank in the target"),
        pytest.param("GET", b"/a\x7f", b"h", ("a", "b"), id="a control character in the target"),
        pytest.param("GET", "/\u00e9".encode(), b"h", ("a", "b"), id="a target that is not ASCII"),
        pytest.param("GET", b"/", b"h\r\nx: y", ("a", "b"), id="a second line in the host"),
        pytest.param("GET", b"/", b"h", ("a", "b\r\nc: d"), id="a second line in a value"),
        pytest.param("GET", b"/", b"h", ("a", "b\nc: d"), id="LF in a value"),
        pytest.param("GET", b"/", b"h", ("a", "b\r"), id="CR in a value"),
        pytest.param("GET", b"/", b"h", ("a", "b\x00"), id="NUL in a value"),
        pytest.param("GET", b"/", b"h", ("a", " b"), id="a blank before a value"),
        pytest.param("GET", b"/", b"h", ("a", "b\t"), id="a tab after a value"),
        pytest.param("GET", b"/", b"h", ("a", "\ud800"), id="half a character"),
        pytest.param("GET", b"/", b"h", ("", "b"), id="no name"),
        pytest.param("GET", b"/", b"h", ("a b", "c"), id="a blank in a name"),
        pytest.param("GET", b"/", b"h", ("a:", "b"), id="a colon in a name"),
        pytest.param("GET", b"/", b"h", ("a: b\r\nc", "d"), id="a second line in a name"),
        pytest.param("GET", b"/", b"h", ("\u00e9", "b"), id="a name that is not ASCII"),
        pytest.param("GET", b"/", b"h", ("Host", "other"), id="another host"),
        pytest.param("GET", b"/", b"h", ("Content-Length", "5"), id="another length"),
        pytest.param("GET", b"/", b"h", ("transfer-encoding", "chunked"), id="a coding that is not used"),
    ],
)
def test_a_request_that_would_not_be_read_as_given_is_refused(
    method: str, target: bytes, host: bytes, header: tuple[str, str]
) -> None:
    with pytest.raises(HttpProtocolError, match="cannot be sent"):
        request_head(method, target, host, [("x", "y"), header], None)


ODD = st.sampled_from(["\r", "\n", "\r\n", "\x00", "\t", " ", ":", "\x0b", "\x7f", "\x85", "\u2028", "a", "\u00e9"])
PART = st.lists(ODD | st.characters(codec="utf-8"), max_size=6).map("".join)


@given(PART, PART.map(str.encode), st.lists(st.tuples(PART, PART), max_size=3))
@example("GET", b"/", [("a", "b")])
@example("GET", b"/", [("a", "\x01\x7f\x85")])
def test_a_request_that_is_sent_has_the_lines_it_was_given_and_h11_would_send_it(
    method: str, target: bytes, headers: list[tuple[str, str]]
) -> None:
    try:
        head = request_head(method, target, b"h", headers, None)
    except HttpProtocolError:
        return
    lines = [method.encode() + b" " + target + b" HTTP/1.1", b"host: h"]
    lines += [f"{name}: {value}".encode() for name, value in headers]
    assert head.split(b"\r\n") == [*lines, b"", b""]
    encoded: list[Any] = [("host", "h"), *[(name.encode(), value.encode()) for name, value in headers]]
    assert h11.Connection(h11.CLIENT).send(h11.Request(method=method, target=target, headers=encoded)) == head


LINE_END = st.sampled_from([b"\r\n"] * 8 + [b"\n", b"\r", b"\r\r\n"])
HEADER = st.sampled_from(
    [
        b"a: b", b"A-B:c", b"x:", b"x: \t y \t", b"server: \xe9\x01", b"a: b\r\n c", b"a: b\n\tc", b" lost: 1",
        b"a b: c", b"a : b", b"abc", b"a: \x00", b"a: b\x0cc", b"connection: close", b"connection: keep-alive",
        b"Connection: x,CLOSE", b"upgrade: h2c", b"content-length: 0", b"content-length: 3", b"Content-Length: 3,3",
        b"content-length: 3, 4", b"content-length: x", b"content-length:\r\n 3", b"transfer-encoding: chunked",
        b"Transfer-Encoding: CHUNKED", b"transfer-encoding: gzip", b"transfer-encoding: chunked, chunked",
        b"transfer-encoding:\n chunked",
    ]
)  # fmt: skip
VERSION = st.sampled_from([b"1.1"] * 6 + [b"1.0", b"1.2", b"2.0", b"0.9", b"1", b"11.1"])
STATUS = st.sampled_from([b"200"] * 8 + [b"204", b"304", b"404", b"500", b"100", b"101", b"103", b"099", b"20", b"999"])
REASON = st.sampled_from([b" OK"] * 4 + [b"", b" ", b" a\tb\xff", b" a\rb", b"OK"])
CHUNK = st.builds(
    lambda data, extension, end: b"%x%s\r\n%s%s" % (len(data), extension, data, end),
    st.binary(min_size=1, max_size=40),
    st.sampled_from([b""] * 8 + [b";a=b", b";", b" ", b"\t ", b" ;a", b";a\rb", b";\x00", b"g"]),
    st.sampled_from([b"\r\n"] * 12 + [b"\n", b"", b"\rx"]),
)
TRAILERS = st.sampled_from(
    [b"\r\n"] * 6 + [b"\n", b"a: b\r\n\r\n", b"a: b\n\n", b"a\r\n\r\n", b"content-length: x\r\n\r\n"]
)
CHUNKS = st.builds(
    lambda chunks, end, trailers: b"".join(chunks) + end + trailers,
    st.lists(CHUNK, max_size=4),
    st.sampled_from([b"0\r\n"] * 6 + [b"000;x\r\n", b"0\n", b"", b"0 \r\n"]),
    TRAILERS,
)
HEAD = st.builds(
    lambda version, status, reason, headers, ends: b"".join(
        line + end
        for line, end in zip([b"HTTP/" + version + b" " + status + reason, *headers, b""], ends, strict=False)
    ),
    VERSION,
    STATUS,
    REASON,
    st.lists(HEADER, max_size=4),
    st.lists(LINE_END, min_size=6, max_size=6),
)
SOUND = st.builds(lambda chunks: CHUNKED + chunks, CHUNKS)
ANSWER = st.builds(
    lambda interim, answer, rest: interim + answer + rest,
    st.sampled_from([b""] * 6 + [b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 x\r\na: b\r\n\r\n"]),
    SOUND | st.builds(bytes.__add__, HEAD, CHUNKS | st.sampled_from([b"", b"abc", b"abcd", b"ab"])),
    st.sampled_from([b""] * 4 + [b"x", b"\r\n", b"HTTP/1.1 200 OK\r\n\r\n"]),
)
DAMAGE = st.lists(
    st.tuples(
        st.integers(0, 400),
        st.integers(0, 2),
        st.sampled_from(
            [b"", b"\r", b"\n", b"\r\n", b"\x00", b" ", b"\t", b":", b";", b",", b"0", b"f", b"\xff", b"\x0b"]
        ),
    ),
    max_size=2,
)
METHOD = st.sampled_from(
    [("GET", ())] * 4 + [("HEAD", ()), ("CONNECT", ()), ("GET", UPGRADE), ("GET", (("connection", "close"),))]
)


@given(ANSWER, DAMAGE, st.lists(st.integers(0, 400), max_size=6), METHOD, st.booleans())
@example(CHUNKED + b"1\r\nx\r\n0\r\n\r\n", [], [], ("GET", ()), True)
def test_whatever_a_server_sends_is_read_as_h11_reads_it_or_refused(
    answer: bytes, damage: list[tuple[int, int, bytes]], cuts: list[int], request: tuple[str, Headers], closed: bool
) -> None:
    for at, size, new in damage:
        answer = answer[:at] + new + answer[at + size :]
    ends = [0, *sorted(cut for cut in cuts if cut < len(answer)), len(answer)]
    pieces = [answer[start:end] for start, end in pairwise(ends) if start < end]
    end = [b""] if closed else []

    agree([*pieces, *end], *request)

    whole, split = read([answer, *end] if answer else end, *request), read([*pieces, *end], *request)
    assert replace(split, broken=bool(split.broken)) == replace(whole, broken=bool(whole.broken))  # type: ignore[arg-type]
