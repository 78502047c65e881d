"""Programs of sed, and the words around them."""

import re
from contextlib import suppress

from handrail.errors import UnclearError
from handrail.shell.model import CommandVerdict, Does, Effect, Word, literal_word

# Programs of sed (GNU sed 4.9, sed(1) and its info manual; FreeBSD and POSIX sed where they differ).
#
# `w`, `W` and the flag `w` write a file, `e` and the flag `e` run a command, `r` and `R` read a file. Commands,
# addresses and flags outside the closed lists raise UnclearError.
#
# Whether a delimiter inside `[...]` ends an expression differs between seds, so a program is read both ways, and the
# reading without brackets must be as harmless or an error that every sed reports before it runs anything.

BLANKS = re.compile(r"[ \t]*")
BETWEEN = re.compile(r"(?:[ \t\n;]|#[^\n]*)*")
NUMBER = re.compile(r"[0-9]+(?:~[0-9]+)?|\$")
SECOND = re.compile(r"[+~][0-9]+")
# Not before a `#`, which some seds take as a part of the label.
LABEL = re.compile(r"[ \t]*([A-Za-z0-9_.-]*)[ \t]*(?=[;\n}]|\Z)")
END = re.compile(r"[ \t]*(?=[;\n}#]|\Z)")
COUNT = re.compile(r"[ \t]*[0-9]*")
# Bracket expressions that every sed reads alike. The first kind may hold the delimiter, if both readings are harmless.
SIMPLE_BRACKET = re.compile(r"\[\^?+[^][\\\n]++\]")
BRACKET = re.compile(r"\[\^?+\]?+(?:\[:[a-z]++:\]|\\[^][\n]|[^][\\\n])*+\]")
# Text of a, i, c: to the end of the line, with backslash pairs. It must not begin with two backslashes, of which seds
# differ in taking the first for the one behind the command.
TEXT = re.compile(r"(?:[ \t]*\\[ \t]*\n|[ \t]*\\(?![\\\n])|[ \t]*)(?!\\[\\\n])(?:[^\\\n]|\\.)++(?=\n|\Z)", re.DOTALL)
FILE = re.compile(r"[ \t]*([^\n]+)(?=\n|\Z)")
PLAIN = frozenset("=dDFgGhHlnNpPqQxz}")
LABELLED = frozenset("btT:")
# Characters that no sed takes for a command, and those that some sed takes behind s/.../.../.
NO_COMMAND = frozenset("]/.,*^$+?|&\"'<>()")
MAYBE_FLAG = frozenset("gpiImMewsSxX \t\n;}#")
FLAG = re.compile(r"[gpiImM]|[0-9]+")
STREAMS = frozenset(("/dev/stdout", "/dev/stderr"))
MAX_COMMANDS = 200


class _BrokenError(UnclearError):
    """What every sed refuses when it reads the program."""


def sed_program(text: str) -> tuple[Effect, ...]:
    effects = SedReader(text, brackets=True).run()
    if any(effect.verdict is not CommandVerdict.READ_ONLY for effect in effects):
        return effects
    other = SedReader(text, brackets=False)
    with suppress(_BrokenError):
        other.run()
    if any(effect.verdict is not CommandVerdict.READ_ONLY for effect in other.effects):
        raise UnclearError("a delimiter inside brackets, which some seds end the expression at")
    return effects


