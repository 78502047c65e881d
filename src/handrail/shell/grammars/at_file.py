"""Words of the GNU binutils: one that begins with `@` names a file with more options in it."""

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word


def read(text: str) -> tuple[Effect, ...]:
    if text.startswith("@"):
        raise UnclearError(f"{text} is a file with options in it")
    return ()


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        if not word.prefix or word.prefix.startswith("@"):
            raise UnclearError(f"{word} could be a file with options in it", word.start, word.end)
    return tuple(Effect(Does.READS, word, "reads this") for word in words)
