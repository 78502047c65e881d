"""Operands of zip, 7z and rar, some of which remove the files that they have packed."""

import re

from handrail.shell.grammars.tar import packed_away
from handrail.shell.model import Does, Effect, Word

MOVES = re.compile(r"-[A-Za-z]*m[A-Za-z]*\Z|--move\Z|-sdel\Z|-d[fwr]\Z|mf?\Z")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if any(MOVES.match(word.literal or "") for word in words):
        return packed_away(words, "packs files and removes them")
    return tuple(Effect(Does.READS, word, "reads this") for word in words)
