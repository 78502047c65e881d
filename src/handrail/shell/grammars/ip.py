"""Words of ip (iproute2 6.1, ip(8)): the forms that show. Objects and actions may be shortened, options not."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word

OPTIONS = frozenset(
    "-4 -6 -0 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -r -s -stats -statistics -t "
    "-V -Version".split()
) - {"-r"}  # resolves names
OBJECTS = frozenset("a addr address l link r route ro n neigh neighbor neighbour ru rule maddr maddress".split())
# Not `s` alone, which is `set` for links.
SHOWS = frozenset("show list lst ls sh".split())
SHOWS_BY_S = OBJECTS - frozenset(("l", "link", "maddr", "maddress"))
# `show` takes names of interfaces, tables and kinds; words are limited to what those are made of.
WORD = re.compile(r"[A-Za-z0-9_.:/@-]+")
ADDRESS = re.compile(r"[0-9a-fA-F.:/]+")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    texts = [word.literal for word in words]
    while texts and texts[0] in OPTIONS:
        texts.pop(0)
    if not texts and words:
        return ()
    if not texts or texts[0] not in OBJECTS:
        raise UnclearError("ip without an object that is listed")
    if len(texts) == 3 and texts[0] in ("r", "ro", "route") and texts[1] == "get" and ADDRESS.fullmatch(texts[2] or ""):
        return ()
    if len(texts) > 1 and texts[1] not in SHOWS and not (texts[1] == "s" and texts[0] in SHOWS_BY_S):
        raise UnclearError(f"ip {texts[0]} {texts[1]} is not a listed way to show it")
    if not all(text is not None and WORD.fullmatch(text) for text in texts[2:]):
        raise UnclearError("a word that is not the name of something to show")
    return ()
