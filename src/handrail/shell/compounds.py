"""Compound commands: groups, loops, conditions, cases and functions, each by its own production."""

from handrail.shell.model import Piece, PieceKind, Word
from handrail.shell.redirections import Redirections
from handrail.shell.syntax import Command, CommandPipeline, Compound, Script, Simple
from handrail.shell.words import META, NAME

# In `[[ ]]`: an arithmetic comparison evaluates what its operands hold, -v and -R look at subscripts.
REFUSED_TESTS = frozenset(("=~", "-v", "-R", "-eq", "-ne", "-lt", "-le", "-gt", "-ge"))


class Compounds(Redirections):
    """Reads what begins with a keyword; scripts and commands inside are read by the parser itself."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.name_starts: set[int] = set()  # byte offsets of command names, for the second opinion

    def script(self, closers: tuple[str, ...]) -> Script:
        raise NotImplementedError

    def command(self) -> Command:
        raise NotImplementedError

    def body(self, closers: tuple[str, ...]) -> Script:
        script = self.script(closers)
        if not script.items:
            raise self.refuse("an empty body")
        return script

    def compound(
        self, kind: str, start: int, *scripts: Script, words: tuple[Word, ...] = (), name: str = ""
    ) -> Compound:
        return Compound(kind, scripts, self.byte(start), self.byte(self.at), words, name)

    def subshell(self, start: int) -> Compound:
        self.at += 1
        script = self.body((")",))
        self.close(")")
        return self.compound("subshell", start, script)

    def group(self, start: int) -> Compound:
        script = self.body(("}",))
        self.expect("}")
        return self.compound("group", start, script)

    def conditional(self, start: int) -> Compound:
        scripts: list[Script] = []
        while not scripts or self.token() == "elif":
            self.at += 4 if scripts else 0
            scripts.append(self.body(("then",)))
            self.expect("then")
            scripts.append(self.body(("elif", "else", "fi")))
        if self.token() == "else":
            self.at += 4
            scripts.append(self.body(("fi",)))
        self.expect("fi")
        return self.compound("if", start, *scripts)

    def loop(self, start: int) -> Compound:
        head = self.body(("do",))
        self.expect("do")
        body = self.body(("done",))
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
        body = self.body(("done",))
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
        body = Script(((CommandPipeline((self.command(),)), ";"),))
        return self.compound("function", start, body, name=name)

    def double_bracket(self, start: int) -> Simple:
        """`[[ ... ]]` as a simple command named `[[`; what follows `]]` is read as redirections."""
        words = [Word((Piece(PieceKind.LITERAL, "[["),), self.byte(start), self.byte(start + 2))]
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
                words.append(Word((Piece(PieceKind.LITERAL, mark),), self.byte(begin), self.byte(self.at)))
            else:
                words.append(self.word())
        self.name_starts.add(self.byte(start))
        redirections, extra = self.redirections()
        if extra:
            raise self.refuse("a word after ]]")
        return Simple((), tuple(words), redirections, self.byte(start), self.byte(self.at))
