"""
Files that a command may name, for deny and ask rules about files.

The tables say which words of a read-only command are files. Of any other command every word may be one, and so may
what follows an option (`-oFILE`), a name (`if=FILE`, `@FILE`) or a separator (`FILE:/mnt`). Folders stand for what is
in them. Where rules keep files back, a word that is unknown before the line runs may be one of those files.
"""

import posixpath
import re
from collections.abc import Callable, Iterator
from itertools import pairwise

from handrail.files.paths import FileKind, Place
from handrail.lazy import lazy_pattern
from handrail.permissions.file_access import FileAccess, FileEffect, Lookup, paths_of
from handrail.permissions.implied_paths import COPIERS, has_objection, list_folder
from handrail.permissions.policy import Policy
from handrail.shell.model import HARMLESS, Analysis, CommandVerdict, Does, Effect, Piece, PieceKind, Segment, Word
from handrail.shell.patterns import is_wild, read_pattern
from handrail.shell.shell_state import DECLARING
from handrail.shell.text_programs import TEXT_OPTION, ProgramText, TextKind, program_text, written_scripts
from handrail.shell.unknown_names import texts_run
from handrail.shell.wrapped_commands import VARIABLES

MAX_WORDS = 200
MAX_NAMES = 1000
MAX_CUTS = 12
SEPARATORS = frozenset("=:,@+<>|")
CLUSTER = lazy_pattern(r"-[A-Za-z]{1,6}")
NO_NAME = lazy_pattern(r"[\s'\"`()\[\]{},;=<>|&:@]+")
NO_PATTERN = lazy_pattern(r"(?:[\s'\"`(){},;=<>|&@]|(?<!\[):(?!\]))+")  # [:alpha:] is part of a pattern
IN_TEXT = lazy_pattern(r"[\s'\"`();&]")  # a word with one of these may be a text, in which files are named
PROCESS_PATH = lazy_pattern(r"/proc/|/dev/(?:fd|stdin|stdout|stderr)/")
LETTER = lazy_pattern(r"\w")
EXPANDED = lazy_pattern(r"[$`]")
QUOTES = lazy_pattern(r"[\\'\"]")
# A variable in a text for a shell, and the word that stands for one that is not set.
IN_SHELL = lazy_pattern(r"\$(?:(?P<plain>\w+)|\{(?P<name>\w+)(?::?[-+=?](?P<word>[^}]*))?\})")
# They name a file that a program reads, and may show.
FILE_VARIABLES = lazy_pattern(r"\w*(?:ENV|FILE|CONFIG\w*|RC|STARTUP)\Z")
WILDCARDS = frozenset("*?[")
NUMBERS = frozenset(("$?", "$#", "$$", "$!"))
FILE_KINDS = frozenset((PieceKind.LITERAL, PieceKind.GLOB, PieceKind.FOUND, PieceKind.FILE))
# What they read is found under the name that is given, or that name with an ending.
ENDINGS: dict[str, tuple[str, ...]] = {
    name: tuple(endings.split())
    for names, endings in {
        "zcat zless zmore zgrep zegrep zfgrep zdiff zcmp gunzip gzip uncompress": ".gz -gz .z -z _z .Z .tgz .taz",
        "bzcat bzless bzmore bzgrep bzdiff bzcmp bunzip2 bzip2": ".bz2 .bz .tbz2 .tbz",
        "xzcat xzless xzmore xzgrep xzdiff xzcmp unxz xz lzcat unlzma lzma": ".xz .lzma .txz .tlz",
        "zstdcat zstdless zstdgrep unzstd zstd": ".zst .tzst",
        "unzip zipinfo zipgrep funzip zip": ".zip .ZIP",
    }.items()
    for name in names.split()
}
# They match patterns with names themselves.
MATCHERS = frozenset(name for name in ENDINGS if "zip" in name) | {"7z", "7za", "rar", "unrar", "rsync", "lftp"}
# Given a folder, they read files of their own kind in it, and show or copy no others.
OWN_KINDS = frozenset(
    name
    for names in (
        "pytest py.test ruff mypy pyright black isort flake8 pylint bandit vulture pre-commit tox nox coverage",
        "sphinx-build tsc eslint prettier jest vitest mocha vite webpack go cargo rustc gofmt make cmake ninja",
        "meson bazel mvn gradle npm yarn pnpm bun pip pip3 uv poetry pdm hatch git mkdir touch rmdir cd pushd popd ls",
        "chmod chown",
    )
    for name in names.split()
)
# They name files in their input or in a file, or their input decides which files they write.
UNPACKS: dict[str, re.Pattern[str]] = {
    name: lazy_pattern(pattern)
    for names, pattern in {
        "tar bsdtar gtar star": r"-?[A-Za-z]*[xT]|--extract|--get|--files-from",
        "unzip cpio pax afio patch parallel unar": "",
        "zip": "-@",
        "7z 7za 7zr rar unrar ar jar": r"-?[A-Za-z]*[xe]\Z",
        "git": r"apply\Z|am\Z|checkout-index\Z|--no-index",
        "xargs": r"-\w*a|--arg-file",
    }.items()
    for name in names.split()
}
NAMES_FROM = ("--files-from", "--files0-from", "--pathspec-from-file", "--stdin-paths", "--stdin", "--no-index")
# The value of these options is a message, never a file.
MESSAGES: dict[tuple[str, str], frozenset[str]] = {
    ("git", "commit"): frozenset(("-m", "-am", "--message")),
    ("git", "tag"): frozenset(("-m", "--message")),
    ("git", "merge"): frozenset(("-m",)),
    ("gh", "pr"): frozenset(("-t", "--title", "-b", "--body")),
    ("gh", "issue"): frozenset(("-t", "--title", "-b", "--body")),
}
NOT_PARSED = "the line is not understood, so which files it names is not known"
FED = "what it runs is not known before it runs, nor are the files that this names"

