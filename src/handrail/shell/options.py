"""
Reads the options of one command as getopt_long does: clusters, attached and separate values, `--`, permutation.

There are two differences: abbreviations are refused, and so is a word of unknown text where an option could stand.
"""

from handrail.shell import tables
from handrail.shell.effects import expand_braces
from handrail.shell.model import PLAIN_NAMES, Does, Effect, Piece, PieceKind, Requirement, Word
from handrail.shell.tables.format import CARRIERS, Command, Option, Role, Use


class OptionReader:
    """Sorts the words of one command into options and operands; what becomes of values is left to `use`."""

    def __init__(self, entry: Command, name: str, names: tuple[Word, ...] = ()) -> None:
        self.entry, self.name, self.names = entry, name, names
        self.options = tables.options_of(entry)
        self.seen: dict[str, Word | None] = {}  # options given, with the last value
        self.effects: list[Effect] = []
        self.operands: list[Word] = []
        # A word that may turn out to be an option moves the role of every other word, so each counts as read.
        self.loose = False
        self.needs: list[Requirement] = []
        self.words: tuple[Word, ...] = ()
        self.moves: list[Word] = []
        self.files_named = False
        self.unsure = False  # an option that is not listed may have taken the next word for its value

    def use(self, use: Use, word: Word) -> None:
        """Adds what becomes of one word."""
        raise NotImplementedError

    def run_found(self, option: Word, words: list[Word]) -> None:
        """Adds the command that is run with the paths that are found."""
        raise NotImplementedError

    def has_option(self, options: str) -> bool:
        return options == "*" or not self.seen.keys().isdisjoint(options.split())

    def split(self, words: list[Word]) -> list[Word]:
        """Sorts words into options and operands; returns what is left for a sub-command or another command."""
        entry = self.entry
        stops = entry.options_first or bool(entry.subcommands)
        if entry.plain:
            taken = 1 if entry.subcommands else len(words)
            self.operands += words[:taken]
            return words[taken:]
        while words:
            word = written_out(words.pop(0))
            text = word.literal
            if text == "--":
                self.operands += words[:1] if entry.subcommands else words
                return words[1:]
            if text == "-" or not word.may_be_option:
                self.operands.append(word)
                if stops:
                    if not entry.subcommands:
                        self.operands += words
                    return words
            elif word.prefix.startswith("-") and len(word.prefix) > 1:
                self.option(word, words)
            elif entry.harmless_options and not self.may_name_file(word):
                self.loose = True
                self.operands.append(word)
                if self.options.can_name_files:
                    self.needs.append(PLAIN_NAMES)
            else:
                self.unclear(word, words)
        return []

    def may_name_file(self, word: Word) -> bool:
        """Whether a text that the line itself gives the word may be an option with a file: `wc {--files0-from=f,x}`."""
        texts = word_texts(word)
        if not self.options.can_name_files or texts is None:
            return False
        known = {name for name, option in self.options.by_name.items() if option.use is None}
        return any(text.startswith("-") and text not in known for text in texts)

    def unclear(self, word: Word, words: list[Word]) -> None:
        """A word that may be an option. It may as well be a file that is removed or, behind a wrapper, the command."""
        if self.entry.rest is Role.REMOVE or self.entry.moves_files:
            self.operands.append(word)
        runs = {Role.COMMAND, Role.FED_COMMAND} & {*self.entry.operands, self.entry.rest}
        child = (word, *words) if runs else ()
        self.effects.append(Effect(Does.UNLISTED, word, "a word of unknown text could become an option", child=child))

    def option(self, word: Word, words: list[Word]) -> None:
        text = word.prefix
        if text.startswith("--"):
            name, equals, _ = text.partition("=")
            if not equals and word.literal is None:
                self.refuse_unlisted(word, text)
                return
            self.apply(name, word, word.cut(len(name) + 1) if equals else None, words)
            return
        if self.entry.number and text[1:].isdecimal() and text.isascii() and word.literal:
            self.seen["-NUM"] = None
            return
        self.cluster(word, text, words)

    def cluster(self, word: Word, text: str, words: list[Word]) -> None:
        """`-abcVALUE`: letters up to the first that takes a value."""
        for at in range(1, len(text)):
            name = f"-{text[at]}"
            known = self.options.by_name.get(name)
            takes = known is not None and known.use is not None
            tail = word.cut(at + 1)
            attached = tail if tail.pieces and str(tail) != "" else None
            if takes and attached is not None and attached.may_be_empty:
                why = f"the value of {name} may be empty, and then the next word is taken for it"
                self.effects.append(Effect(Does.UNLISTED, word, why))
                return
            if takes:
                self.apply(name, word, attached, words)
                return
            if not self.apply(name, word, None, words):
                return
        if word.literal is None:
            self.refuse_unlisted(word, text)

    def apply(self, name: str, word: Word, value: Word | None, words: list[Word]) -> bool:
        """Notes one option with its value; False when it is refused."""
        option = self.options.by_name.get(name)
        if option is None:
            self.refuse_unlisted(word, name)
            return False
        self.seen[name] = value
        if name in self.entry.runs_rest.split():
            self.run_found(word, [value, *words] if value is not None else words[:])
            words.clear()
            return True
        if option.never:
            self.effects.append(Effect(Does.STATE, word, f"{name} {option.never}"))
            return value is None  # it takes no value, so the letters behind it are options too
        return self.value(option, word, value, words)

    def value(self, option: Option, word: Word, value: Word | None, words: list[Word]) -> bool:
        if option.use is None:
            if value is not None:
                self.effects.append(Effect(Does.UNLISTED, word, f"{option.name} takes no value"))
            return value is None
        if value is None and option.optional:
            return True
        if value is None and words and not option.attached:
            value = words.pop(0)
            # Where the first operand ends the options (POSIX, BSD), this is one operand more.
            if self.operands and option.use is Role.TEXT and (value.literal is None or "/" in value.literal):
                self.effects.append(Effect(Does.READS, value, "is read where options end at the first operand"))
        if value is None:
            self.effects.append(Effect(Does.UNLISTED, word, f"{option.name} needs a value"))
            return False
        moves = option.name in self.entry.moves.split()
        if moves:
            self.moves.append(value)
        if not value.single:
            # It may become several words, and the second would not be this option's value.
            self.effects.append(Effect(Does.UNLISTED, value, f"the value of {option.name} may be several words"))
            return False
        self.seen[option.name] = value
        if not moves:
            self.use(option.use, value)
        self._note_carrier(option, word)
        return True

    def _note_carrier(self, option: Option, word: Word) -> None:
        if option.use in CARRIERS:  # what else is given to that command is not known
            self.effects.append(Effect(Does.UNLISTED, word, f"{option.name} runs the text it is given"))

    def refuse_unlisted(self, word: Word, name: str) -> None:
        self.unsure = True
        self.effects.append(Effect(Does.UNLISTED, word, f"option {name!r} of {self.name} is not listed"))


def written_out(word: Word) -> Word:
    """The word with its text, where that is known although it comes from a variable."""
    text = word.literal
    return word if text is None else word._replace(pieces=(Piece(PieceKind.LITERAL, text, quoted=True),))


def word_texts(word: Word) -> tuple[str, ...] | None:
    """The texts that a word may begin with, as far as the line tells them; None if it tells none."""
    if (known := word.alternatives) is not None:
        return known
    if not any(piece.kind is PieceKind.BRACE for piece in word.pieces):
        return None
    paths = expand_braces(word)
    if None not in paths:
        return tuple(map(str, paths))
    leading, text = word.leading, str(word)
    return (leading,) if leading else (text[text.index("-") :] if "-" in text else text,)
