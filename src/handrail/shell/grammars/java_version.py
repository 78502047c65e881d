"""java and javac: only the single word that asks for the version. Options like -jar or @file start programs."""

from handrail.shell.gate import UnclearError
from handrail.shell.model import Effect, Word


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) != 1 or words[0].literal not in ("-version", "--version"):
        raise UnclearError("only the version is read-only")
    return ()