Places = Callable[[Segment, Word], Iterator[Place | None]]


def possible_files(analysis: Analysis, places: Places, policy: Policy, lookup: Lookup) -> Iterator[FileAccess]:
    """The files that deny and ask rules match and that a line may name, and the words that may name any file."""
    if analysis.problems:
        yield FileAccess(None, FileEffect.MAYBE, analysis.command, doubt=NOT_PARSED, clear=True)
    scripts = [*written_scripts(analysis.segments)]
    for part, segment in enumerate(analysis.segments):
        found = SegmentFiles(segment, part, places, policy, lookup)
        yield from found.with_endings()
        yield from found.in_opened_folders()
        if segment.verdict is not CommandVerdict.READ_ONLY:
            yield from found.of_words()
            yield from found.of_texts()
            yield from found.of_scripts(scripts)


class SegmentFiles:
    """Looks for files in the words of one command."""

    def __init__(self, segment: Segment, part: int, places: Places, policy: Policy, lookup: Lookup) -> None:
        self.segment, self.part, self.policy, self.lookup = segment, part, policy, lookup
        self._places = places

    def of_words(self) -> Iterator[FileAccess]:
        """The files that its words, settings and targets of redirections may be."""
        segment = self.segment
        words = [] if only_reads_words(segment) else list(segment.argv[1:])
        targets = [redirection.target for redirection in segment.redirections if not redirection.target.single]
        settings = [word for _, word in segment.env] if segment.argv else []
        if segment.name in DECLARING:
            words, settings = [], [*words, *settings]
        if len(words) > MAX_WORDS:
            yield self.unknown(words[MAX_WORDS], "it has too many words to look at")
        known = known_texts(segment)
        for word in (*words[:MAX_WORDS], *targets):
            if word not in known:
                yield from self.unless_known(self.settle(word))
            for cut in cuts(self.settle(word)):
                yield from self.of_cut(cut)
        for word in settings[:MAX_WORDS]:
            files = (file for cut in cuts(self.settle(word)) for file in self.of_cut(cut))
            yield from (file for file in files if file.effect is FileEffect.MAYBE)
        yield from self.of_settings()
        if takes_names(segment):
            yield self.unknown(segment.name, f"which files {segment.name} is told to touch is not known")
        for effect in segment.effects:
            if effect.does is Does.UNKNOWN and effect.word is not None and not effect.child and effect.shell is None:
                yield self.unknown(effect.word)

    def of_settings(self) -> Iterator[FileAccess]:
        """The files in texts that variables hold for it, and the variables by which it may be given any file."""
        for name, word in self.segment.env[:MAX_WORDS] if self.segment.argv else ():
            if FILE_VARIABLES.match(name) and any(map(is_unknown, self.settle(word).pieces)):
                yield self.unknown(word)
            elif IN_TEXT.search(str(word)):
                yield from self.named_in([str(word)], run=VARIABLES.match(name) is not None)

    def settle(self, word: Word) -> Word:
        """The word with the home folder and the working folder in the place of what stands for them."""
        texts = {"~": self.policy.home, "$HOME": self.policy.home}
        if self.segment.cwds == (".",):
            texts |= {"$PWD": self.policy.cwd, "~+": self.policy.cwd}
        pieces = [
            Piece(PieceKind.LITERAL, texts[piece.text], quoted=True)
            if piece.kind in (PieceKind.TILDE, PieceKind.PARAMETER) and piece.text in texts
            else piece
            for piece in word.pieces
        ]
        return word._replace(pieces=tuple(pieces))

    def unless_known(self, word: Word) -> Iterator[FileAccess]:
        """A question if it may be any file, and files that it speaks of where it may be a text."""
        expands = any(piece.kind in (PieceKind.GLOB, PieceKind.BRACE) for piece in word.pieces)
        if any(map(is_unknown, word.pieces)) or (expands and None in self._places(self.segment, word)):
            yield self.unknown(word)
        elif IN_TEXT.search(str(word)) and not str(word).startswith(("-m", "--message=")):
            yield from self.named_in([str(word)])

    def of_cut(self, word: Word) -> Iterator[FileAccess]:
        if found := [at for at, piece in enumerate(word.pieces) if piece.kind in (PieceKind.FOUND, PieceKind.FILE)]:
            top = word._replace(pieces=word.pieces[: found[0]])
            for place in self._places(self.segment, top) if top.pieces else ():
                if place is not None and place.kind is FileKind.FOLDER:
                    yield from self.inside(place)
            return
        patterns = [word, as_pattern(word)] if any(has_wildcard(piece) for piece in word.pieces) else [word]
        for pattern in patterns:
            for place in self._places(self.segment, pattern):
                if place is None:
                    yield from [self.unknown(word)] if self.is_process_path(word) else []
                elif self.is_kept_back(place, FileEffect.MAYBE):
                    yield self.file(place, FileEffect.MAYBE)
                elif place.kind is FileKind.FOLDER and not self.is_copied(word):
                    yield from self.inside(place)

    def is_process_path(self, word: Word) -> bool:
        """Whether no place is known for it because each process sees another file there."""
        if any(map(is_unknown, word.pieces)):
            return False
        if PROCESS_PATH.search(str(word)) is not None:
            return True
        bases = [posixpath.join(self.policy.cwd, folder or "") for folder in self.segment.cwds]
        return any(self.lookup.locate(text, base).by_process for text in word.alternatives or () for base in bases)

    def is_copied(self, word: Word) -> bool:
        """Whether the tables say what a copying command does with it, so that what is in it is looked at there."""
        known = (*self.segment.reads, *self.segment.writes) if self.segment.name in COPIERS else ()
        return any((each.start, each.end) == (word.start, word.end) for each in known)

    def inside(self, folder: Place) -> Iterator[FileAccess]:
        """The files in a folder that it may copy, pack or show."""
        if self.segment.name not in OWN_KINDS:
            yield from self.below(folder)

    def in_opened_folders(self) -> Iterator[FileAccess]:
        """The files in a folder that the shell opens for it: `cat /dev/stdin/x < .`, `grep -r x /dev/fd/3 3< .`."""
        for redirection in self.segment.redirections:
            if redirection.operator in ("<", "<>"):
                for place in self._places(self.segment, redirection.target):
                    if place is not None and place.kind is FileKind.FOLDER:
                        yield from self.below(place)

    def below(self, folder: Place) -> Iterator[FileAccess]:
        for name in list_folder(folder, self.lookup):
            if name is None:
                yield self.unknown(folder.spelling, f"{folder.spelling!r} holds too much to look at")
                return
            path = posixpath.join(folder.real, name)
            place = Place(path, path, path)
            if self.is_kept_back(place, FileEffect.MAYBE):
                yield self.file(place, FileEffect.MAYBE_BELOW)

    def with_endings(self) -> Iterator[FileAccess]:
        """The files that it reads under other names than it is given: with an ending, or as a pattern of its own."""
        segment = self.segment
        endings, matches = ENDINGS.get(segment.name, ()), segment.name in MATCHERS
        for word in segment.argv[1:] if endings or matches else ():
            for place in self._places(segment, as_pattern(word) if matches else word):
                for ending in ("", *endings) if place is not None else ():
                    assert place is not None
                    there = self.lookup.locate(place.absolute + ending, "/")
                    if there.kind is not FileKind.MISSING and self.is_kept_back(there, FileEffect.READ):
                        yield self.file(there, FileEffect.READ)

    def of_texts(self) -> Iterator[FileAccess]:
        """The files that are named in a program it is given as text: they may be read."""
        given = program_text(self.segment)
        if given.from_input and not given.fed:
            yield self.unknown(self.segment.name, FED)
            return
        run = [*texts_run(self.segment)]
        if runs_shell_text(self.segment, given) or any(map(EXPANDED.search, run)):
            yield self.unknown(self.segment.name, FED)
        yield from self.named_in([*given.texts, *given.fed], run=given.unknown or bool(run))

    def of_scripts(self, scripts: list[str]) -> Iterator[FileAccess]:
        """The files that are named in scripts which the line writes and runs."""
        if any(map(EXPANDED.search, scripts)):
            yield self.unknown(self.segment.name, FED)
        yield from self.named_in(scripts, run=True)

    def named_in(self, texts: list[str], *, run: bool = False) -> Iterator[FileAccess]:
        """The files whose names stand in texts, or that a pattern in them matches; `*` is one only in what is run."""
        for folder in self.segment.cwds:
            base = posixpath.join(self.policy.cwd, folder or "")
            joined = [self.as_shell_reads(text, base) for text in texts]
            spelled = (*texts, *joined)
            names = dict.fromkeys(name for text in spelled for name in NO_NAME.split(text) if name)
            words = (name for text in spelled for name in NO_PATTERN.split(text) if is_wild(name))
            patterns = dict.fromkeys(word for word in words if run or LETTER.search(word))
            places = [self.lookup.resolve(name, base, self.policy.home) for name in list(names)[:MAX_NAMES]]
            for name in list(patterns)[:MAX_NAMES]:
                found = self.lookup.match_files(read_pattern(name, loose=True).parts, base)
                places += [self.lookup.locate(each, base) for each in found or ()]
            for place in places:
                if place.by_process:
                    yield self.unknown(place.spelling)
                elif self.is_kept_back(place, FileEffect.MAYBE):
                    yield self.file(place, FileEffect.MAYBE_BELOW)

    def as_shell_reads(self, text: str, cwd: str) -> str:
        """A text as a shell may read it that some program hands it to: no quotes, no variables but known folders."""
        known = {"PWD": cwd, "HOME": self.policy.home}
        plain = QUOTES.sub("", text)
        return IN_SHELL.sub(lambda found: known.get(found["plain"] or found["name"]) or found["word"] or "", plain)

    def is_kept_back(self, place: Place, effect: FileEffect) -> bool:
        return has_objection(FileAccess(place, effect, "", paths=paths_of(place)), self.policy)

    def file(self, place: Place, effect: FileEffect) -> FileAccess:
        return FileAccess(place, effect, place.spelling, self.part, paths=paths_of(place), clear=True)

    def unknown(self, word: Word | str, why: str = "") -> FileAccess:
        why = why or f"which file {str(word)!r} may mean is not known"
        return FileAccess(None, FileEffect.MAYBE, str(word), self.part, doubt=why, clear=True)