class SedReader:
    """One pass over a program."""

    def __init__(self, text: str, *, brackets: bool) -> None:
        self.text, self.brackets, self.at = text, brackets, 0
        self.effects: list[Effect] = []

    def run(self) -> tuple[Effect, ...]:
        for _ in range(MAX_COMMANDS):
            self.skip(BETWEEN)
            if self.at >= len(self.text):
                return tuple(self.effects)
            if self.peek() != "}":
                self.addresses()
            self.command()
        raise UnclearError(f"more than {MAX_COMMANDS} commands")

    def peek(self) -> str:
        return self.text[self.at : self.at + 1]

    def skip(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        found = pattern.match(self.text, self.at)
        if found:
            self.at = found.end()
        return found

    def refuse(self, what: str) -> UnclearError:
        return UnclearError(f"{what} at character {self.at + 1}")

    # addresses

    def addresses(self) -> None:
        if self.address():
            self.skip(BLANKS)
            if self.peek() == ",":
                self.at += 1
                self.skip(BLANKS)
                if not self.skip(SECOND) and not self.address():
                    raise self.refuse("no second address")
        self.skip(BLANKS)
        while self.peek() == "!":
            self.at += 1
            self.skip(BLANKS)

    def address(self) -> bool:
        if self.skip(NUMBER):
            return True
        if self.peek() == "\\":
            self.at += 1
        elif self.peek() != "/":
            return False
        self.skip_delimited(self.delimiter(), regex=True)
        while self.peek() in ("I", "M"):
            self.at += 1
        return True

    def delimiter(self) -> str:
        char = self.peek()
        if not char or not char.isascii() or char in "\\\n [] ;" or char.isalnum():
            raise self.refuse("an odd delimiter")
        self.at += 1
        return char

    def skip_delimited(self, delimiter: str, *, regex: bool) -> None:
        """Up to the delimiter and past it."""
        while self.at < len(self.text):
            char = self.peek()
            if char == "\\":
                if self.text[self.at + 1 : self.at + 2] in ("", *(("\n",) if regex else ())):
                    raise self.refuse("a backslash at the end")
                self.at += 2
                continue
            if char == delimiter:
                self.at += 1
                return
            if char == "\n":
                raise self.refuse("an expression that is not closed")
            if char == "[" and regex and self.brackets:
                self.bracket(delimiter)
            else:
                self.at += 1
        raise self.refuse("an expression that is not closed")

    def bracket(self, delimiter: str) -> None:
        if self.skip(SIMPLE_BRACKET):
            return
        found = self.skip(BRACKET)
        if not found or delimiter in found.group().replace(f"\\{delimiter}", ""):
            raise self.refuse("brackets of a form that is not read")

    # commands

    def command(self) -> None:
        char = self.peek()
        self.at += 1
        if char in PLAIN:
            self.skip(COUNT)  # an error behind most of them
            self.ends()
        elif char in LABELLED:
            self.expect(LABEL, "an odd label")
        elif char in ("a", "i", "c"):
            self.expect(TEXT, "text of a form that is not read")
        elif char in ("r", "R", "w", "W"):
            self.file(char)
        elif char == "s":
            self.substitute()
        elif char == "y":
            self.pair(regex=False)
            self.ends()
        elif char == "e":
            self.starts("the command e runs a program")
        elif char in NO_COMMAND:
            raise _BrokenError(f"no such command: {char!r}")
        elif char != "{":
            raise self.refuse(f"the command {char!r}")

    def expect(self, pattern: re.Pattern[str], otherwise: str) -> None:
        if not self.skip(pattern):
            raise self.refuse(otherwise)

    def starts(self, why: str) -> None:
        """Nothing behind it is looked at: the program is refused anyway."""
        self.effects.append(Effect(Does.STARTS, None, why))
        self.at = len(self.text)

    def pair(self, *, regex: bool) -> None:
        delimiter = self.delimiter()
        self.skip_delimited(delimiter, regex=regex)
        self.skip_delimited(delimiter, regex=False)

    def ends(self) -> None:
        self.expect(END, "more text behind a command")

    def file(self, command: str) -> None:
        found = self.skip(FILE)
        if not found:
            raise self.refuse(f"{command} without a file")
        name = found[1]
        if command in ("r", "R"):
            self.effects.append(Effect(Does.READS, literal_word(name), f"{command} reads this file"))
        elif name not in STREAMS:
            self.effects.append(Effect(Does.WRITES, literal_word(name), f"{command} writes this file"))

    def substitute(self) -> None:
        self.pair(regex=True)
        while self.skip(FLAG):
            pass
        char = self.peek()
        if char == "w":
            self.at += 1
            self.file("w")
        elif char == "e":
            self.starts("the flag e runs the result as a command")
        elif not self.skip(END):
            known = char in MAYBE_FLAG
            raise self.refuse(f"the flag {char!r}") if known else _BrokenError(f"no such flag: {char!r}")


# Words of sed (GNU sed 4.9, sed(1); FreeBSD and macOS sed(1)): options, then the program unless -e gave it, then files.
#
# GNU takes options behind operands too, BSD does not, and with -e or without it another word is the program: so
# an option behind an operand is refused. So is -l, which takes a number on GNU and nothing on BSD.

LETTERS = frozenset("nErsuz")
FLAGS = frozenset(
    "--quiet --silent --debug --regexp-extended --separate --sandbox --unbuffered --null-data --zero-terminated".split()
)
SHOWN = frozenset(("--help", "--version"))


def sed_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in SHOWN:
        return ()
    return SedWords(list(words)).run()


class SedWords:
    """One pass over the words."""

    def __init__(self, left: list[Word]) -> None:
        self.left = left
        self.effects: list[Effect] = []
        self.in_place = self.has_program = False

    def run(self) -> tuple[Effect, ...]:
        while self.left and self.left[0].may_be_option and self.left[0].literal != "-":
            word = self.left.pop(0)
            if word.literal == "--":
                break
            self.option(word)
        if self.in_place:
            return (*self.effects, *(Effect(Does.WRITES, word, "edited in place") for word in self.left))
        if not self.has_program:
            self.program(self.next("a program"))
        for word in self.left:
            if word.may_be_option and word.literal != "-":
                raise UnclearError(f"{word} behind an operand may be an option", word.start, word.end, "sed")
            self.effects.append(Effect(Does.READS, word, "reads this"))
        return tuple(self.effects)

    def next(self, what: str) -> Word:
        if not self.left:
            raise UnclearError(f"sed needs {what}", node="sed")
        return self.left.pop(0)

    def program(self, word: Word) -> None:
        self.has_program = True
        text = word.literal
        if text is None:
            raise UnclearError(f"the program {word} is not literal", word.start, word.end, "sed")
        self.effects += sed_program(text)

    def option(self, word: Word) -> None:
        text = word.literal
        if text is None:
            raise UnclearError(f"{word} could become an option", word.start, word.end, "sed")
        name, equals, _ = text.partition("=")
        if text in FLAGS or (name == "--line-length" and equals):
            return
        if name == "--expression":
            self.program(word.cut(len(name) + 1) if equals else self.next("a program"))
        elif name == "--file":
            self.script(word.cut(len(name) + 1) if equals else self.next("a file"))
        elif name == "--in-place":
            self.in_place = True
        elif text.startswith("--"):
            raise UnclearError(f"option {name!r} of sed is not listed", word.start, word.end, "sed")
        else:
            self.cluster(word, text)

    def cluster(self, word: Word, text: str) -> None:
        for at, letter in enumerate(text[1:], 1):
            rest = word.cut(at + 1) if text[at + 1 :] else None
            if letter == "e":
                return self.program(rest or self.next("a program"))
            if letter == "f":
                return self.script(rest or self.next("a file"))
            if letter in ("i", "I"):
                self.in_place = True
                return None
            if letter not in LETTERS:
                raise UnclearError(f"option '-{letter}' of sed is not listed", word.start, word.end, "sed")
        return None

    def script(self, word: Word) -> None:
        self.has_program = True
        self.effects.append(Effect(Does.STARTS, word, "runs the program in this file"))
