"""Which encoding a text has, and what may be written into it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import ToolError
from handrail.files import guess_encoding
from handrail.files.text import UTF8, Encoding, detect_encoding

JAPANESE = "これは日本語のテキストです。\nコードを書くのはとても楽しい。\n"
CHINESE = "这是一个中文的文件，我们可以在这里编辑。\n说明：不要改变其他的字。\n"
KOREAN = "이것은 한국어 텍스트입니다.\n파일을 고칠 수 있다.\n"
GERMAN = "Die Größe der Straße – „schön“ für alle Füße\n"
FRENCH = "déjà vu à la forêt, où l’été est là\n"
RUSSIAN = "Привет, мир. Это обычный текст на русском языке.\n"


@pytest.mark.proves("R7")
@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(b"", UTF8, id="nothing"),
        pytest.param(b"plain\n", UTF8, id="ASCII"),
        pytest.param(GERMAN.encode(), UTF8, id="UTF-8"),
        pytest.param(GERMAN.encode("utf-8-sig"), Encoding("utf-8", b"\xef\xbb\xbf"), id="UTF-8 with a mark"),
        pytest.param(GERMAN.encode() + b"\xff\n", UTF8, id="UTF-8 with a broken byte"),
        pytest.param(
            b"\xff\xfe" + GERMAN.encode("utf-16-le"), Encoding("utf-16-le", b"\xff\xfe"), id="UTF-16 LE, mark"
        ),
        pytest.param(
            b"\xfe\xff" + GERMAN.encode("utf-16-be"), Encoding("utf-16-be", b"\xfe\xff"), id="UTF-16 BE, mark"
        ),
        pytest.param("plain text\n".encode("utf-16-le"), Encoding("utf-16-le"), id="UTF-16 LE without"),
        pytest.param("plain text\n".encode("utf-16-be"), Encoding("utf-16-be"), id="UTF-16 BE without"),
        pytest.param(RUSSIAN.encode("utf-16-le"), Encoding("utf-16-le"), id="Russian UTF-16 LE without"),
        pytest.param(CHINESE.encode("utf-16-be"), Encoding("utf-16-be"), id="Chinese UTF-16 BE without"),
        pytest.param(JAPANESE.encode("utf-16-le"), Encoding("utf-16-le"), id="Japanese UTF-16 LE without"),
        pytest.param(
            b"\xff\xfe\0\0" + "plain\n".encode("utf-32-le"), Encoding("utf-32-le", b"\xff\xfe\0\0"), id="UTF-32, mark"
        ),
        pytest.param(JAPANESE.encode("shift_jis"), Encoding("cp932"), id="Shift-JIS"),
        pytest.param(JAPANESE.encode("euc_jp"), Encoding("euc_jp"), id="EUC-JP"),
        pytest.param(CHINESE.encode("gbk"), Encoding("gbk"), id="GBK"),
        pytest.param(f"{CHINESE}\U0001f600\n".encode("gb18030"), Encoding("gb18030"), id="GB18030"),
        pytest.param(KOREAN.encode("euc_kr"), Encoding("cp949"), id="EUC-KR"),
        pytest.param(GERMAN.encode("cp1252"), Encoding("cp1252"), id="cp1252"),
        pytest.param(FRENCH.encode("cp1252"), Encoding("cp1252"), id="French cp1252"),
        pytest.param("x = 'é'\n".encode("latin-1") * 2, Encoding("cp1252"), id="one letter of Latin-1"),
        pytest.param(b"# " + b"a" * 70_000 + b"\n" + JAPANESE.encode("shift_jis"), Encoding("cp932"), id="late"),
        pytest.param(b"\x7fELF\x02\x01\x01\0\0\0\0\0\x03\0>\0\x01\0\0\0", None, id="a program"),
        pytest.param(b"\x00\x01\x02\xff", None, id="four bytes of no text"),
        pytest.param(b"\xff\x02\x00\x01" * 9, None, id="zeros that no letter explains"),
        pytest.param("\u4e00\u4e00\n".encode("utf-16-le"), Encoding("utf-16-le"), id="a common sign with a zero in it"),
        pytest.param(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\x01\0\0\0\x01\0", None, id="a picture"),
    ],
)
def test_the_encoding_of_a_text_is_found(data: bytes, expected: Encoding | None) -> None:
    assert detect_encoding([data]) == expected


@pytest.mark.parametrize("size", [1, 2, 3, 7])
def test_pieces_may_end_within_a_character(size: int) -> None:
    data = (GERMAN * 3).encode()

    assert detect_encoding([data[at : at + size] for at in range(0, len(data), size)]) == UTF8


def test_without_charset_normalizer_rare_encodings_are_taken_as_western(monkeypatch: pytest.MonkeyPatch) -> None:
    data = RUSSIAN.encode("koi8_r")
    assert detect_encoding([data]) == Encoding("koi8_r")

    monkeypatch.setattr(guess_encoding, "find_spec", lambda name: None)
    assert detect_encoding([data]) == Encoding("cp1252")
    assert detect_encoding([b"\x81\x8d" + data]) == Encoding("iso8859_1")


@pytest.mark.parametrize(
    "name", ["utf-8", "utf-16-le", "utf-16-be", "cp932", "gbk", "gb18030", "cp949", "euc_jp", "cp1252", "iso8859_1"]
)
@given(data=st.binary(max_size=40))
def test_every_byte_has_its_place_in_the_decoded_text(name: str, data: bytes) -> None:
    """Decoding never fails, whatever the bytes."""
    text = Encoding(name).decode(data)

    if name in {"utf-8", "cp1252", "iso8859_1"}:
        assert text.encode(name, "surrogateescape") == data
    elif name.startswith("utf-16"):
        assert text.encode(name, "surrogatepass") == data[: len(data) & ~1]


@pytest.mark.proves("R7", "R12")
@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        pytest.param("cp1252", "a\nb → c", "'→' (U+2192, RIGHTWARDS ARROW; line 2 of the new text)", id="an arrow"),
        pytest.param("cp932", "é", "'é' (U+00E9, LATIN SMALL LETTER E WITH ACUTE; line 1", id="Shift-JIS"),
        pytest.param("utf-8", "\ud800", "'\\ud800' (U+D800, a lone surrogate; line 1", id="no character"),
    ],
)
def test_what_the_encoding_does_not_have_is_refused_by_name(name: str, text: str, message: str) -> None:
    with pytest.raises(ToolError) as refused:
        Encoding(name).encode(text, "f.txt")

    assert str(refused.value).startswith(message)
    assert "Nothing was changed." in str(refused.value)