def only_reads_words(segment: Segment) -> bool:
    """Whether the tables say of every word what it is: only a redirection, or a value that it shows, is more."""
    targets = {(redirection.target.start, redirection.target.end) for redirection in segment.redirections}
    return bool(segment.entry) and all(
        effect.does in HARMLESS
        or (effect.does is Does.SECRET and effect.word is not None)  # without a word: the entry says nothing of them
        or (effect.does is Does.WRITES and effect.word is not None and (effect.word.start, effect.word.end) in targets)
        for effect in segment.effects
    )


def runs_shell_text(segment: Segment, given: ProgramText) -> bool:
    """Whether a shell runs a text that is not read as a command line of its own."""
    if given.kind is not TextKind.SHELL and segment.name not in ("source", "."):
        return False
    has_text = given.from_input or any(TEXT_OPTION.match(str(word)) for word in segment.argv[1:])
    return has_text and not any(effect.shell is not None for effect in segment.effects)


def takes_names(segment: Segment) -> bool:
    """Whether what it reads decides which files it touches."""
    texts = [str(word) for word in segment.argv[1:]]
    pattern = UNPACKS.get(segment.name)
    if pattern is not None and (not pattern.pattern or any(map(pattern.match, texts))):
        return True
    return any(text.startswith(NAMES_FROM) for text in texts)


