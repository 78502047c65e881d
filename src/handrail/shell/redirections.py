"""Redirections, and here-documents with their bodies."""

from handrail.lazy import lazy_pattern
from handrail.shell.cursor import Cursor
from handrail.shell.model import Piece, PieceKind, Redirection, Word
from handrail.shell.words import META

REDIRECT = lazy_pattern(r"([0-9]*)(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)|(&>>|&>)")


class Redirections(Cursor):
    """Reads redirections; a here-document's body is read when its line ends."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.heredocs: list[tuple[str, bool, bool, int]] = []  # delimiter, quoted, tabs, key in bodies
        self.bodies: dict[int, Word] = {}  # here-documents by the offset of their delimiter

    def line_ends(self) -> None:
        while self.heredocs:
            self.heredoc_body(*self.heredocs.pop(0))

    def redirections(self) -> tuple[tuple[Redirection, ...], bool]:
        """The redirections here, and whether a word follows them."""
        found: list[Redirection] = []
        while True:
            self.blanks()
            if self.at >= self.end or not self.redirection(found):
                return tuple(found), self.at < self.end and self.text[self.at] not in META

    def redirection(self, into: list[Redirection]) -> bool:
        found = REDIRECT.match(self.text, self.at, self.end)
        if not found or (self.text.startswith(("<(", ">("), self.at)):
            return False
        if self.at and self.text[self.at - 1] == "}" and self.text[self.at] in "<>":
            raise self.refuse("a redirection to a named descriptor", 1, "redirection")
        fd, operator = found.group(1) or "", found.group(2) or found.group(3)
        self.at = found.end()
        if operator in ("<<", "<<-"):
            self.heredoc(operator, fd, into)
            return True
        self.blanks()
        into.append(Redirection(operator, self.word(), fd))
        return True

    def heredoc(self, operator: str, fd: str, into: list[Redirection]) -> None:
        self.blanks()
        start = self.at
        delimiter = self.word()
        if any(piece.kind is not PieceKind.LITERAL for piece in delimiter.pieces) or not delimiter.literal:
            raise self.refuse("a here-document delimiter that is not plain", 1, "here-document")
        quoted = any(mark in self.text[start : self.at] for mark in "'\"\\")
        into.append(Redirection(operator, delimiter, fd))
        self.heredocs.append((delimiter.literal, quoted, operator == "<<-", delimiter.start))

    def heredoc_body(self, delimiter: str, quoted: bool, tabs: bool, key: int) -> None:
        start = at = self.at
        while True:
            if at >= self.end:
                raise self.refuse(f"a here-document without its end {delimiter!r}", 1, "here-document")
            close = self.text.find("\n", at, self.end)
            close = self.end if close < 0 else close
            line = self.text[at:close]
            if (line.lstrip("\t") if tabs else line) == delimiter:
                break
            at = close + 1
        pieces: list[Piece] = []
        if quoted:
            pieces.append(Piece(PieceKind.LITERAL, self.text[start:at], quoted=True))
        else:
            self.words.double(start, at, pieces, heredoc=True)
        self.bodies[key] = Word(tuple(pieces), self.byte(start), self.byte(at))
        self.at = min(close + 1, self.end)

    def no_heredocs(self) -> None:
        if self.heredocs:
            raise self.refuse("a here-document without a body", 1, "here-document")
