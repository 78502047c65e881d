"""Reads the words of one command with its table entry and says what the command does."""

from collections.abc import Mapping

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.shell import grammars, tables
from handrail.shell.listing import FED, MIXED, PLACE, SEARCHES, fd_finds_all, fill, finds_all, found_name, only_files
from handrail.shell.model import (
    PLAIN_NAMES,
    WHOLE_NAME,
    Below,
    Does,
    Effect,
    Piece,
    PieceKind,
    Requirement,
    Word,
    literal_word,
)
from handrail.shell.options import OptionReader
from handrail.shell.tables.format import CARRIERS, ROLE_EFFECT, Grammar, Role, Unless, Use

ASSIGNMENT = lazy_pattern(r"([A-Za-z_][A-Za-z0-9_]*)=")


class Judgement(NamedTuple):
    """What one command does, by which entry."""

    entry: str
    effects: tuple[Effect, ...]
    requires: tuple[Requirement, ...] = ()
    lists_paths: bool = False
    whole_names: tuple[Word, ...] = ()  # see Segment
    passes: bool = False  # prints lines of its input unchanged
    moves: tuple[Word, ...] = ()  # folders it goes to, one after the other, before it does anything


def judge_command(words: tuple[Word, ...], names: tuple[Word, ...] = ()) -> Judgement:
    """The effects of a command that is not empty. `names` are the names it is fed, where they come in whole."""
    name = words[0].literal
    if name is None:
        return Judgement("", (Effect(Does.UNKNOWN, words[0], "the name of the program is not known"),))
    entry = tables.lookup(name.rpartition("/")[2])
    if "/" in name:  # not trusted whatever it is called, but `/bin/sh -c` hands on a text like `sh -c`
        distrust = Effect(Does.UNLISTED, words[0], "a program named by its path is not trusted")
        known = () if entry is None else EntryReader(entry, name, names).run(words[1:]).effects
        return Judgement("", (distrust, *known))
    if entry is None:
        return Judgement("", (Effect(Does.UNLISTED, words[0], "what it does is not known"),))
    return EntryReader(entry, name, names).run(words[1:])


