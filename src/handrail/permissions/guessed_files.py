"""
Files that a command may write although no table says so: words of programs that are not described in full, and names
that another command of the line hands it (`echo x | xargs tee`, `tee "$(echo x)"`).
"""

from collections.abc import Iterator

from handrail.permissions.possible_files import cuts
from handrail.shell.model import HARMLESS, Analysis, CommandVerdict, Does, PieceKind, Segment, literal_word
from handrail.shell.removals import Follower, Line, Removal
from handrail.shell.shell_state import DECLARING

MAX_GUESSED = 40


def guessed_texts(segment: Segment) -> Iterator[tuple[str, str]]:
    """The texts in the words of a command that may be names of files, each with a folder that it is seen from."""
    if not is_described(segment):
        told = told_words(segment)
        for word in segment.argv[1 : MAX_GUESSED + 1]:
            if (word.start, word.end) not in told:
                yield from ((text, folder or "") for text in texts_in(word.literal or "") for folder in segment.cwds)


def texts_in(text: str) -> Iterator[str]:
    """The word, and what stands behind an option or a separator in it; a text with blanks is no list of files."""
    yield text
    if text and not any(map(str.isspace, text)):
        yield from {str(cut) for cut in cuts(literal_word(text))} - {text}


def is_described(segment: Segment) -> bool:
    """Whether the tables say of every word of a command whether it is a file that is written."""
    return bool(segment.entry) and not any(
        effect.does not in HARMLESS
        and effect.does is not Does.SECRET
        and (effect.does is not Does.WRITES or (effect.word is None and not writes_words(segment)))
        for effect in segment.effects
    )


def writes_words(segment: Segment) -> bool:
    """Whether the tables name words that it writes; the shell writes the targets of redirections."""
    targets = {(redirection.target.start, redirection.target.end) for redirection in segment.redirections}
    return any((word.start, word.end) not in targets for word in segment.writes)


def told_words(segment: Segment) -> set[tuple[int, int]]:
    """Where the words stand that it only runs, or puts into variables."""
    words = [word for effect in segment.effects for word in effect.child]
    words += [effect.word for effect in segment.effects if effect.does is Does.STARTS and effect.word is not None]
    words += segment.argv if segment.name in DECLARING else ()
    return {(word.start, word.end) for word in words}


def handed_words(analysis: Analysis) -> Iterator[tuple[int, Removal]]:
    """What the unknown words of commands that write may stand for, as far as the line says it."""
    line = Line(analysis)
    for part, segment in enumerate(analysis.segments):
        if segment.verdict is CommandVerdict.READ_ONLY:
            continue
        targets = [redirection.target for redirection in segment.redirections]
        for word in (*segment.argv[1 : MAX_GUESSED + 1], *targets):
            if any(piece.kind not in (PieceKind.LITERAL, PieceKind.GLOB) for piece in word.pieces):
                yield from ((part, found) for found in Follower(line, guesses=False).follow(segment, word))
