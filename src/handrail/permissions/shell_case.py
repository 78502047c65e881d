"""
The Case of a command line: what its words mean as files, and which of its parts need no rule.

Loaded with the first command, because it loads what reads command lines.
"""

import posixpath
from collections.abc import Iterable, Iterator
from dataclasses import replace
from functools import lru_cache, partial
from itertools import chain, islice

from handrail.files.paths import FileKind, Place, normalize
from handrail.lazy import lazy_pattern
from handrail.permissions.case import ELSEWHERE, TOO_MUCH, Case, limit_listing, unless_too_much
from handrail.permissions.command_parts import CommandPart, in_background, parts_of
from handrail.permissions.facts import Facts
from handrail.permissions.file_access import FileAccess, FileEffect, Lookup, assess_place, guards_files
from handrail.permissions.guessed_files import guessed_texts, handed_words, names_in_program, searched_folders
from handrail.permissions.implied_paths import SHALLOW, implied_accesses, list_folder
from handrail.permissions.new_links import NewLink, follow_links, new_links
from handrail.permissions.paths import below, critical
from handrail.permissions.policy import Policy
from handrail.permissions.possible_files import possible_files
from handrail.permissions.recursive_reads import is_unguarded, recursive_reads
from handrail.permissions.rules import Behaviour
from handrail.permissions.stored_settings import stored_setting
from handrail.shell.analysis import analyse
from handrail.shell.effects import BRACES, MAX_BRACED, REPOSITORY, PathText, places, reads
from handrail.shell.listing import gone_through, lists_one_folder
from handrail.shell.model import Analysis, CommandVerdict, Does, PieceKind, Segment, Word, literal_word
from handrail.shell.patterns import read_pattern
from handrail.shell.removals import Removal, possible_removals, removals

TILDE = lazy_pattern(r"~([+-]?\d*|[A-Za-z_][\w.-]*)(?=/|\Z)")
HOME_OR_PWD = lazy_pattern(r"\$(?:(HOME|PWD)(?!\w)|\{(HOME|PWD)\b[^}]*\})")
# What lies behind these is decided by the process that looks: its folder, its root, its open files.
PROCESS_PATH = lazy_pattern(r"/proc/[^/]+/(?:task/[^/]+/)?(?:cwd|root|fd|map_files)(?:/|\Z)|/dev/fd/[^/]+/")
VARIABLE = lazy_pattern(r"\A\$(\w+)\Z")
PROCESS_FOLDERS = ("/proc/", "/dev/fd/")


@lru_cache(maxsize=1024)
def read_command(command: str) -> tuple[Analysis, tuple[CommandPart, ...], bool]:
    """Analyse a command line; the result is cached."""
    analysis = analyse(command)
    return analysis, parts_of(analysis), in_background(analysis)


def looks_around(command: str) -> bool:
    """Whether deciding on a command line may have to list whole folders, which takes a while."""
    analysis, _, _ = read_command(command)
    return any(
        writes_folders(segment) or any(gone_through(segment)) or (len(segment.argv) > 1 and not segment.entry)
        for segment in analysis.segments
    )


def writes_folders(segment: Segment) -> bool:
    """Whether what a command writes may be found in folders only: by a pattern, or because they are changed inside."""
    return bool(segment.writes) and not (
        segment.name in SHALLOW and all(word.literal is not None for word in segment.writes)
    )


def shell_case(case: Case, command: str, lookup: Lookup) -> Case:
    """The case of a call that runs a command line, and may access other files as well."""
    policy, facts = case.policy, case.facts
    analysis, parts, background = read_command(command)
    files = (*shell_touches(analysis, policy, lookup), *stored_files(analysis, parts, policy, lookup))
    read_only = not analysis.problems and bool(parts) and all(part.read_only for part in parts)
    shut = {file.part for file in files if not file.clear and file.redirected}
    blocked = {file.part for file in files if not file.clear and not parts[file.part].transparent} | shut
    accepts = policy.mode == "acceptEdits"
    free = tuple(at not in blocked and harmless(parts, at, facts, accepts) for at in range(len(parts)))
    opened = tuple(at not in shut for at in range(len(parts)))
    read_only = read_only and not facts.access.changes_files
    return Case(
        case.use, policy, case.tool, facts, case.mcp, read_only, files + case.files, analysis, parts, free, opened,
        background, case.targets, case.named_files, case.named_targets,
    )  # fmt: skip


