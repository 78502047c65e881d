"""Any edit equals the same edit on the decoded text, and every byte outside it is what it was."""

import re

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from handrail.errors import ToolError
from handrail.files.adapt_text import adapt_text
from handrail.files.find_text import MAX_COUNTED, MAX_FLEXIBLE, find_text, one_line_end
from handrail.files.source import FileSource
from handrail.files.text import UNITS, Encoding
from handrail.files.text_edits import MAX_SHOWN_PLACES, TextEdits, make_edits

ENCODINGS = {
    "utf-8": "aä☃𝄞",
    "utf-16-le": "aä☃𝄞\u0a00\u000a",
    "utf-16-be": "aä☃𝄞\u0a00",
    "cp932": "aあ表ソ",  # the second byte of the last two is a backslash
    "gb18030": "a中这亅",
    "gbk": "a中这亅",
    "cp949": "a가각똠",
    "euc_jp": "aあ表ソ",
    "cp1252": "aä€Z",
    "iso8859_1": "aäÿZ",
}
MARKS = {"utf-8": b"\xef\xbb\xbf", "utf-16-le": b"\xff\xfe", "utf-16-be": b"\xfe\xff"}


@st.composite
def files(draw: st.DrawFn) -> tuple[Encoding, bytes, str, str]:
    """A file of text and junk in some encoding, a text that often occurs in it, and another one."""
    name = draw(st.sampled_from(sorted(ENCODINGS)))
    letters = ENCODINGS[name] + "ab\\\n"
    text = st.text(letters, max_size=6)
    unit = UNITS.get(name, 1)
    junk = st.binary(max_size=3) if unit == 1 else st.binary(min_size=unit, max_size=unit)
    if name in {"cp932", "gbk", "gb18030", "cp949", "euc_jp"}:
        junk = junk.map(lambda data: data + b"\n" if data else data)  # where a line feed is one for certain
    parts = draw(st.lists(text.map(lambda t: t.encode(name, "surrogatepass")) | junk, max_size=6))
    old = draw(st.text(letters, min_size=1, max_size=3))
    place = draw(st.integers(0, len(parts)))
    data = b"".join([*parts[:place], old.encode(name, "surrogatepass"), *parts[place:]])
    mark = draw(st.sampled_from([b"", MARKS.get(name, b"")]))
    return Encoding(name, mark), mark + data, old, draw(text)


def edited(source: FileSource, encoding: Encoding, old: str, new: str, *, everywhere: bool) -> tuple[bytes, TextEdits]:
    found = find_text(source, encoding, old, overlapping=not everywhere)
    edits = make_edits(source, encoding, found, (old, new), "f")
    return b"".join(edits.pieces()), edits


@pytest.mark.proves("R7", "N5")
@given(file=files())
def test_replacing_everywhere_is_replacing_in_the_decoded_text(file: tuple[Encoding, bytes, str, str]) -> None:
    encoding, data, old, new = file
    data = data.replace(b"\r", b"r")
    first = len(encoding.mark)
    before = encoding.decode(data[first:])
    source = FileSource.of(data)

    result, edits = edited(source, encoding, old, new, everywhere=True)

    assert len(edits.spans) == before.count(old)
    if not encoding.name.startswith("utf-16") or len(data) % 2 == first % 2:
        assert encoding.decode(result[first:]) == before.replace(old, new) or _merges(encoding, before, old, new)
    kept_before = [data[a:b] for a, b in _between(edits.spans, len(data))]
    shift, kept_after = 0, []
    for (a, b), text in zip(_between(edits.spans, len(data)), [b"", *edits.texts], strict=True):
        shift += len(text)
        kept_after.append(result[shift : shift + b - a])
        shift += b - a
    assert kept_after == kept_before
    assert shift == len(result)


def _merges(encoding: Encoding, before: str, old: str, new: str) -> bool:
    """Junk beside new text may make a character with it: the bytes are right, and no text has these bytes."""
    after = before.replace(old, new)
    try:
        again = encoding.decode(
            after.encode(encoding.name, "surrogatepass" if encoding.name in UNITS else "surrogateescape")
        )
    except UnicodeEncodeError:
        return True
    return again != after


def _seams(edits: TextEdits) -> list[int]:
    """Where old and new bytes meet: a return and a line feed that come together there become one line end."""
    moved, seams = 0, []
    for (start, end), text in zip(edits.spans, edits.texts, strict=True):
        seams += [start + moved, start + moved + len(text)]
        moved += len(text) - (end - start)
    return seams


def _between(spans: list[tuple[int, int]], size: int) -> list[tuple[int, int]]:
    edges = [0, *(edge for span in spans for edge in span), size]
    return list(zip(edges[::2], edges[1::2], strict=True))