def known_texts(segment: Segment) -> set[Word]:
    """The words that are no files, whatever they become: texts by the table entry, and messages."""
    words = segment.argv[1:]
    found = set[Word]()
    if segment.entry and all(map(tells_its_word, segment.effects)):
        effects = [effect for effect in segment.effects if effect.does is not Does.SECRET]
        used = {(effect.word.start, effect.word.end) for effect in effects if effect.word is not None}
        found |= {word for word in words if (word.start, word.end) not in used}
    options = MESSAGES.get((segment.name, words[0].literal or ""), frozenset()) if words else frozenset[str]()
    for option, word in pairwise(words):
        if option.literal in options and word.single:
            found.add(word)
    return found


def tells_its_word(effect: Effect) -> bool:
    """Whether the tables know the word that an effect comes from."""
    if effect.does in (Does.UNLISTED, Does.UNKNOWN):
        return False
    return effect.does in HARMLESS or effect.word is not None


def is_unknown(piece: Piece) -> bool:
    """Whether the text of a piece is not known before the line runs; a number is no file."""
    if piece.kind is PieceKind.PARAMETER and piece.text in NUMBERS:
        return False
    known = piece.kind in FILE_KINDS or piece.kind in (PieceKind.ARITHMETIC, PieceKind.BRACE, PieceKind.PROCESS)
    return not known and piece.values is None