def harmless(parts: tuple[CommandPart, ...], at: int, facts: Facts, accepts_edits: bool) -> bool:
    """Whether a part only starts the next command, only reads, or edits in a mode that accepts edits."""
    part = parts[at]
    if at in facts.check.parts or (part.conditional and not all(p.read_only or p.only_redirects for p in parts)):
        return False  # what the rest of the line changes may be the repository
    if part.transparent:
        return True
    if part.read_only or part.only_redirects:
        return all(child.read_only for child in parts[at + 1 : part.until]) and not facts.unmet
    return part.accepted and accepts_edits


def shell_touches(analysis: Analysis, policy: Policy, lookup: Lookup) -> Iterator[FileAccess]:
    """The files that a command line accesses."""
    positions = {id(segment): at for at, segment in enumerate(analysis.segments)}
    finder = Finder(policy, lookup, analysis)
    finite = lookup._replace(beneath=limit_listing(lookup.beneath))
    leaves_out = analysis.verdict is CommandVerdict.READ_ONLY
    checked = leaves_out and is_unguarded(policy)  # names are then looked at where conditions are
    for segment, word, does in reads(analysis, checked=checked):
        for file in finder.files(segment, word, effect_of_reading(segment, does), positions[id(segment)]):
            leaves_out = leaves_out and not file.secret  # what is named is asked about, not left out
            yield file
    for at, segment in enumerate(analysis.segments):
        if any(need.name == REPOSITORY for need in segment.requires) and not finder.at_home(segment):
            yield FileAccess(None, FileEffect.READ, segment.name, at, doubt=ELSEWHERE)
        for word in segment.writes:
            yield from finder.files(segment, word, FileEffect.WRITE, at)
        find = partial(finder.places, segment)
        implied = implied_accesses(segment, at, find, policy, finite, alone=len(analysis.segments) == 1)
        deeper = recursive_reads(segment, at, finder.places, policy, finite, leaves_out=leaves_out, checked=checked)
        otherwise = FileAccess(None, FileEffect.BELOW, segment.name, at, doubt=TOO_MUCH)
        yield from unless_too_much(chain(implied, deeper), otherwise)
        for effect in segment.effects:
            if effect.removes and effect.does is Does.READS and effect.word is not None:  # moved away: written as well
                yield from finder.files(segment, effect.word, FileEffect.WRITE, at)
        yield from finder.guess_files(segment, at)
    yield from finder.find_handed(analysis)
    nothing = FileAccess(None, FileEffect.MAYBE_BELOW, analysis.command, clear=True)
    yield from unless_too_much(finder.find_searched(analysis, finite), nothing)
    yield from finder.find_removed(analysis)
    yield from guarded_files(analysis, finder, finite)


def stored_files(
    analysis: Analysis, parts: tuple[CommandPart, ...], policy: Policy, lookup: Lookup
) -> Iterator[FileAccess]:
    """The protected files that commands write unnamed, unless a rule names the very command or line."""
    named = policy.index[Behaviour.ALLOW].shell
    for at, segment in enumerate(analysis.segments):
        found = stored_setting(segment)
        if found is None or named.find(parts[at].text, exact_only=True):
            continue
        if named.find_whole(analysis.command, Behaviour.ALLOW):
            return
        base = posixpath.join(policy.cwd, segment.cwds[0] or "")
        place = lookup.resolve(found.file, base, policy.home)
        file = assess_place(policy, place, FileEffect.MAYBE, found.file, at)
        yield file._replace(protected=found.why)


def effect_of_reading(segment: Segment, does: Does) -> FileEffect:
    if does is not Does.LOOKS:
        return FileEffect.READ
    return FileEffect.LIST if lists_one_folder(segment) else FileEffect.LOOK


def guarded_files(analysis: Analysis, finder: "Finder", lookup: Lookup) -> Iterator[FileAccess]:
    """The files that a command line may access and that rules keep back."""
    if guards_files(finder.policy):
        otherwise = FileAccess(None, FileEffect.BELOW, analysis.command, doubt=TOO_MUCH, clear=True)
        yield from unless_too_much(possible_files(analysis, finder.places, finder.policy, lookup), otherwise)


def is_of_process(place: Place) -> bool:
    path = place.absolute
    return place.by_process or (path.startswith(PROCESS_FOLDERS) and PROCESS_PATH.match(path) is not None)


def is_open_file(place: Place) -> bool:
    return place.absolute.startswith(("/dev/fd/", "/dev/stdin"))