class EntryReader(OptionReader):
    """Reads the words of one command once, with one table entry."""

    def run(self, words: tuple[Word, ...]) -> Judgement:
        bare = self.entry.subcommands.get("*")
        if bare is not None and not (words and words[0].literal in self.entry.subcommands.keys() - {"*"}):
            return EntryReader(bare, self.name, self.names).run(words)
        self.add_effects(self.entry.effect)
        self.words = words
        rest = self.split(list(words))
        if self.entry.subcommands and not self.is_complete():
            return self.subcommand(rest)
        if self.entry.only_with and not self.has_option(self.entry.only_with):
            self.effects.append(Effect(Does.UNLISTED, None, f"is read-only only with {self.entry.only_with}"))
        else:
            self.place()
        return self.judgement()

    def add_effects(self, effects: Mapping[Role, str]) -> None:
        self.effects += [
            Effect(ROLE_EFFECT[role][0], None, why) for role, why in effects.items() if role is not Role.TEXT
        ]

    def judgement(self) -> Judgement:
        lists = self.lists_paths()
        return Judgement(
            self.name,
            self.mark_removals(self.mark_folders()),
            (*self.entry.requires, *self.needs),
            lists,
            self.whole_names() if lists else (),
            self.passes(),
            tuple(self.moves),
        )

    def mark_removals(self, effects: tuple[Effect, ...]) -> tuple[Effect, ...]:
        """The effects, marked where the word is gone afterwards: sources that are moved, a target that is cleared."""
        if self.has_option(self.entry.keeps):
            return tuple(effect._replace(removes=False) for effect in effects)
        if self.has_option(self.entry.moves_files):
            aimed = self.has_option("-t --target-directory")  # then the last operand is a source as well
            return tuple(
                effect._replace(removes=effect.does is Does.READS or (aimed and effect.word in self.operands))
                for effect in effects
            )
        if self.has_option(self.entry.clears):
            return tuple(effect._replace(removes=effect.does is Does.WRITES) for effect in effects)
        return add_places(effects, self.words) if self.entry.runs_rest else effects

    def mark_folders(self) -> tuple[Effect, ...]:
        """The effects, marked where what is in a folder is read as well."""
        entry = self.entry
        if not self.has_option(entry.recurses):
            return tuple(self.effects)
        hidden = not entry.hidden_with or self.has_option(entry.hidden_with)
        below = Below(self.has_option(entry.follows), hidden)
        return tuple(each._replace(below=below) if each.does is Does.READS else each for each in self.effects)

    def lists_paths(self) -> bool:
        """True if nothing was given that could put other text into the output: a value, or a word the entry names."""
        other = set(self.entry.not_paths_with.split())
        plain = not any(word.literal is None or word.literal in other for word in self.operands)
        return self.entry.lists_paths and plain and all(value is None for value in self.seen.values())

    def whole_names(self) -> tuple[Word, ...]:
        """What stands for the names it prints, if each is ended by NUL."""
        ending = set(self.entry.ends_names_with_nul.split())
        if not self.entry.expression:
            return (WHOLE_NAME,) if self.seen.keys() & ending else ()
        given = {word.literal for word in self.operands}
        if not given & ending or "-print" in given:
            return ()
        starts = [effect.word.literal for effect in self.effects if effect.why == SEARCHES and effect.word]
        kind = PieceKind.FILE if only_files(tuple(self.operands)) else PieceKind.FOUND
        operands = tuple(self.operands)
        rest = Piece(kind, "/<name>", quoted=True, narrowed=not finds_all(operands), name=found_name(operands))
        return tuple(Word((Piece(PieceKind.LITERAL, start, quoted=True), rest)) for start in starts if start)

    def passes(self) -> bool:
        allowed = set(self.entry.passes_with.split())
        return bool(allowed) and not self.files_named and not self.loose and self.seen.keys() <= allowed

    def is_complete(self) -> bool:
        """True for forms like `git --version` that need no sub-command."""
        return not self.operands and self.has_option(self.entry.only_with)

    def subcommand(self, rest: list[Word]) -> Judgement:
        name = self.operands[0].literal if self.operands else None
        inner = self.entry.subcommands.get(name) if name is not None else None
        if inner is None:
            what = f"{self.name} sub-command {name!r} is not listed" if name else f"{self.name} without a sub-command"
            self.effects.append(Effect(Does.UNLISTED, self.operands[0] if self.operands else None, what))
            return self.judgement()
        found = EntryReader(inner, f"{self.name} {name}", self.names).run(tuple(rest))
        moves = (*self.moves, *found.moves)
        lists = found.lists_paths and not moves  # the names would be seen from another folder
        return found._replace(
            effects=(*self.effects, *found.effects),
            requires=(*self.entry.requires, *self.needs, *found.requires),
            lists_paths=lists,
            whole_names=found.whole_names if lists else (),
            moves=moves,
        )

    def place(self) -> None:
        """Gives every operand its role."""
        entry = self.entry
        if not self.operands:
            self.add_effects(entry.alone)
        if entry.expression:
            try:
                self.effects += grammars.read(entry.expression, tuple(self.operands))
            except UnclearError as refusal:
                self.effects.append(Effect(Does.UNKNOWN, None, refusal.text))
            return
        left = list(self.operands)
        for wanted in entry.operands:
            use = self.operand_use(wanted)
            if use in CARRIERS and not left and not entry.alone:
                self.effects.append(Effect(Does.UNLISTED, None, f"{self.name} without a command to run"))
            if use is None or not left:
                continue
            if use in CARRIERS:
                self.hand_on(use, left)
                return
            word = left.pop(0)
            if not word.single and (entry.rest is not use or isinstance(use, Grammar)):
                self.effects.append(Effect(Does.UNLISTED, word, "may be several words, and the next has another role"))
            self.use(use, word)
        self.place_rest(left)

    def place_rest(self, left: list[Word]) -> None:
        use = self.entry.rest
        self.files_named = bool(left)
        if use is None:
            self.effects += [Effect(Does.UNLISTED, word, f"{self.name} takes no such operand") for word in left[:1]]
        elif use in CARRIERS and left:
            self.hand_on(use, left)
        else:
            for word in left or ([literal_word(self.entry.default)] if self.entry.default else []):
                self.use(use, word)

    def operand_use(self, wanted: Use | Unless) -> Use | None:
        if isinstance(wanted, Unless):
            return None if self.has_option(wanted.options) else wanted.role
        return wanted

    def hand_on(self, use: Use | None, left: list[Word]) -> None:
        """The operands are another command, or a text for a shell."""
        if use in (Role.COMMAND, Role.FED_COMMAND):
            self.hand_on_command(use, left)
            return
        texts = [word.literal for word in (left if use is Role.EVAL else left[:1])]
        known = [each for each in texts if each is not None]
        if len(known) < len(texts) and (text := text_with_input(left[0])) is not None and use is Role.SHELL:
            why = "the text for the shell is made of what it is fed"
            self.effects.append(Effect(Does.UNKNOWN, left[0], why, shell=text[0], arguments=text[1]))
        elif len(known) < len(texts):
            # A command of which nothing is known, not even the program.
            anything = (Word((Piece(PieceKind.INPUT, "<text>"),), left[0].start, left[0].end),)
            self.effects.append(Effect(Does.UNKNOWN, left[0], "the text for the shell is not known", child=anything))
        else:
            arguments = () if use is Role.EVAL else tuple(left[1:])
            why = "runs a shell text"
            self.effects.append(Effect(Does.RUNS, left[0], why, shell=" ".join(known), arguments=arguments))

    def hand_on_command(self, use: Use, left: list[Word]) -> None:
        env: list[tuple[str, Word]] = []
        while self.entry.assigns and left and (found := ASSIGNMENT.match(left[0].prefix)):
            word = left.pop(0)
            if not word.single:
                self.effects.append(Effect(Does.UNLISTED, word, "may be several words, and the next a command"))
            env.append((found.group(1), word.cut(found.end())))
        if not left:
            self.add_effects(self.entry.alone)
            return
        words = self.add_input(left) if use is Role.FED_COMMAND else tuple(left)
        self.effects.append(Effect(Does.RUNS, left[0], "runs another command", child=words, env=tuple(env)))
        if self.unsure and len(left) > 1:
            why = "is the command if an option took the word before it"
            self.effects.append(Effect(Does.RUNS, left[1], why, child=tuple(left[1:])))

    def add_input(self, words: list[Word]) -> tuple[Word, ...]:
        """A command with what comes in on standard input: added at the end, or in place of a mark (`xargs -I{}`)."""
        mark = self.seen.get(self.entry.replaces)
        cut = self.has_option(self.entry.cuts_names)
        names = self.names if self.has_option(self.entry.reads_nul_names) and not cut else ()
        if mark is not None and (other := self.seen.keys() & set(self.entry.replaces_not_with.split())):
            why = f"{self.entry.replaces} and {min(other)} exclude each other, and the later one wins"
            self.effects.append(Effect(Does.UNLISTED, None, why))
        if mark is None:
            anything = (Word((Piece(PieceKind.INPUT, MIXED if cut else FED),)),)
            return (*words, *(w._replace(start=words[-1].start, end=words[-1].end) for w in names or anything))
        text = mark.literal
        if not text:
            return (Word((Piece(PieceKind.INPUT, FED),)), *words)
        return tuple(fill(word, text, MIXED) if cut else insert_input(word, text, names) for word in words)

    def run_found(self, option: Word, words: list[Word]) -> None:
        """`fd -x command {}`: what follows is run with the paths that are found."""
        if not any("{}" in str(word) for word in words):
            words.append(literal_word(PLACE))
        child = tuple(fill(word, "{}", PLACE) for word in words)
        self.effects.append(Effect(Does.STARTS, words[0], f"{option} runs a command", child=child))

    def use(self, use: Use, word: Word) -> None:
        """Adds what becomes of one word."""
        if isinstance(use, Grammar):
            self.effects += read_program(use, word)
        elif use in CARRIERS:
            self.hand_on(use, [word])
        elif use is not Role.TEXT or self.loose:
            does, why = ROLE_EFFECT[Role.READ if use is Role.TEXT else use]
            if any(piece.kind is PieceKind.INPUT and piece.text != "<name>" for piece in word.pieces):
                self.needs.append(PLAIN_NAMES)
            self.effects.append(Effect(does, word, why, removes=use is Role.REMOVE))


