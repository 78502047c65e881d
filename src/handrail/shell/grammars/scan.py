"""
A scanner for programs whose options getopt cannot read: whole words (`-version`), clusters whose values all follow
(`tree -aL 2`), values that only some words carry. What a `OptionSpec` does not list is refused.
"""

import re
from collections.abc import Mapping
from types import MappingProxyType

from handrail.errors import UnclearError
from handrail.named_tuples import NamedTuple
from handrail.shell.model import Does, Effect, Word

Values = Mapping[str, Does | None]  # None: the value is only text


class OptionSpec(NamedTuple):
    letters: str = ""  # may stand together behind one dash; the last of a cluster may be one that takes a value
    flags: frozenset[str] = frozenset()  # whole words
    values: Values = MappingProxyType({})  # whole words that take the next word; long ones also take `=value`
    attached: re.Pattern[str] = re.compile(r"(?!)")  # whole words that carry their own value
    options_first: bool = False


class ScannedWords(NamedTuple):
    operands: tuple[Word, ...]
    effects: tuple[Effect, ...]
    seen: frozenset[str]


def scan(spec: OptionSpec, words: tuple[Word, ...]) -> ScannedWords:
    """Operands, effects of values, and the options given. Raises UnclearError for what is not listed."""
    scanner = OptionScanner(spec, words)
    scanner.run()
    return ScannedWords(tuple(scanner.operands), tuple(scanner.effects), frozenset(scanner.seen))


class OptionScanner:
    def __init__(self, spec: OptionSpec, words: tuple[Word, ...]) -> None:
        self.spec, self.left = spec, list(words)
        self.operands: list[Word] = []
        self.effects: list[Effect] = []
        self.seen: set[str] = set()

    def run(self) -> None:
        while self.left:
            word = self.left.pop(0)
            text = word.literal
            operand = text == "-" or not word.may_be_option
            if text == "--" or (operand and self.spec.options_first):
                self.operands += self.left if text == "--" else [word, *self.left]
                return
            if operand:
                self.operands.append(word)
            elif text is None:
                raise UnclearError(f"{word} could become an option", word.start, word.end)
            else:
                self.option(text, word)

    def option(self, text: str, word: Word) -> None:
        spec = self.spec
        name, equals, _ = text.partition("=")
        if text in spec.flags or spec.attached.fullmatch(text):
            self.seen.add(name)
        elif text in spec.values:
            self.value(text, self.left.pop(0) if self.left else None)
        elif equals and name.startswith("--") and name in spec.values:
            self.value(name, word.cut(len(name) + 1))
        elif cluster(spec, text):
            self.seen.update(f"-{letter}" for letter in text[1:])
            if text[-1] not in spec.letters:
                self.value(f"-{text[-1]}", self.left.pop(0) if self.left else None)
        else:
            raise UnclearError(f"option {text!r} is not listed", word.start, word.end)

    def value(self, name: str, word: Word | None) -> None:
        if word is None or not word.single:
            raise UnclearError(f"{name} needs one value")
        self.seen.add(name)
        does = self.spec.values[name]
        if does is not None:
            self.effects.append(Effect(does, word, f"the value of {name}"))


def cluster(spec: OptionSpec, text: str) -> bool:
    body = text[1:]
    last = body[-1:] in spec.letters or f"-{body[-1:]}" in spec.values
    return bool(body) and set(body[:-1]) <= set(spec.letters) and last
