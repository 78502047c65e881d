"""
Words: our own unquoting, one character at a time, exactly as far as we can follow bash.

Everything outside the closed set of forms raises UnclearError: `$[`, `$"`, `${x:=`, `${!x}`, `${x@P}`, arithmetic
that assigns or has subscripts, backslashes inside backticks. Names in arithmetic are read, but bash evaluates what they
hold, so they must be known to hold numbers (`scope.py`).
"""

from collections.abc import Callable

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern
from handrail.shell.model import Piece, PieceKind, Word
from handrail.shell.syntax import Script

META = frozenset(" \t\n|&;()<>")
NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
SPECIAL = frozenset("?#$!@*-0123456789")
NUMBERS = frozenset("?#$")  # always one word, made of digits
# ${name}, ${#name}, and ${name OP text} where the text can be nothing but text.
BRACED = lazy_pattern(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*|[?#$!])(?:(:?[-+]|%%?|##?|//?)([A-Za-z0-9_./*?,:= -]*))?\}")
# Numbers, names and operators; no `=` that assigns, no `++` or `--`, no name made of two (a$b). It never goes back.
SAFE_ARITHMETIC = lazy_pattern(
    r"\$\(\((?:[0-9 \t*/%&|^~?:]|[<>=!]=|[<>!]|\+(?!\+)|-(?!-)|(?:(?<!\w)\$)?[A-Za-z_][A-Za-z0-9_]*+)*+\)\)"
)
# ${name[@]}, ${name[3]} and ${#name[@]}, for arrays that the line sets.
ELEMENTS = lazy_pattern(r"\$\{(#?)([A-Za-z_][A-Za-z0-9_]*)\[(@|[0-9]{1,3})\]\}")
ANSI = lazy_pattern(r"\\(?:([abeEfnrtv\\'\"?])|x([0-9A-Fa-f]{1,2})|([0-7]{1,3})|u([0-9A-Fa-f]{1,4}))")
ANSI_ONE = {"a": "\a", "b": "\b", "e": "\x1b", "E": "\x1b", "f": "\f", "n": "\n", "r": "\r", "t": "\t", "v": "\v"}
# Runs that are taken whole. Outside quotes what braces and tildes are made of is read one character at a time.
PLAIN = lazy_pattern(r"[^\x00-$&-*,./;<>?\[-\]`{-\x7f]+")  # letters, digits, _:=@%+^- and all beyond ASCII
IN_QUOTES = lazy_pattern(r'[^"$`\\]+')
IN_HEREDOC = lazy_pattern(r"[^$`\\]+")
MAX_PIECES = 2000
GLOBS = frozenset("*?[")

ScriptReader = Callable[[int, str], tuple[Script, int]]  # reads from an offset to a closing `)` or "`"


class WordReader:
    """Reads words of `text`; `read_script` is asked for what stands inside a substitution."""

    def __init__(self, text: str, byte: Callable[[int], int], read_script: ScriptReader) -> None:
        self.text, self.byte, self.read_script = text, byte, read_script
        self.count = 0

    def refuse(self, what: str, start: int, end: int, node: str = "word") -> UnclearError:
        return UnclearError(what, self.byte(start), self.byte(end), node)

    def word(self, start: int, end: int) -> tuple[Word, int]:
        """The word at `start`, and the offset behind it."""
        at, pieces = start, list[Piece]()
        while at < end and (self.text[at] not in META or self.text.startswith(("<(", ">("), at)):
            at = self.piece(at, end, pieces)
            if len(pieces) > MAX_PIECES:
                break
        self.count += len(pieces) + 1
        if self.count > MAX_PIECES:
            raise self.refuse(f"more than {MAX_PIECES} words and parts of words", start, at)
        return Word(settle(pieces), self.byte(start), self.byte(at)), at

    def piece(self, at: int, end: int, pieces: list[Piece]) -> int:
        """Adds what stands at `at` outside quotes; returns the offset behind it."""
        char = self.text[at]
        if found := PLAIN.match(self.text, at, end):
            pieces.append(Piece(PieceKind.LITERAL, found.group()))
            return found.end()
        if char in META:
            return self.process(at, pieces)
        if char == "\\":
            if at + 1 >= end:
                raise self.refuse("a backslash at the end", at, end)
            pieces.append(Piece(PieceKind.LITERAL, self.text[at + 1], quoted=True))
            return at + 2
        if char == "'":
            close = self.text.find("'", at + 1, end)
            if close < 0:
                raise self.refuse("a single quote that is not closed", at, end, "string")
            pieces.append(Piece(PieceKind.LITERAL, self.text[at + 1 : close], quoted=True))
            return close + 1
        if char == '"':
            return self.double(at + 1, end, pieces)
        if char == "$":
            return self.dollar(at, end, pieces, quoted=False)
        if char == "`":
            return self.backtick(at, end, pieces, quoted=False)
        pieces.append(Piece(PieceKind.GLOB if char in GLOBS else PieceKind.LITERAL, char))
        return at + 1

    def double(self, at: int, end: int, pieces: list[Piece], *, heredoc: bool = False) -> int:
        """The inside of double quotes, or of an unquoted here-document up to `end`."""
        begin = at
        pieces.append(Piece(PieceKind.LITERAL, "", quoted=True))
        while at < end:
            char = self.text[at]
            if char == '"' and not heredoc:
                return at + 1
            if char == "\\" and self.text[at + 1 : at + 2] in ("$", "`", "\\", *(() if heredoc else ('"',))):
                pieces.append(Piece(PieceKind.LITERAL, self.text[at + 1], quoted=True))
                at += 2
            elif char == "$":
                at = self.dollar(at, end, pieces, quoted=True)
            elif char == "`":
                at = self.backtick(at, end, pieces, quoted=True)
            else:
                found = IN_HEREDOC.match(self.text, at, end) if heredoc else IN_QUOTES.match(self.text, at, end)
                run = found.group() if found else char
                pieces.append(Piece(PieceKind.LITERAL, run, quoted=True))
                at += len(run)
        if heredoc:
            return at
        raise self.refuse("a double quote that is not closed", begin - 1, end, "string")

    def dollar(self, at: int, end: int, pieces: list[Piece], *, quoted: bool) -> int:
        text = self.text
        following = text[at + 1 : at + 2] if at + 1 < end else ""
        if found := SAFE_ARITHMETIC.match(text, at, end):
            pieces.append(Piece(PieceKind.ARITHMETIC, found.group(), quoted))
            return found.end()
        if text.startswith("$((", at):
            raise self.refuse("arithmetic of a form that is not read", at, at + 3, "arithmetic")
        if following == "(":
            script, close = self.read_script(at + 2, ")")
            pieces.append(Piece(PieceKind.SUBSTITUTION, text[at:close], quoted, script=script))
            return close
        if following == "{":
            return self.read_braces(at, end, pieces, quoted)
        if name := NAME.match(text, at + 1, end):
            pieces.append(Piece(PieceKind.PARAMETER, "$" + name.group(), quoted))
            return name.end()
        if following and following in SPECIAL:
            pieces.append(Piece(PieceKind.PARAMETER, "$" + following, quoted or following in NUMBERS))
            return at + 2
        if following == "[" or (not quoted and following == '"'):
            raise self.refuse(f"${following} is not read", at, at + 2, "expansion")
        if following == "'" and not quoted:
            return self.ansi(at, end, pieces)
        pieces.append(Piece(PieceKind.LITERAL, "$", quoted=True))
        return at + 1

    def read_braces(self, at: int, end: int, pieces: list[Piece], quoted: bool) -> int:
        if elements := ELEMENTS.match(self.text, at, end):
            pieces.append(Piece(PieceKind.PARAMETER, elements.group(), quoted))
            return elements.end()
        found = BRACED.match(self.text, at, end)
        if not found:
            raise self.refuse("an expansion of a form that is not read", at, at + 2, "expansion")
        length, name, operator, _ = found.groups()
        if length and operator:
            raise self.refuse("an expansion of a form that is not read", found.start(), found.end(), "expansion")
        plain = not length and not operator
        pieces.append(Piece(PieceKind.PARAMETER, f"${name}" if plain else found.group(), quoted))
        return found.end()

    def ansi(self, at: int, end: int, pieces: list[Piece]) -> int:
        begin, out = at, ""
        at += 2
        while at < end and self.text[at] != "'":
            if self.text[at] != "\\":
                out += self.text[at]
                at += 1
                continue
            found = ANSI.match(self.text, at, end)
            if not found:
                raise self.refuse("an escape that is not read", at, at + 2, "ansi string")
            one, hexa, octal, uni = found.groups()
            char = ANSI_ONE.get(one, one) if one else chr(int(hexa or uni, 16) if hexa or uni else int(octal, 8))
            if char == "\0" or (not uni and not one and ord(char) > 126):
                raise self.refuse("an escape that is not read", at, found.end(), "ansi string")
            out += char
            at = found.end()
        if at >= end:
            raise self.refuse("a quote that is not closed", begin, end, "ansi string")
        pieces.append(Piece(PieceKind.LITERAL, out, quoted=True))
        return at + 1

    def backtick(self, at: int, end: int, pieces: list[Piece], *, quoted: bool) -> int:
        close = self.text.find("`", at + 1, end)
        if close < 0 or "\\" in self.text[at:close]:
            raise self.refuse("backticks that are not closed or hold a backslash", at, end, "substitution")
        script, _ = self.read_script(at + 1, "`")
        pieces.append(Piece(PieceKind.SUBSTITUTION, self.text[at : close + 1], quoted, script=script))
        return close + 1

    def process(self, at: int, pieces: list[Piece]) -> int:
        if self.text[at] == ">":
            raise self.refuse("a process substitution that writes", at, at + 2, "process substitution")
        if pieces:
            raise self.refuse("a process substitution inside a word", at, at + 2, "process substitution")
        script, close = self.read_script(at + 2, ")")
        pieces.append(Piece(PieceKind.PROCESS, self.text[at:close], quoted=True, script=script))
        return close


def settle(pieces: list[Piece]) -> tuple[Piece, ...]:
    """Neighbouring literals joined; tildes and braces marked where bash would expand them; lone `[` set right."""
    if len(pieces) == 1 and pieces[0].kind is PieceKind.LITERAL and pieces[0].text != "~":
        return (pieces[0],)
    text = "".join(piece.text for piece in pieces)
    if not any(piece.text == "]" and not piece.quoted for piece in pieces):
        pieces = [Piece(PieceKind.LITERAL, p.text) if p.kind is PieceKind.GLOB and p.text == "[" else p for p in pieces]
    if "{" in text and ("," in text or ".." in text):  # first, as in bash: ~{a,b} is ~a and ~b
        pieces = mark_braces(pieces)
    if pieces and pieces[0].text == "~" and not pieces[0].quoted:
        pieces = tilde(pieces)
    if "~" in text:
        pieces = [inner_tilde(piece, before) for piece, before in zip(pieces, [None, *pieces[:-1]], strict=True)]
    wild = any(piece.kind is PieceKind.GLOB for piece in pieces)  # then it matters which characters were quoted
    out: list[Piece] = []
    for piece in pieces:
        if not piece.text and len(pieces) > 1 and (out or piece is not pieces[-1]):
            continue
        literal = bool(out) and piece.kind is out[-1].kind is PieceKind.LITERAL
        if literal and (not wild or piece.quoted == out[-1].quoted):
            out[-1] = Piece(PieceKind.LITERAL, out[-1].text + piece.text, out[-1].quoted or piece.quoted)
        else:
            out.append(piece)
    return tuple(out)


def tilde(pieces: list[Piece]) -> list[Piece]:
    """`~`, `~user`, `~+` up to the first slash become one piece."""
    size = 1
    while size < len(pieces) and pieces[size].kind is PieceKind.LITERAL and pieces[size].text[:1] != "/":
        size += 1
    return [Piece(PieceKind.TILDE, "".join(piece.text for piece in pieces[:size])), *pieces[size:]]


def inner_tilde(piece: Piece, before: Piece | None) -> Piece:
    """In `name=~` and `name=a:~` bash expands the tilde, in arguments too."""
    if before is None or piece.text != "~" or piece.quoted or before.text[-1:] not in ("=", ":") or before.quoted:
        return piece
    return Piece(PieceKind.TILDE, "~")


def mark_braces(pieces: list[Piece]) -> list[Piece]:
    """A `{` with a `,` or `..` and a `}` behind it, all unquoted, is taken for a brace expansion."""
    plain = "".join(
        p.text if p.kind is PieceKind.LITERAL and not p.quoted and len(p.text) == 1 else "x" for p in pieces
    )
    last = min(plain.rfind("}"), max(plain.rfind(","), plain.rfind("..")))
    return [Piece(PieceKind.BRACE, "{") if plain[at] == "{" and at < last else p for at, p in enumerate(pieces)]
