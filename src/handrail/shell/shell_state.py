"""
What commands change in the shell that runs them: its folder and its variables.

Builtins are followed where that is sure; after anything else nothing is known of what it may have changed.
"""

from collections.abc import Iterator

from handrail.lazy import lazy_pattern
from handrail.shell.listing import FED
from handrail.shell.model import POSITIONALS, Does, Piece, PieceKind, Segment, Word
from handrail.shell.scope import ANY_NAME, PLAIN_NAME, Scope, is_number_word
from handrail.shell.syntax import Compound, Script
from handrail.shell.verdict import ASSIGNMENT, Judgement
from handrail.shell.words import NAME

MOVERS = frozenset(("cd", "pushd", "popd", "eval", "source", "."))
MOVING = lazy_pattern(r"(?:\A|[\s;&|({!])(?:cd|pushd|popd|eval|source|\.)(?=\s|\Z)|[$`]")
DECLARING = frozenset("export declare typeset local readonly".split())
SETTING = frozenset("read printf mapfile readarray getopts let unset".split())  # with names of variables as words

# Programs and builtins that surely set no variable of the shell.
PLAIN_PROGRAMS = frozenset("[ test [[ echo cat head tail wc grep ls sed sort true false break continue sleep".split())

Way = tuple[Scope, Scope]  # the scope after success, and after failure


def bound_by(segment: Segment) -> Iterator[tuple[str, Word]]:
    """What a builtin puts into variables, with the names of these."""
    name, words = segment.name, segment.argv[1:]
    if name == "set":
        yield from ((POSITIONALS, word) for word in words)
    elif name in DECLARING:
        for word in words:
            if found := ASSIGNMENT.match(word.leading):
                yield found.group(1), word.cut(found.end())
    elif name == "printf" and len(words) > 2 and words[0].literal == "-v":
        yield from ((str(words[1]), word) for word in words[2:])
    elif name in ("read", "mapfile", "readarray"):
        anything = Word((Piece(PieceKind.INPUT, FED),))
        yield from ((word.literal, anything) for word in words if word.literal and NAME.fullmatch(word.literal))


def after(segment: Segment, found: Judgement, scope: Scope) -> Way:
    """What builtins that change the folder or variables leave behind; other commands change nothing known here."""
    if segment.name in ("pushd", "popd"):
        return scope._replace(folders=(None,)), scope
    if runs_here(segment, found):
        return (scope.forgetting({ANY_NAME}, moves=True),) * 2
    if segment.name in DECLARING | SETTING:
        texts = {word.leading for word in segment.argv[1:]}
        given = {match.group(1) for text in texts if (match := ASSIGNMENT.match(text))}
        given |= texts if segment.name in SETTING else set()
        for name in given & scope.variables.keys():
            scope = scope.with_variable(name, PieceKind.PARAMETER)
    if found.entry == "cd":
        target = next((effect.word for effect in found.effects if effect.does is Does.LOOKS), None)
        return scope.entering(target), scope
    if found.entry == "read":
        later = scope
        for word in segment.argv[1:]:
            if (text := word.literal) and PLAIN_NAME.match(text):
                later = later.with_variable(text, PieceKind.INPUT)
        return later, later  # a last line without its newline is read too, and counts as a failure
    return scope, scope


def runs_here(segment: Segment, found: Judgement) -> bool:
    """Whether it runs in this shell what may change the folder and the variables."""
    if segment.name in ("eval", "source", "."):
        return True
    if segment.name in ("trap", "alias"):
        return any(MOVING.search(effect.shell) for effect in found.effects if effect.shell is not None)
    return segment.name in ("command", "builtin") and any(
        effect.child and (effect.child[0].literal is None or effect.child[0].literal in MOVERS)
        for effect in found.effects
    )


def changes(scripts: tuple[Script, ...]) -> tuple[set[str], bool]:
    """The variables that scripts may set, and whether they may change the working folder; `$x` may be cd or read."""
    names, moves = set[str](), False
    for script in scripts:
        for pipeline, _ in script.items:
            for part in pipeline.parts:
                if isinstance(part, Compound):
                    inner, moved = changes(part.scripts)
                    names |= inner | {part.name}
                    moves = moves or moved
                    continue
                names |= {name for name, _ in (*part.assigns, *part.arrays)}
                first = part.words[0].literal if part.words else ""
                if first is None or first == "read":
                    names |= {ANY_NAME if word.literal is None else word.literal for word in part.words}
                if first in ("command", "builtin") and len(part.words) > 1:
                    first = next(
                        (text for word in part.words[1:] if not (text := word.literal or "").startswith("-")), ""
                    )
                names |= {ANY_NAME} if first in ("eval", "source", ".") else set()
                moves = moves or first is None or first in MOVERS
    return names, moves


def number_variables(scripts: tuple[Script, ...]) -> set[str]:
    """The variables that scripts set to whole numbers only, in plain assignments; none if anything else may set one."""
    numbers, others = set[str](), set[str]()
    for script in scripts:
        for pipeline, _ in script.items:
            for part in pipeline.parts:
                if isinstance(part, Compound):
                    inner = number_variables(part.scripts)
                    numbers |= inner
                    others |= {part.name} | (changes(part.scripts)[0] - inner)
                    continue
                for name, word in part.assigns:
                    (numbers if is_number_word(word) else others).add(name)
                others |= {name for name, _ in part.arrays}
                if part.words and part.words[0].literal not in PLAIN_PROGRAMS:
                    others.add(ANY_NAME)
    return set() if ANY_NAME in others else numbers - others
