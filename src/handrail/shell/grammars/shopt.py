"""
Options of `shopt` (bash 5.2, The Shopt Builtin): those that make a pattern match no more files than it does without.

Not among them: globstar and nocaseglob make it match more, extglob changes how the line is read,
expand_aliases and lastpipe change what runs where.
"""

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word

NAMES = frozenset("nullglob failglob nocasematch globasciiranges".split())
FLAGS = frozenset(("-s", "-u", "-q", "-p", "-qs", "-sq"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        if word.literal not in NAMES and word.literal not in FLAGS:
            raise UnclearError(f"shopt {word} is not read", word.start, word.end, "command")
    return ()