@pytest.mark.proves("R7")
@given(file=files(), step=st.integers(1, 9).map(lambda n: 4 * n))
def test_a_file_that_is_read_in_pieces_gives_the_same_edit(
    file: tuple[Encoding, bytes, str, str], step: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    encoding, data, old, new = file
    path = tmp_path_factory.getbasetemp() / "pieces"
    path.write_bytes(data)
    whole, edits = edited(FileSource.of(data), encoding, old, new, everywhere=True)

    with path.open("rb") as file_:
        source = FileSource(file_.fileno(), len(data), whole=-1, step=step)
        result, found = edited(source, encoding, old, new, everywhere=True)

        assert (result, found.spans, found.texts) == (whole, edits.spans, edits.texts)
        assert found.patch() == edits.patch()
        assert found.lines(9) == edits.lines(9)


ENDS = st.sampled_from(["\n", "\r\n", "\r"])


@pytest.mark.proves("R7")
@given(
    lines=st.lists(st.tuples(st.sampled_from(["a", "b", "", "ä"]), ENDS), min_size=1, max_size=7),
    old=st.text("ab\n", min_size=1, max_size=4),
    new=st.text("abc\nä", max_size=4),
    name=st.sampled_from(["utf-8", "utf-16-le", "cp1252", "gb18030"]),
)
@example(lines=[("a", "\r"), ("", "\n")], old="a\n\n", new="x", name="utf-8")
def test_a_line_feed_stands_for_the_line_end_of_the_file(
    lines: list[tuple[str, str]], old: str, new: str, name: str
) -> None:
    text = "".join(line + end for line, end in lines)
    encoding = Encoding(name)
    universal = re.sub("\r\n|\r", "\n", text)

    result, edits = edited(FileSource.of(text.encode(name)), encoding, old, new, everywhere=True)

    assert len(edits.spans) == universal.count(old)
    joins = any(
        encoding.decode(result[:at]).endswith("\r") and encoding.decode(result[at:]).startswith("\n")
        for at in _seams(edits)
    )
    assert joins or re.sub("\r\n|\r", "\n", encoding.decode(result)) == universal.replace(old, new)
    outside = [text.encode(name)[a:b] for a, b in _between(edits.spans, len(text.encode(name)))]
    at = 0
    for part in outside:
        at = result.index(part, at) + len(part)


@pytest.mark.parametrize(
    ("file", "old", "new", "expected"),
    [
        pytest.param("a\r\nb\r\n", "a\nb", "a\nx\nb", "a\r\nx\r\nb\r\n", id="the place has pairs"),
        pytest.param("a\nb\r\nc\r\n", "a\nb", "a\nx\nb", "a\nx\nb\r\nc\r\n", id="mixed: the place has line feeds"),
        pytest.param("a\nb\r\nc\r\n", "c", "c\nd", "a\nb\r\nc\r\nd\r\n", id="the line's own end"),
        pytest.param("a\r\nb", "b", "b\nc", "a\r\nb\r\nc", id="a last line without an end takes that of the one above"),
        pytest.param("a", "a", "a\nb", "a\nb", id="no line end anywhere"),
        pytest.param("a\rb\r", "a\nb", "x\ny", "x\ry\r", id="returns alone"),
        pytest.param("a\r\nb\nc\n", "a\nb\nc", "a\nB\nc", "a\r\nB\nc\n", id="lines that stay keep their ends"),
        pytest.param("a\r\nb\r\n", "a\r\nb", "x\r\ny", "x\r\ny\r\n", id="pairs in the input are line ends"),
        pytest.param("a\r\nb\r\n", "b\n", "", "a\r\n", id="a line goes with its end"),
    ],
)
@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "cp932"])
@pytest.mark.proves("R7")
def test_new_lines_get_the_line_end_of_their_place(name: str, file: str, old: str, new: str, expected: str) -> None:
    result, _ = edited(FileSource.of(file.encode(name)), Encoding(name), old, new, everywhere=False)

    assert result == expected.encode(name)


@pytest.mark.proves("J10")
@pytest.mark.parametrize(
    ("standing", "old", "new", "expected"),
    [
        pytest.param("say “hi”", 'say "hi"', 'say "hey"', "say “hey”", id="what stays keeps its quotes"),
        pytest.param("say “hi”", 'say "hi"', 'say "hi", "you"', "say “hi”, “you”", id="new ones get the same shape"),
        pytest.param("it’s", "it's", "it's John's", "it’s John’s", id="apostrophes"),
        pytest.param("5′ 3″", "5' 3\"", "6' 3\"", "6′ 3″", id="primes"),
        pytest.param("it's", "it’s", "it’s so", "it's so", id="the other way round"),
        pytest.param("„ja“", '"ja"', '"nein"', "„nein“", id="low quotes"),
        pytest.param("“a” 'b'", "\"a\" 'b'", "\"a\" 'c'", "“a” 'c'", id="each family by itself"),
        pytest.param("“a”\r\nb", '"a"\nb', '"a"\nx\nb', "“a”\r\nx\r\nb", id="with line ends"),
    ],
)
def test_quotes_of_any_shape_match_and_the_file_keeps_its_own(standing: str, old: str, new: str, expected: str) -> None:
    file = f"<{standing}>".encode()
    found = find_text(FileSource.of(file), Encoding(), old, overlapping=True)

    assert (found.spans, found.quotes) == ([(1, len(file) - 1)], True)
    assert adapt_text(standing, old, new, "\n", quotes=True) == expected


