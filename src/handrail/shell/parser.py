"""
The parser: a command line to scripts, pipelines and commands, by recursive descent over bash's grammar.

It reads a closed part of the language. Functions are read but never trusted; arrays, arithmetic commands,
`select`, `coproc`, extended globs and `=~` are refused.
"""

import re
from collections.abc import Callable

from handrail.shell.gate import UnclearError
from handrail.shell.model import Kind, Piece, Redirection, Word
from handrail.shell.syntax import Command, Compound, Pipeline, Script, Simple
from handrail.shell.words import META, NAME, WordReader

MAX_DEPTH = 30
MAX_COMMANDS = 200
REDIRECT = re.compile(r"([0-9]*)(<<<|<<-|<<|<>|<&|>&|>>|>\||<|>)|(&>>|&>)")
ASSIGN = re.compile(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
KEYWORDS = frozenset("if then elif else fi for while until do done case esac { } [[ ! time in".split())
REFUSED_KEYWORDS = frozenset(("select", "coproc"))
SEPARATORS = ("&&", "||", ";;", ";", "&", "\n")
# In `[[ ]]`: an arithmetic comparison evaluates what its operands hold, -v and -R look at subscripts.
REFUSED_TESTS = frozenset(("=~", "-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


class Parser:
    """Parses one text; offsets of what it finds are bytes."""

    def __init__(self, text: str) -> None:
        self.text, self.end, self.at = text, len(text), 0
        self.depth = self.commands = 0
        self.heredocs: list[tuple[str, bool, bool, int]] = []  # delimiter, quoted, tabs, key in bodies
        self.bodies: dict[int, Word] = {}  # here-documents by the offset of their delimiter
        self.name_starts: set[int] = set()  # byte offsets of command names, for the second opinion
        self.byte = offsets(text)
        self.words = WordReader(text, self.byte, self.substitution)

    def parse(self) -> Script:
        script = self.script(())
        if self.at < self.end:
            raise self.refuse(f"{self.text[self.at]!r} where a command should begin")
        self.no_heredocs()
        return script

    def refuse(self, what: str, size: int = 1, node: str = "command") -> UnclearError:
        return UnclearError(what, self.byte(self.at), self.byte(min(self.at + size, self.end)), node)

    # blanks, tokens

    def blanks(self, *, lines: bool = False) -> None:
        while self.at < self.end:
            char = self.text[self.at]
            if char in " \t":
                self.at += 1
            elif char == "#":
                close = self.text.find("\n", self.at, self.end)
                self.at = self.end if close < 0 else close
            elif char == "\n" and lines:
                self.newline()
            else:
                return

    def newline(self) -> None:
        self.at += 1
        while self.heredocs:
            self.heredoc_body(*self.heredocs.pop(0))

    def token(self) -> str:
        """The unquoted text up to the next metacharacter, not consumed: enough to see a keyword."""
        at = self.at
        while at < self.end and self.text[at] not in META:
            at += 1
        return self.text[self.at : at]

    def operator(self) -> str:
        return next((op for op in SEPARATORS if self.text.startswith(op, self.at, self.end)), "")

    def expect(self, keyword: str) -> None:
        self.blanks(lines=True)
        if self.token() != keyword:
            raise self.refuse(f"{keyword!r} expected")
        self.at += len(keyword)

    # scripts and pipelines

    def script(self, closers: tuple[str, ...]) -> Script:
        """Pipelines up to (not including) a closing keyword or character."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(f"nested deeper than {MAX_DEPTH}")
        items: list[tuple[Pipeline, str]] = []
        while True:
            self.blanks(lines=True)
            if self.at >= self.end or self.closes(closers):
                break
            pipeline = self.pipeline()
            self.blanks()
            operator = self.operator() if self.at < self.end else ""
            if operator and operator != ";;":
                self.newline() if operator == "\n" else self.advance(len(operator))
            elif self.at < self.end and not self.closes(closers):
                raise self.refuse(f"{self.text[self.at]!r} after a command")
            items.append((pipeline, ";" if operator in ("\n", "", ";;") else operator))
            if operator in ("&&", "||"):
                self.blanks(lines=True)
                if self.at >= self.end or self.closes(closers):
                    raise self.refuse(f"nothing after {operator}")
        self.depth -= 1
        return Script(tuple(items))

    def advance(self, size: int) -> None:
        self.at += size

    def closes(self, closers: tuple[str, ...]) -> bool:
        token = self.token()
        return any(token == c if c[0].isalpha() or c == "}" else self.text.startswith(c, self.at) for c in closers)

    def filled(self, closers: tuple[str, ...]) -> Script:
        script = self.script(closers)
        if not script.items:
            raise self.refuse("an empty body")
        return script

    def pipeline(self) -> Pipeline:
        was_timed = False
        while self.token() in ("!", "time"):
            timed = self.token() == "time"
            was_timed = was_timed or timed
            if timed:
                self.name_starts.add(self.byte(self.at))
            self.at += len(self.token())
            self.blanks()
            if timed and self.token() == "-p":
                self.at += 2
                self.blanks()
            if self.at >= self.end or self.text[self.at] in "|&;)\n-":
                raise self.refuse("no command after ! or time")
        parts = [self.command()]
        if was_timed and isinstance(parts[0], Simple) and parts[0].words:
            self.name_starts.discard(parts[0].words[0].start)  # the second parser takes `time` for the command
        while True:
            self.blanks()
            if not self.text.startswith("|", self.at, self.end) or self.text.startswith("||", self.at, self.end):
                return Pipeline(tuple(parts))
            self.at += 2 if self.text.startswith("|&", self.at, self.end) else 1
            self.blanks(lines=True)
            parts.append(self.command())

    # commands

    def command(self) -> Command:
        self.commands += 1
        if self.commands > MAX_COMMANDS:
            raise self.refuse(f"more than {MAX_COMMANDS} commands")
        start, token = self.at, self.token()
        if token in REFUSED_KEYWORDS:
            raise self.refuse(f"{token} is not read", len(token))
        reader = COMPOUNDS.get(token)
        if self.text.startswith("(", self.at, self.end):
            reader = Parser.subshell
        if reader is None:
            if token in KEYWORDS or not (token or self.text[self.at : self.at + 1] in ("<", ">", "&")):
                raise self.refuse(f"{token or self.text[self.at : self.at + 1]!r} where a command should begin")
            return self.simple()
        if self.text.startswith("((", self.at, self.end):
            raise self.refuse("an arithmetic command", 2)
        if self.text[self.at] != "(":
            self.at += len(token)
        compound = reader(self, start)
        if isinstance(compound, Simple):
            return compound
        redirections, extra = self.redirections()
        if extra:
            raise self.refuse("a word after a compound command")
        return Compound(
            compound.kind,
            compound.scripts,
            compound.start,
            self.byte(self.at),
            compound.words,
            compound.name,
            redirections,
        )

    def compound(
        self, kind: str, start: int, *scripts: Script, words: tuple[Word, ...] = (), name: str = ""
    ) -> Compound:
        return Compound(kind, scripts, self.byte(start), self.byte(self.at), words, name)

    def subshell(self, start: int) -> Compound:
        self.at += 1
        script = self.filled((")",))
        self.close(")")
        return self.compound("subshell", start, script)

    def close(self, char: str) -> None:
        if not self.text.startswith(char, self.at, self.end):
            raise self.refuse(f"{char!r} expected")
        self.at += len(char)

    def group(self, start: int) -> Compound:
        script = self.filled(("}",))
        self.expect("}")
        return self.compound("group", start, script)

    def conditional(self, start: int) -> Compound:
        scripts = [self.filled(("then",))]
        self.expect("then")
        scripts.append(self.filled(("elif", "else", "fi")))
        while self.token() == "elif":
            self.at += 4
            scripts.append(self.filled(("then",)))
            self.expect("then")
            scripts.append(self.filled(("elif", "else", "fi")))
        if self.token() == "else":
            self.at += 4
            scripts.append(self.filled(("fi",)))
        self.expect("fi")
        return self.compound("if", start, *scripts)

    def loop(self, start: int) -> Compound:
        head = self.filled(("do",))
        self.expect("do")
        body = self.filled(("done",))
        self.expect("done")
        return self.compound("while", start, head, body)

    def for_loop(self, start: int) -> Compound:
        self.blanks()
        found = NAME.match(self.text, self.at, self.end)
        if not found:
            raise self.refuse("a for loop without a name")
        self.at = found.end()
        self.blanks()
        if self.token() != "in":
            raise self.refuse("a for loop without 'in'")
        self.at += 2
        words = self.plain_words()
        if not self.text.startswith((";", "\n"), self.at, self.end):
            raise self.refuse("';' expected")
        self.at += 1
        self.expect("do")
        body = self.filled(("done",))
        self.expect("done")
        return self.compound("for", start, body, words=words, name=found.group())

    def plain_words(self) -> tuple[Word, ...]:
        words: list[Word] = []
        while True:
            self.blanks()
            if self.at >= self.end or (
                self.text[self.at] in META and not self.text.startswith("<(", self.at, self.end)
            ):
                return tuple(words)
            words.append(self.word())

    def case(self, start: int) -> Compound:
        self.blanks()
        words = [self.word()]
        self.expect("in")
        scripts: list[Script] = []
        while True:
            self.blanks(lines=True)
            if self.token() == "esac":
                self.at += 4
                return self.compound("case", start, *scripts, words=tuple(words))
            if self.text.startswith("(", self.at, self.end):
                self.at += 1
            while True:
                self.blanks()
                words.append(self.word())
                self.blanks()
                if not self.text.startswith("|", self.at, self.end):
                    break
                self.at += 1
            self.close(")")
            scripts.append(self.script((";;", "esac")))
            if self.text.startswith(";;&", self.at, self.end):
                raise self.refuse("';;&' is not read", 3)
            if self.text.startswith(";;", self.at, self.end):
                self.at += 2

    def function(self, start: int) -> Compound:
        self.blanks()
        name = self.token()
        self.at += len(name)
        return self.function_body(start, name)

    def function_body(self, start: int, name: str) -> Compound:
        self.blanks()
        if self.text.startswith("(", self.at, self.end):
            self.at += 1
            self.blanks()
            self.close(")")
        self.blanks(lines=True)
        if not NAME.fullmatch(name):
            raise self.refuse(f"{name!r} as the name of a function")
        body = Script(((Pipeline((self.command(),)), ";"),))
        return self.compound("function", start, body, name=name)

    def double_bracket(self, start: int) -> Simple:
        """`[[ ... ]]` as a simple command named `[[`; what follows `]]` is read as redirections."""
        words = [Word((Piece(Kind.LITERAL, "[["),), self.byte(start), self.byte(start + 2))]
        while True:
            self.blanks(lines=True)
            begin = self.at
            if self.at >= self.end:
                raise self.refuse("'[[' that is not closed")
            if (token := self.token()) == "]]":
                self.at += 2
                break
            if token in REFUSED_TESTS:
                raise self.refuse(f"{token} in [[ ]]", len(token), "test")
            mark = next((m for m in ("&&", "||", "(", ")", "<", ">") if self.text.startswith(m, self.at, self.end)), "")
            if mark:
                self.at += len(mark)
                words.append(Word((Piece(Kind.LITERAL, mark),), self.byte(begin), self.byte(self.at)))
            else:
                words.append(self.word())
        self.name_starts.add(self.byte(start))
        redirections, extra = self.redirections()
        if extra:
            raise self.refuse("a word after ]]")
        return Simple((), tuple(words), redirections, self.byte(start), self.byte(self.at))

    def word(self) -> Word:
        if self.at >= self.end:
            raise self.refuse("a word expected")
        word, after = self.words.word(self.at, self.end)
        if after == self.at:
            raise self.refuse("a word expected")
        self.at = after
        return word

    def simple(self) -> Command:
        start = self.at
        assigns: list[tuple[str, Word]] = []
        words: list[Word] = []
        redirections: list[Redirection] = []
        while True:
            self.blanks()
            if self.at >= self.end:
                break
            if self.redirection(redirections):
                continue
            if self.text[self.at] in META and not self.text.startswith(("<(", ">("), self.at, self.end):
                break
            assign = ASSIGN.match(self.text, self.at, self.end) if not words else None
            if assign:
                assigns.append(self.assignment(assign))
                continue
            if not words:
                self.name_starts.add(self.byte(self.at))
            words.append(self.word())
            if self.text.startswith("(", self.at, self.end) or self.call_opens():
                if len(words) == 1 and not assigns and not redirections and self.call_opens():
                    self.name_starts.discard(self.byte(start))
                    return self.function_body(start, words[0].literal or "")
                raise self.refuse("'(' inside or after a word")
        if not (assigns or words or redirections):
            raise self.refuse("a command expected")
        return Simple(tuple(assigns), tuple(words), tuple(redirections), self.byte(start), self.byte(self.at))

    def call_opens(self) -> bool:
        return re.compile(r"[ \t]*\(").match(self.text, self.at, self.end) is not None

    def assignment(self, found: re.Match[str]) -> tuple[str, Word]:
        name, operator = found.groups()
        if operator != "=":
            raise self.refuse("'+=' is not read", len(found.group()), "assignment")
        self.at = found.end()
        if self.text.startswith("(", self.at, self.end):
            raise self.refuse("an array", 1, "assignment")
        if self.at >= self.end or self.text[self.at] in META:
            return name, Word((), self.byte(self.at), self.byte(self.at))
        return name, self.word()

    # redirections and here-documents

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
        if self.heredocs:
            raise self.refuse("two here-documents on one line", 1, "here-document")
        if any(piece.kind is not Kind.LITERAL for piece in delimiter.pieces) or not delimiter.literal:
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
            pieces.append(Piece(Kind.LITERAL, self.text[start:at], quoted=True))
        else:
            self.words.double(start, at, pieces, heredoc=True)
        self.bodies[key] = Word(tuple(pieces), self.byte(start), self.byte(at))
        self.at = min(close + 1, self.end)

    def no_heredocs(self) -> None:
        if self.heredocs:
            raise self.refuse("a here-document without a body", 1, "here-document")

    # substitutions

    def substitution(self, at: int, closer: str) -> tuple[Script, int]:
        """The script from `at` to `closer`, read in place, and the offset behind the closer."""
        kept, end, heredocs = self.at, self.end, self.heredocs
        self.at, self.heredocs = at, []
        if closer == "`":
            self.end = self.text.index("`", at)
            script = self.script(())
        else:
            script = self.script((")",))
        self.no_heredocs()
        if closer == ")":
            self.close(")")
        elif self.at != self.end:
            raise self.refuse("backticks that cannot be read", 1, "substitution")
        after = self.at
        self.at, self.end, self.heredocs = kept, end, heredocs
        return script, after


COMPOUNDS: dict[str, Callable[[Parser, int], Compound | Simple]] = {
    "{": Parser.group,
    "if": Parser.conditional,
    "while": Parser.loop,
    "until": Parser.loop,
    "for": Parser.for_loop,
    "case": Parser.case,
    "function": Parser.function,
    "[[": Parser.double_bracket,
}


def offsets(text: str) -> Callable[[int], int]:
    """From offsets in the text to offsets in its UTF-8."""
    if text.isascii():
        return int
    table = [0]
    for char in text:
        table.append(table[-1] + len(char.encode()))
    return table.__getitem__
