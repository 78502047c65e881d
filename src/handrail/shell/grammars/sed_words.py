"""
Words of sed (GNU sed 4.9, sed(1); FreeBSD and macOS sed(1)): options, then the program unless -e gave it, then files.

GNU takes options behind operands too, BSD does not, and with -e or without it another word is the program: so
an option behind an operand is refused. So is -l, which takes a number on GNU and nothing on BSD.
"""

from handrail.errors import UnclearError
from handrail.shell.grammars import sed
from handrail.shell.model import Does, Effect, Word

LETTERS = frozenset("nErsuz")
FLAGS = frozenset(
    "--quiet --silent --debug --regexp-extended --separate --sandbox --unbuffered --null-data --zero-terminated".split()
)
SHOWN = frozenset(("--help", "--version"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in SHOWN:
        return ()
    return Reading(list(words)).run()


class Reading:
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
        self.effects += sed.read(text)

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