def has_wildcard(piece: Piece) -> bool:
    return piece.kind is PieceKind.LITERAL and not WILDCARDS.isdisjoint(piece.text)


def as_pattern(word: Word) -> Word:
    """The word as a program reads it that matches patterns itself."""
    pieces = [
        piece._replace(kind=PieceKind.GLOB, quoted=False) if has_wildcard(piece) else piece for piece in word.pieces
    ]
    return word._replace(pieces=tuple(pieces))


def cuts(word: Word) -> Iterator[Word]:
    """The word, and the ends and parts of it that may be a file."""
    return (cut for cut in (word, *parts_of_word(word)) if str(cut))


def parts_of_word(word: Word) -> Iterator[Word]:
    text = str(word)
    if found := CLUSTER.match(text):
        yield from (word.cut(size) for size in range(2, found.end() + 1))
    splits = separators(word)
    for at, (first, offset) in enumerate(splits[:MAX_CUTS]):
        yield slice_word(word, (first, offset + 1), (len(word.pieces), 0))
        end = splits[at + 1] if at + 1 < len(splits) else (len(word.pieces), 0)
        yield slice_word(word, (first, offset + 1), end)
    if splits:
        yield slice_word(word, (0, 0), splits[0])


def separators(word: Word) -> list[tuple[int, int]]:
    """Where the pieces of a word hold a separator; a comma between braces is none."""
    braces = any(piece.kind is PieceKind.BRACE for piece in word.pieces)
    return [
        (at, offset)
        for at, piece in enumerate(word.pieces)
        if piece.kind is PieceKind.LITERAL
        for offset, char in enumerate(piece.text)
        if char in SEPARATORS and not (braces and char == ",")
    ]


def slice_word(word: Word, start: tuple[int, int], end: tuple[int, int]) -> Word:
    """The word between two places in its pieces."""
    pieces: list[Piece] = []
    for at, piece in enumerate(word.pieces):
        if at < start[0] or at > end[0]:
            continue
        left = start[1] if at == start[0] else 0
        right = end[1] if at == end[0] else len(piece.text)
        if piece.kind is not PieceKind.LITERAL or (left, right) == (0, len(piece.text)):
            pieces += [piece] if right or at < end[0] else []
        elif left < right:
            pieces.append(piece._replace(text=piece.text[left:right]))
    return word._replace(pieces=tuple(pieces))
