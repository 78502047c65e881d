"""Filters of ss (iproute2 6.1, ss(8)): states and ports. Addresses are left out, since names are looked up."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Effect, Word

KEYWORD = frozenset("state exclude sport dport = == != >= <= > < eq ne ge le gt lt and or not ( ) & | !".split())
STATE = re.compile(r"all|connected|synchronized|bucket|big|established|syn-(sent|recv)|fin-wait-[12]|time-wait|closed|"
                   r"close-wait|last-ack|listen(ing)?|closing")  # fmt: skip
PORT = re.compile(r":[a-z0-9-]+")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        text = word.literal
        if text is None or not all(known(part) for part in text.split()):
            raise UnclearError(f"{word} in a filter of ss", word.start, word.end, "ss")
    return ()


def known(part: str) -> bool:
    return part in KEYWORD or bool(STATE.fullmatch(part) or PORT.fullmatch(part))