class Finder:
    """Resolves words of a command to places in the file system."""

    def __init__(self, policy: Policy, lookup: Lookup, analysis: Analysis) -> None:
        self.policy, self.lookup = policy, lookup
        # Only a line that does more than read can tell the shell to let wildcards stand for names with a dot.
        self.dotted = analysis.verdict is not CommandVerdict.READ_ONLY
        self.links: tuple[NewLink, ...] = ()
        self.links = new_links(analysis, self.places, lookup)

    def files(self, segment: Segment, word: Word, effect: FileEffect, part: int) -> Iterator[FileAccess]:
        redirected = any((r.target.start, r.target.end) == (word.start, word.end) for r in segment.redirections)
        for place in self.found_places(segment, word):
            known = None if place is None or is_of_process(place) else place
            yield assess_place(self.policy, known, effect, str(word), part, redirected=redirected)
            if place is not known and effect is FileEffect.WRITE:  # its name is known, whichever folder it is in
                yield from self.protected_files([place], word, part)
        if effect is FileEffect.WRITE and has_loop_name(word):
            yield assess_place(self.policy, None, effect, str(word), part, redirected=redirected)

    def places(self, segment: Segment, word: Word) -> Iterator[Place | None]:
        """Every place that a word can mean in the folders its command may run in; None means any place."""
        found = self.found_places(segment, word)
        return (None if place is not None and is_of_process(place) else place for place in found)

    def found_places(self, segment: Segment, word: Word) -> Iterator[Place | None]:
        """The same, with the places where each process finds another file."""
        found = places(segment, word, self.policy.cwd, self.policy.home, self.find)
        return (each for place in found for each in self.with_links(place, segment))

    def with_links(self, place: Place | None, segment: Segment) -> Iterator[Place | None]:
        """A place, and where it leads through links that other commands of the line make."""
        yield place
        if place is not None and self.links:
            yield from follow_links(place, segment, self.links, self.lookup)

    def find(self, folder: str, path: PathText) -> Iterable[Place | None]:
        """The files of a pattern, and the pattern taken literally where that may be a file; else the path."""
        if isinstance(path, str):
            return (self.lookup.locate(path, folder),)
        pattern = read_pattern(path.source, loose=True) if self.dotted else path
        found = self.lookup.match_files(pattern.parts, folder)
        literal = self.lookup.locate(pattern.text, folder)
        if found is None:
            return (replace(literal, problem="matches more files than handrail checks"),)
        matched = [self.lookup.locate(name, folder) for name in found]
        return [
            *matched,
            *([literal] if literal.exists or not matched else []),
            *([] if pattern.sure or not path.sure else [None]),
        ]

    def at_home(self, segment: Segment) -> bool:
        """
        Whether a command runs in or below a working folder, by path and by link: `cd` and git differ.

        That it is the same repository there is one of the conditions of git.
        """
        if segment.cwds == (".",):
            return True
        here = (self.policy.cwd, *self.policy.working_dirs)
        folders = [posixpath.join(self.policy.cwd, folder) for folder in segment.cwds if folder is not None]
        known = len(folders) == len(segment.cwds)
        places = [self.lookup.locate(path, "/").real for folder in folders for path in {folder, normalize(folder)}]
        return known and all(any(below(place, top) for top in here) for place in places)

    def find_removed(self, analysis: Analysis) -> Iterator[FileAccess]:
        """The files that a line would remove, and those that it may remove where it could not be parsed."""
        for part, removal in removals(analysis):
            yield from self.removal(removal, part)
        for removal in possible_removals(analysis):
            yield from self.removal(removal, -1)

    def removal(self, removal: Removal, part: int) -> Iterator[FileAccess]:
        """The places that a removed word can mean. Unknown text counts as empty: `rm -r "$x"/*` may mean the root."""
        policy = self.policy
        effect = FileEffect.REMOVE if removal.whole else FileEffect.REMOVE_SOME
        bases = [posixpath.join(policy.cwd, folder or "") for folder in removal.segment.cwds]
        for base in (*bases, policy.home) if removal.segment.in_home else bases:
            for text in filter(None, removal_texts(removal.word, base, policy.home, plain=part < 0)):
                path = posixpath.join(base, text)
                if not removal.guessed or critical(path, policy.home, policy.working_dirs):
                    for place in filter(None, self.with_links(self.lookup.locate(text, base), removal.segment)):
                        yield assess_place(policy, self.worst_case(place), effect, str(removal.word), part)

    def worst_case(self, place: Place) -> Place:
        """The working folder in place of what each process finds elsewhere: it may stand there, or have it open."""
        return self.lookup.locate(self.policy.cwd, "/") if is_of_process(place) or is_open_file(place) else place

    def guess_files(self, segment: Segment, part: int) -> Iterator[FileAccess]:
        """The files that a command may touch of whose words the tables do not say everything."""
        for text, folder in guessed_texts(segment):
            base = posixpath.join(self.policy.cwd, folder)
            if "/" in text or "." in text or (text and self.lookup.exists(text, base)):
                yield assess_place(self.policy, self.lookup.locate(text, base), FileEffect.MAYBE, text, part)
        for text in names_in_program(segment):
            for base in (posixpath.join(self.policy.cwd, folder or "") for folder in segment.cwds):
                place = self.lookup.resolve(text, base, self.policy.home)
                if place.kind is not FileKind.FOLDER:  # programs name those to leave them out
                    yield from self.protected_files([place], literal_word(text), part)

    def find_handed(self, analysis: Analysis) -> Iterator[FileAccess]:
        """The protected files whose names one command of a line hands to another that writes."""
        for part, found in handed_words(analysis):
            for base in (posixpath.join(self.policy.cwd, folder or "") for folder in found.segment.cwds):
                texts = removal_texts(found.word, base, self.policy.home, plain=False)
                yield from self.protected_files(
                    (self.lookup.locate(text, base) for text in texts if text), found.word, part
                )
            if found.word.has_wildcard:
                yield from self.protected_files(self.places(found.segment, found.word), found.word, part)

    def protected_files(self, places: Iterable[Place | None], word: Word, part: int) -> Iterator[FileAccess]:
        files = (assess_place(self.policy, place, FileEffect.MAYBE, str(word), part) for place in filter(None, places))
        return (file for file in files if file.protected)

    def find_searched(self, analysis: Analysis, lookup: Lookup) -> Iterator[FileAccess]:
        """A protected file in each folder in which a search finds what a command writes."""
        for search in searched_folders(analysis):
            for folder in self.places(search.segment, search.top):
                if folder is None or folder.kind is not FileKind.FOLDER:
                    continue
                names = filter(search.finds, filter(None, list_folder(folder, lookup)))
                paths = (posixpath.join(folder.real, name) for name in names)
                found = self.protected_files((Place(path, path, path) for path in paths), search.top, search.part)
                yield from (file._replace(shown=file.paths[0]) for file in islice(found, 1))


