"""Words that make a compiler or interpreter say its version and stop, where they are one word behind one dash."""

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word

# A word that the program at hand does not know ends it with an error.
VERSIONS = frozenset(
    "-v -version --version -fullversion --full-version -dumpversion -dumpfullversion -dumpmachine".split()
)


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) != 1 or words[0].literal not in VERSIONS:
        raise UnclearError("is read-only only with one word that asks for its version")
    return ()
