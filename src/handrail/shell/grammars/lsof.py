"""Words of lsof (lsof 4.95, lsof(8)): options with optional values, and network addresses that may be looked up."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word

LETTERS = "ablnNPRtUvVX"
# No host names: lsof would ask the network for them.
ADDRESS = r"(?:[46]?(?:TCP|UDP|tcp|udp)?(?:@(?:localhost|[0-9]+(?:\.[0-9]+){3}))?(?::[A-Za-z0-9,-]+)?)"
FLAGS = re.compile(rf"-[{LETTERS}]+|[+-]w|-s(?:TCP|UDP):[A-Z_,^]+")
INTERNET = re.compile(rf"-[{LETTERS}]*i{ADDRESS}")
WITH_NEXT = re.compile(rf"-[{LETTERS}]*[pucds]")
NEXT = re.compile(r"[A-Za-z0-9_.,:^/-]+")
FOLDERS = frozenset(("+D", "+d"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    left = list(words)
    effects: list[Effect] = []
    while left:
        word = left.pop(0)
        text = word.literal
        if text is None or not text.startswith(("-", "+")):
            if word.may_be_option or word.prefix.startswith("+"):
                raise UnclearError(f"{word} could become an option", word.start, word.end, "lsof")
            effects.append(Effect(Does.LOOKS, word, "lists who has this open"))
        elif text in FOLDERS and left and left[0].single:
            effects.append(Effect(Does.LOOKS, left.pop(0), "lists who has files in it open"))
        else:
            option(text, left)
    return tuple(effects)


def option(text: str, left: list[Word]) -> None:
    following = left[0].literal if left else None
    if INTERNET.fullmatch(text):
        # Behind a bare -i the next word is an address, unless it is an option.
        if text.endswith("i") and left and (following is None or not following.startswith(("-", "+"))):
            if not re.fullmatch(ADDRESS, following or "?"):
                raise UnclearError(f"{left[0]} may be a host that is looked up", node="lsof")
            del left[0]
    elif WITH_NEXT.fullmatch(text) and following is not None and NEXT.fullmatch(following):
        del left[0]
    elif not FLAGS.fullmatch(text):
        raise UnclearError(f"option {text!r} of lsof is not listed", node="lsof")