def has_loop_name(word: Word) -> bool:
    """Whether the name of a file that a loop found is a part of the word, so that it may be the name of a new file."""
    return len(word.pieces) > 1 and any(piece.kind is PieceKind.GLOB and piece.quoted for piece in word.pieces)


def removal_texts(word: Word, cwd: str, home: str, *, plain: bool) -> Iterable[str]:
    """The texts that a word can expand to; unknown parts count as empty."""
    known = None if plain else word.alternatives
    if known is not None:
        return known
    text = "".join("" if piece.kind is PieceKind.INPUT else VARIABLE.sub(r"${\1}", piece.text) for piece in word.pieces)
    braces = plain or any(piece.kind is PieceKind.BRACE for piece in word.pieces)
    return [without_unknown(each, cwd, home) for each in (expand_texts(text) if braces else [text])]


def expand_texts(text: str) -> list[str]:
    """What braces in a text stand for, from the inside out."""
    texts = [text]
    while len(texts) <= MAX_BRACED and (found := next(filter(None, map(BRACES.search, texts)), None)):
        texts = [each.replace(found[0], choice, 1) for each in texts for choice in found[1].split(",")]
    return list(dict.fromkeys(texts))


def without_unknown(text: str, cwd: str, home: str) -> str:
    """The text with every variable but HOME and PWD empty. The home folder of any user counts as one."""
    if found := TILDE.match(text):
        text = (cwd if found[1] == "+" else home) + text[found.end() :]
    text = HOME_OR_PWD.sub(lambda found: home if (found[1] or found[2]) == "HOME" else cwd, text)
    out, at = "", 0
    while at < len(text):
        if text[at] != "$":
            out += text[at]
            at += 1
            continue
        end = at + 1
        if text[end : end + 1] == "{":
            end = text.find("}", end) + 1 or len(text)
        else:
            while end < len(text) and (text[end].isalnum() or text[end] == "_"):
                end += 1
        at = end
    return out