def insert_input(word: Word, mark: str, names: tuple[Word, ...]) -> Word:
    """The word with what is fed in place of the mark: whole names where they are known."""
    if mark not in str(word):
        return word
    if word.literal == mark and len(names) == 1:
        return word._replace(pieces=names[0].pieces)
    if word.literal == mark:
        return word._replace(pieces=(Piece(PieceKind.INPUT, FED, quoted=True),))
    return fill(word, mark, MIXED)


def add_places(effects: tuple[Effect, ...], words: tuple[Word, ...]) -> tuple[Effect, ...]:
    """The effects, with the folders that are searched as arguments of the command that is run for each path."""
    rest = Piece(PieceKind.FOUND, "/{}", quoted=True, narrowed=not fd_finds_all(words))
    starts = [effect.word for effect in effects if effect.does is Does.READS and effect.word is not None]
    below = tuple(start._replace(pieces=(*start.pieces, rest)) for start in starts)
    return tuple(effect._replace(arguments=below) if effect.child else effect for effect in effects)


def read_program(grammar: Grammar, word: Word) -> tuple[Effect, ...]:
    text = word.literal
    if text is None:
        return (Effect(Does.UNKNOWN, word, f"the {grammar.language} program is not literal"),)
    try:
        return grammars.read(grammar.name, text)
    except UnclearError as refusal:
        return (Effect(Does.UNKNOWN, word, f"{grammar.language} program: {refusal.text}"),)


def text_with_input(word: Word) -> tuple[str, tuple[Word, ...]] | None:
    """A text with what it is fed written as `$1`, and what that stands for; None if more of it is not known."""
    fed = [piece for piece in word.pieces if piece.kind is PieceKind.INPUT]
    if (
        len(fed) + sum(piece.kind is PieceKind.LITERAL for piece in word.pieces) < len(word.pieces)
        or len(word.pieces) < 2
    ):
        return None
    text = "".join("$1" if piece.kind is PieceKind.INPUT else piece.text for piece in word.pieces)
    return text, tuple(word._replace(pieces=(piece,)) for piece in fed[:1])
