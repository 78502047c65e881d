"""
Operands of git: revisions and pathspecs (gitrevisions(7), gitglossary(7) "pathspec").

Which of the two a word is depends on the repository, so every word counts as a path that is read, too. Neither can
name a file outside the repository, except as a plain path (git diff compares any two files).

    rev:path  :path  :2:path      a file of a commit or of the index
    :(top,icase)path  :/path      a path with magic; `:/text` is also a search for a commit
    :!path  :^path  :(exclude)p   left out, hence not read
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word, literal_word

MAGIC = frozenset(("top", "literal", "icase", "glob", "exclude"))
LONG = re.compile(r":\(([^()]*)\)")
SHORT = re.compile(r":([/!^]+):?")
STAGE = re.compile(r":(?:[0-3]:)?")


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(effect for word in words or (literal_word("."),) for effect in one(word))


def one(word: Word) -> list[Effect]:
    text = word.literal
    if text is None:
        if ":" in word.prefix:
            raise UnclearError(f"{word} may be a pathspec with magic", word.start, word.end, "pathspec")
        return [reads(word)]
    if ":" not in text:
        return [reads(word)]
    if text.startswith(":"):
        path = magic(text, word)
        return [] if path is None else [reads(literal_word(path or ".", word.start, word.end))]
    return [reads(word), reads(literal_word(text.partition(":")[2] or ".", word.start, word.end))]


def reads(word: Word) -> Effect:
    return Effect(Does.READS, word, "shows this")


def magic(text: str, word: Word) -> str | None:
    """The path behind the magic, or None if it is left out."""
    if text.startswith(":("):
        found = LONG.match(text)
        names = found.group(1).split(",") if found else ["?"]
        if found is None or not all(name in MAGIC or name.startswith("attr:") or not name for name in names):
            raise UnclearError(f"{text!r} has magic that is not read", word.start, word.end, "pathspec")
        return None if "exclude" in names else text[found.end() :].lstrip("/" if "top" in names else "")
    if found := SHORT.match(text):
        return None if set("!^") & set(found.group(1)) else text[found.end() :].lstrip("/")
    stage = STAGE.match(text)
    return text[stage.end() :] if stage else text
