"""
The beginnings of commands in texts that a line runs, up to what is not known before it runs.

A shell evaluates texts in places where no command is expected: `declare 'a[$(rm x)]=1'`, `PS4`, `${x@P}`. What it finds
there is read as the body of a here-document, which has the same substitutions. For rules that deny or ask.
"""

import re
from collections.abc import Iterator
from functools import lru_cache

from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.permissions.command_parts import parts_of
from handrail.permissions.wildcards import WORD_END
from handrail.shell import tables
from handrail.shell.analysis import analyse
from handrail.shell.model import Analysis, PieceKind, Segment, Word
from handrail.shell.text_programs import fed_text, written_scripts
from handrail.shell.unknown_names import has_unknown_name, runs_unknown_name
from handrail.shell.wrapped_commands import is_evaluated, written_text

# Those of bash that may evaluate a word, or put it where it is evaluated; other programs do nothing of this kind.
BUILTINS = frozenset(
    """
    [ [[ . alias bg bind break builtin caller cd command compgen complete compopt continue declare dirs disown enable
    eval exec exit export fc fg getopts hash history jobs kill let local logout mapfile popd printf pushd read readarray
    readonly return set shift shopt source suspend test trap typeset ulimit umask unalias unset wait
    """.split()
)
DEFINITION = lazy_pattern(r"\(\s*\)|\bfunction\b|\balias\b")
PLAIN_BACKQUOTES = lazy_pattern(r"`([^`\\$'\"()#]*)`")  # the same as $(...)
# Behind one of these a word may be evaluated that other commands of the line have made.
EVALUATES = lazy_pattern(r"\b(?:declare|typeset|local|export|readonly|unset|let|printf -v|-v)\b|\[\[|@P|\(\(|\$\[")
MAX_TEXTS = 20


class InTexts(NamedTuple):
    """What the texts of a line run."""

    openings: frozenset[str] = frozenset()
    """The known beginning of each command whose rest is not known; an empty one if not even its name is."""
    commands: frozenset[str] = frozenset()
    """All spellings of the commands that a shell finds in texts it evaluates, or that options and variables name."""


UNKNOWN = InTexts(frozenset(("",)))


@lru_cache(maxsize=1024)
def commands_in_line(command: str) -> InTexts:
    """What the texts of a command line run; the result is cached."""
    return commands_in_texts(analyse(command))


def commands_in_texts(analysis: Analysis) -> InTexts:
    if analysis.problems or any(map(runs_unknown_name, analysis.segments)) or splits_names(analysis):
        return UNKNOWN
    if any(map(has_unknown_name, written_scripts(analysis.segments))):
        return UNKNOWN
    texts = [*map(written_text, evaluated_words(analysis))]
    texts += [text for segment in evaluating_segments(analysis) for text in fed_text(segment)[0]]
    texts = list(dict.fromkeys(filter(is_evaluated, texts)))
    if len(texts) > MAX_TEXTS:
        return UNKNOWN
    found = [commands_of(text) for text in texts]
    named = (command for segment in analysis.segments for command in named_commands(segment))
    return InTexts(
        frozenset(opening for each in found for opening in each.openings),
        frozenset(command for each in found for command in each.commands).union(named),
    )


def splits_names(analysis: Analysis) -> bool:
    """Whether the name of a command is cut out of a value at other characters than blanks: `IFS=,; x=rm,y; $x`."""
    if not any(binding.name == "IFS" for binding in analysis.bindings):
        return False
    names = [segment.argv[0] for segment in analysis.segments if segment.argv]
    return any(piece.kind is not PieceKind.LITERAL for name in names for piece in name.pieces)


def named_commands(segment: Segment) -> Iterator[str]:
    """The commands that options and variables may name: `npm --script-shell=rm`, `FCEDIT=rm fc`."""
    if not segment.argv or _only_output_changes(segment):
        return
    words = [str(word) for word in segment.argv[1:]]
    given = [word for word in words if word.startswith(("|", "!")) or (word.startswith("-") and "=" in word)]
    for text in (*given, *(str(word) for _, word in segment.env)):
        name, *rest = text.rpartition("=")[2].lstrip("|! ").split() or [""]
        yield WORD_END.join((name.rpartition("/")[2], *rest))


def _only_output_changes(segment: Segment) -> bool:
    """Whether all that it does besides reading is to write its output somewhere: `git log --grep='rm x' > f`."""
    targets = [redirection.target for redirection in segment.redirections]
    return all(any(each.start <= reason.start < each.end for each in targets) for reason in segment.reasons)


def evaluated_words(analysis: Analysis) -> Iterator[Word]:
    yield from (binding.word for binding in analysis.bindings)
    yield from (word for segment in analysis.segments for _, word in segment.env)
    yield from (word for segment in evaluating_segments(analysis) for word in segment.argv[1:])


def evaluating_segments(analysis: Analysis) -> list[Segment]:
    """Those of builtins and of functions of the line; all, if it evaluates what may come from any of them."""
    if EVALUATES.search(analysis.text):
        return list(analysis.segments)
    defines = DEFINITION.search(analysis.text) is not None
    return [
        segment
        for segment in analysis.segments
        if segment.name in BUILTINS or (defines and tables.lookup(segment.name) is None)
    ]


def commands_of(text: str) -> InTexts:
    """What bash runs when it expands the text."""
    text = PLAIN_BACKQUOTES.sub(r"$(\1)", text)
    end = "E"
    while re.search(rf"^{end}$", text, re.MULTILINE):
        end += "E"
    inner = analyse(f"cat <<{end}\n{text}\n{end}\n")
    deeper, parts = commands_in_texts(inner), parts_of(inner)
    guesses = (WORD_END.join(words) for words in (*inner.suspects, *inner.guesses))
    return InTexts(
        deeper.openings.union(opening for part in parts for opening in part.openings),
        deeper.commands.union((command for part in parts for command in part.suspects), guesses),
    )
