"""Command lines made by a grammar: everything the parser reads, in every spelling, from names that no program has."""

from collections.abc import Callable, Sequence
from random import Random

CHARS = "ab1 _.-/=:,@%+^~#!*?[]{}()<>|&;$`\\'\"éß\t"
MAX_DEPTH = 2
JOINERS = [";", " && ", " || ", "&&\n", "\n", "& "]
PLAIN_JOINERS = ["; ", ";", " & ", "\n", " && ", "&&"]
SAFE = "ab1_.-/=:,@%+^"


class Generator:
    """`line()` gives one line. `plain` leaves out whatever may or may not run, so that every command surely does."""

    def __init__(self, seed: int, *, plain: bool = False, names: Sequence[str] = ()) -> None:
        self.random, self.plain, self.names = Random(seed), plain, names
        self.count = self.depth = 0
        self.heredocs: list[str] = []

    def line(self) -> str:
        self.heredocs, self.depth = [], 0
        text = self.script()
        if self.chance(0.2):
            text += self.pick([" # it's a $(comment", "\t#`", " #'", ";", " ;", "\n"])
        return self.end_line(text)

    def end_line(self, text: str) -> str:
        """The bodies of here-documents follow the line they are named on."""
        bodies, self.heredocs = self.heredocs, []
        return text + "".join(f"\n{body}" for body in bodies)

    def chance(self, share: float) -> bool:
        return self.random.random() < share

    def pick(self, options: list[str]) -> str:
        return self.random.choice(options)

    def some(self, make: Callable[[], str], most: int, joiner: str = " ") -> str:
        return joiner.join(make() for _ in range(self.random.randint(1, most)))

    # words

    def text(self, chars: str = CHARS, most: int = 6) -> str:
        return "".join(self.random.choice(chars) for _ in range(self.random.randint(0, most)))

    def word(self) -> str:
        return "".join(self.part() for _ in range(self.random.randint(1, 3)))

    def part(self) -> str:
        kind = self.random.randrange(10 if self.plain else 15)
        if kind < 3:
            return self.random.choice(SAFE) + self.text(SAFE)
        if kind == 3:
            return "'" + self.text().replace("'", "") + "'"
        if kind == 4:
            return '"' + self.in_double_quotes() + '"'
        if kind == 5:
            return "$'" + self.in_ansi_quotes() + "'"
        if kind == 6:
            return "\\" + self.random.choice(CHARS)
        if kind == 7:
            return self.pick(["{}", "a#b", "x=~", "{a", "b}", "!", "HEAD@{1}", "%~", "~a", "a~", "[", "]", "^"])
        if kind == 8:
            return "''" if self.chance(0.5) else '""'
        if kind == 9:
            return self.pick(["\\\n", '"a\\\nb"']) if self.chance(0.05) else "b"
        return self.expansion()

    def in_double_quotes(self) -> str:
        text = self.text()
        for char in '\\$`"':
            text = text.replace(char, "\\" + char if self.chance(0.9) or char != "\\" else "")
        return text.replace("!", "") + (self.expansion(quoted=True) if not self.plain and self.chance(0.3) else "")

    def in_ansi_quotes(self) -> str:
        plain = self.text().replace("\\", "").replace("'", "")
        return plain + self.pick(["", "\\n", "\\t", "\\'", "\\\\", "\\x41", "\\101", "\\u00e9", '\\"', "\\e"])

    def expansion(self, *, quoted: bool = False) -> str:
        kind = self.random.randrange(10)
        if kind < 2:
            return "$(" + self.inner() + ")"
        if kind == 2:
            return "`" + self.simple_words() + "`"
        if kind == 3:
            return self.pick(["$HOME", "${HOME}", "$?", "$#", "${#HOME}", "${HOME%/*}", "${HOME:-a b}", "${HOME##*/}"])
        if kind == 4:
            return "$((1 + 2))"
        if quoted:
            return "$v"
        return self.pick(["*", "?", "[ab]", "{a,b}", "{1..3}", "~", "$v", "*.c", "{a,b{c,d}}", "~/x", "{a,'b c'}"])

    # commands

    def name(self) -> str:
        """A name no program has, and those in f fail; or one of `names`, as it is."""
        self.count += 1
        if self.names:
            return self.random.choice(self.names)
        name = f"{'t' if self.plain or self.chance(0.7) else 'f'}{self.count}"
        return self.pick(
            [name, name, name, f"'{name}'", f"\\{name}", f'{name[0]}"{name[1:]}"', f"{name[0]}''{name[1:]}"]
        )

    def simple_words(self) -> str:
        return f"{self.name()} {self.pick(['a', '-b', '--c=d', '', 'x y'])}"

    def inner(self) -> str:
        """A script inside something; its here-documents end inside too."""
        if self.depth >= MAX_DEPTH:
            return self.simple_words()
        kept, self.heredocs = self.heredocs, []
        self.depth += 1
        text = self.end_line(self.script())
        self.depth -= 1
        closed = "\n" if "\n" in text else ""
        self.heredocs = kept
        return text + closed

    def simple(self) -> str:
        words = [self.name()] + [self.word() for _ in range(self.random.randint(0, 3))]
        for _ in range(self.random.choice([0, 0, 0, 1])):
            words.insert(self.random.randint(0, len(words)), self.redirection())
        if not self.plain and self.chance(0.1):
            words.insert(0, f"v={self.word()}")
        return (" \\\n " if self.chance(0.02) else self.pick([" ", " ", "  ", "\t"])).join(words)

    def redirection(self) -> str:
        kind = self.random.randrange(7)
        if kind < 3:
            free = [">/dev/null", "2>&1", "2> /dev/null", "</dev/null", "&>/dev/null", ">&2", ">>/dev/null"]
            return self.pick(free if self.plain else [*free, "2>&-"])  # a copy of what is closed fails
        if kind == 3:
            return f"<<<{self.pick([' ', ''])}{self.word()}"
        if kind == 4 and not self.heredocs:
            mark = f"E{self.count}"
            quoted = self.chance(0.5)
            body = "$(not run) `x`\n" if quoted else "plain \\$ text\n"
            if not quoted and not self.plain:
                body += f"$({self.simple_words()})\n"
            self.heredocs.append(body + mark)
            return f"<<'{mark}'" if quoted else f"<<{mark}"
        if kind == 5 and not self.plain:
            return f"<({self.inner()})"
        return "2>/dev/null"

    def pipeline(self) -> str:
        parts = self.some(
            self.command,
            self.random.choice([1, 1, 2]),
            self.pick([" | ", "|", " |\n", " |& "]) if not self.heredocs else " | ",
        )
        if self.heredocs and "\n" in parts:
            self.heredocs = []
            return self.simple_words()
        # What `time` prints ends the shell when no process reads it.
        return self.pick(["", "", "", "! "] if self.plain else ["", "", "", "! ", "time ", "time -p "]) + parts

    def script(self) -> str:
        text = self.pipeline()
        for _ in range(self.random.choice([0, 0, 0, 1])):
            joiner = self.pick(PLAIN_JOINERS if self.plain else JOINERS)
            if self.plain and "!" in text:
                joiner = joiner.replace("&&", ";")
            if self.heredocs:
                text, joiner = self.end_line(text), "\n"
            following = self.pipeline()
            text += joiner + (" " if following.startswith("&") else "") + following  # `;&` is another token
        return text

    def command(self) -> str:
        if self.chance(0.8):
            return self.simple()
        inner = self.inner()
        end = "" if inner.endswith("\n") else ";"
        if inner.rstrip().endswith("&"):
            end = ""
        makers = [f"( {inner} )", f"({inner})", f"{{ {inner}{end} }}", f"for v in a 'b c'; do {inner}{end} done"]
        if not self.plain:
            makers += [
                f"if {self.simple_words()}; then {inner}{end} else {self.simple_words()}; fi",
                f"while f1; do {inner}{end} done",
                f"until t1\ndo {inner}{end} done",
                f"case {self.word()} in a|'b') {inner} ;; (*) {self.simple_words()};; esac",
                f"if t2 && {self.simple_words()}\nthen {inner}{end} elif f; then t; fi",
                f"[[ -n {self.word()} && a == b* ]]",
                f"[ -f {self.pick(['a', '/dev/null'])} ]",
            ]
        made = self.pick(makers)
        return made + self.pick(["", "", " >/dev/null", " 2>&1"])
