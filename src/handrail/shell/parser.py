"""
The parser: a command line to scripts, pipelines and commands, by recursive descent over bash's grammar.

    Cursor <- Redirections <- Compounds <- Parser

It reads a closed part of the language. Functions are read but never trusted; arrays of other than plain words,
arithmetic commands, `select`, `coproc`, extended globs and `=~` are refused.
"""

from collections.abc import Callable

from handrail.lazy import lazy_pattern
from handrail.shell.compounds import Compounds
from handrail.shell.model import Redirection, Word
from handrail.shell.syntax import Command, CommandPipeline, Compound, Script, Simple
from handrail.shell.words import META

MAX_DEPTH = 30
MAX_COMMANDS = 200
ASSIGN = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)(\+?=)")
CALL = lazy_pattern(r"[ \t]*\(")
KEYWORDS = frozenset("if then elif else fi for while until do done case esac { } [[ ! time in".split())
REFUSED_KEYWORDS = frozenset(("select", "coproc"))
SEPARATORS = ("&&", "||", ";;", ";", "&", "\n")


class Parser(Compounds):
    """Parses one text; offsets of what it finds are bytes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.depth = self.commands = 0

    def parse(self) -> Script:
        script = self.script(())
        if self.at < self.end:
            raise self.refuse(f"{self.text[self.at]!r} where a command should begin")
        self.no_heredocs()
        return script

    # scripts and pipelines

    def script(self, closers: tuple[str, ...]) -> Script:
        """Pipelines up to (not including) a closing keyword or character."""
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise self.refuse(f"nested deeper than {MAX_DEPTH}")
        items: list[tuple[CommandPipeline, str]] = []
        while True:
            self.blanks(lines=True)
            if self.at >= self.end or self.closes(closers):
                break
            pipeline = self.pipeline()
            self.blanks()
            operator = self.operator() if self.at < self.end else ""
            if self.text.startswith(";&", self.at, self.end):  # one token, which only `case` knows
                raise self.refuse("';&' is not read", 2)
            if operator and operator != ";;":
                self.at += len(operator)
                if operator == "\n":
                    self.line_ends()
            elif self.at < self.end and not self.closes(closers):
                raise self.refuse(f"{self.text[self.at]!r} after a command")
            items.append((pipeline, ";" if operator in ("\n", "", ";;") else operator))
            if operator in ("&&", "||"):
                self.blanks(lines=True)
                if self.at >= self.end or self.closes(closers):
                    raise self.refuse(f"nothing after {operator}")
        self.depth -= 1
        return Script(tuple(items))

    def operator(self) -> str:
        return next((op for op in SEPARATORS if self.text.startswith(op, self.at, self.end)), "")

    def closes(self, closers: tuple[str, ...]) -> bool:
        token = self.token()
        return any(token == c if c[0].isalpha() or c == "}" else self.text.startswith(c, self.at) for c in closers)

    def pipeline(self) -> CommandPipeline:
        was_timed = negated = False
        while self.token() in ("!", "time"):
            timed = self.token() == "time"
            was_timed = was_timed or timed
            negated = negated if timed else not negated
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
                return CommandPipeline(tuple(parts), negated)
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
        return compound._replace(end=self.byte(self.at), redirections=redirections)

    def simple(self) -> Command:
        start = self.at
        assigns: list[tuple[str, Word]] = []
        arrays: list[tuple[str, tuple[Word, ...]]] = []
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
            if not words and self.assignment(assigns, arrays):
                continue
            if not words:
                self.name_starts.add(self.byte(self.at))
            words.append(self.word())
            if self.text.startswith("(", self.at, self.end) or self.call_opens():
                if len(words) == 1 and not assigns and not redirections and self.call_opens():
                    self.name_starts.discard(self.byte(start))
                    return self.function_body(start, words[0].literal or "")
                raise self.refuse("'(' inside or after a word")
        if not (assigns or words or redirections or arrays) or (arrays and (words or assigns)):
            raise self.refuse("an array beside something else" if arrays else "a command expected")
        return Simple(
            tuple(assigns), tuple(words), tuple(redirections), self.byte(start), self.byte(self.at), tuple(arrays)
        )

    def call_opens(self) -> bool:
        return CALL.match(self.text, self.at, self.end) is not None

    def assignment(self, texts: list[tuple[str, Word]], arrays: list[tuple[str, tuple[Word, ...]]]) -> bool:
        """Reads `name=word` or `name=(word word)`, if one is here, and adds it to its list."""
        found = ASSIGN.match(self.text, self.at, self.end)
        if not found:
            return False
        name, operator = found.groups()
        if operator != "=":
            raise self.refuse("'+=' is not read", len(found.group()), "assignment")
        self.at = found.end()
        if self.text.startswith("(", self.at, self.end):
            arrays.append((name, self.elements()))
        elif self.at >= self.end or self.text[self.at] in META:
            texts.append((name, Word((), self.byte(self.at), self.byte(self.at))))
        else:
            texts.append((name, self.word()))
        return True

    def elements(self) -> tuple[Word, ...]:
        """The words of an array. One that begins with a bracket may be a subscript, which bash would evaluate."""
        self.at += 1
        words = self.plain_words()
        if any(word.literal is None or word.literal.startswith("[") for word in words):
            raise self.refuse("an array of other than plain words", 1, "assignment")
        self.close(")")
        if self.at < self.end and self.text[self.at] not in META:
            raise self.refuse("an array with something behind it", 1, "assignment")  # bash makes one text of both
        return words

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