@pytest.mark.proves("J10", "P7")
def test_quotes_as_given_win_over_quotes_of_another_shape() -> None:
    found = find_text(FileSource.of("'a' ‘a’".encode()), Encoding(), "'a'", overlapping=True)

    assert (found.spans, found.quotes) == ([(0, 3)], False)


@pytest.mark.proves("P7", "J9")
def test_places_that_overlap_are_two_unless_all_are_replaced() -> None:
    source = FileSource.of(b"aaa")

    assert find_text(source, Encoding(), "aa", overlapping=True).spans == [(0, 2), (1, 3)]
    assert find_text(source, Encoding(), "aa", overlapping=False).spans == [(0, 2)]


def test_a_pair_of_return_and_line_feed_is_one_line_end() -> None:
    assert find_text(FileSource.of(b"a\r\nb"), Encoding(), "\n", overlapping=True).spans == [(1, 3)]
    assert find_text(FileSource.of(b"a\r\nb"), Encoding(), "a\r", overlapping=True).spans == []


def test_half_a_character_is_no_place() -> None:
    """The second byte of these characters is an ASCII letter or the first of another."""
    assert find_text(FileSource.of("表ソ".encode("cp932")), Encoding("cp932"), "\\", overlapping=True).spans == []
    assert (
        find_text(
            FileSource.of("\u0a00\u0a0a".encode("utf-16-le")), Encoding("utf-16-le"), "\n", overlapping=True
        ).spans
        == []
    )
    assert one_line_end("a\r\nb\r") == "a\nb\r"


@pytest.mark.parametrize("name", ["utf-8", "utf-16-le", "cp932"])
def test_the_patch_names_lines_and_joins_what_is_near(name: str) -> None:
    text = (
        "".join(f"line {n}\n" for n in range(1, 101)).replace("line 50\n", "target\n").replace("line 52\n", "target\n")
    )
    _, edits = edited(FileSource.of(text.encode(name)), Encoding(name), "target\n", "new\nnewer\n", everywhere=True)

    patch, hidden = edits.patch()

    assert hidden == 0
    assert [(h.old_start, h.old_lines, h.new_start, h.new_lines) for h in patch] == [(47, 9, 47, 11)]
    assert edits.lines(10) == [50, 52]
    assert patch[0].lines[:6] == (" line 47", " line 48", " line 49", "-target", "+new", "+newer")


@pytest.mark.parametrize("text", ["ab\n" * 5_000, "ab " * 5_000])
def test_the_patch_of_very_many_places_shows_the_first_ones_as_they_are_afterwards(text: str) -> None:
    after, edits = edited(FileSource.of(text.encode()), Encoding(), "ab", "x", everywhere=True)

    patch, hidden = edits.patch()

    assert after == text.replace("ab", "x").encode()
    assert hidden == len(edits.spans) - MAX_SHOWN_PLACES
    (hunk,) = patch
    new = "".join(line[1:] for line in hunk.lines if line.startswith("+"))
    assert "ab" not in new
    assert new.count("x") == MAX_SHOWN_PLACES or " " in text  # a line is cut where nobody reads on


def test_places_that_share_characters_are_counted_as_far_as_matters() -> None:
    found = find_text(FileSource.of(b"a" * 100_000), Encoding(), "a" * 1_000, overlapping=True)

    assert len(found.spans) == MAX_COUNTED


def test_what_would_make_an_endless_pattern_is_refused_or_taken_as_given() -> None:
    rows = "a\r\n" * (MAX_FLEXIBLE + 1)
    with pytest.raises(ToolError, match=r"more than 10,000 lines, .* Replace it in parts"):
        find_text(FileSource.of(rows.encode()), Encoding(), rows, overlapping=True)

    quotes = "'" * (MAX_FLEXIBLE + 1)
    assert find_text(FileSource.of(quotes.encode()), Encoding(), quotes, overlapping=True).spans == [(0, len(quotes))]
    assert find_text(FileSource.of("\u2019".encode() * len(quotes)), Encoding(), quotes, overlapping=True).spans == []
