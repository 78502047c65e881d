"""
Lists the commands that a line we cannot parse might run. It lists too many rather than too few, so only deny and ask
rules may use it.

No grammar is followed here. The text is cut at every character that can end a command, quotes are taken away, and what
stood inside them is cut again; every word that could name a program begins a possible command.
"""

import re
import unicodedata
from collections.abc import Iterator
from functools import lru_cache

from handrail.lazy import lazy_pattern
from handrail.shell import tables
from handrail.shell.gate import MAX_BYTES
from handrail.shell.tables.format import CARRIERS, Unless

MAX_TEXT = 131_072  # the longest text Linux hands to `sh -c`
MAX_WORDS = 12
MAX_VALUES = 4
MAX_DEPTH = 4

Words = tuple[str, ...]

TOKEN = lazy_pattern(
    r"""
      (?P<ansi>\$'(?:[^'\\]|\\.)*(?:'|\Z))
    | (?P<single>'[^']*(?:'|\Z))
    | (?P<double>\$?"(?:[^"\\]|\\.)*(?:"|\Z))
    | (?P<escape>\\.?)
    | (?P<here>[0-9]*<<<)  # a text that comes in as if echo printed it
    | (?P<redirect>[0-9]*(?:&>>?|[<>]&|<<-?|>>|>\||<>|[<>](?!\()))
    | (?P<cut>[;&|()`\n]|\$\(|[<>]\()
    | (?P<blank>[ \t]+)
    | (?P<plain>[^;&|()`\n\s<>'"\\$]+|.)
    """,
    re.VERBOSE | re.DOTALL,
)
ASSIGNMENT = lazy_pattern(r"([A-Za-z_]\w*)\+?=(.*)\Z", re.DOTALL)
PARAMETER = lazy_pattern(r"\$(?:([A-Za-z_]\w*)|\{!?([A-Za-z_]\w*)[^}]*\}?)")
LEADING = frozenset(
    "if then elif else while until do time ! { } coproc function select for case in esac fi done".split()
)
ANSI_ESCAPE = lazy_pattern(
    r"\\(?:x([0-9A-Fa-f]{1,2})|u([0-9A-Fa-f]{1,4})|U([0-9A-Fa-f]{1,8})|([0-7]{1,3})|(.))", re.DOTALL
)
CUTS = str.maketrans(dict.fromkeys(";&|()`$<>{},/\n=", " "))
QUOTED_TEXT = lazy_pattern(r"[\s;&|]")  # in a word only if quoted
MAY_BE_TEXT = lazy_pattern(r"[\s;&|`$(]")


@lru_cache(maxsize=64)  # all commands of a line may be given the same text
def possible_commands(text: str) -> tuple[Words, ...]:
    """Words of every command the text might run, the name without its folder first."""
    if len(text) > MAX_BYTES:
        return windows(text[:MAX_TEXT])
    found: dict[Words, None] = {}
    values: dict[str, list[str]] = {}
    fragments = list(dict.fromkeys(tuple(words) for words in cut(visible(text), 0) if words))
    for words in fragments:
        for word in words:
            if setting := ASSIGNMENT.match(word):
                values.setdefault(setting[1], []).append(setting[2])
    for words in fragments:
        for variant in variants(words, values):
            found.update(dict.fromkeys(beginnings(variant)))
    return tuple(found)


def windows(text: str) -> tuple[Words, ...]:
    """For a text too long to look at closely: any three words in a row."""
    words = re.sub(r"['\"\\]", "", text).translate(CUTS).split()
    return tuple(dict.fromkeys(zip(words, [*words[1:], ""], [*words[2:], "", ""], strict=False)))


def visible(text: str) -> str:
    """The text as it looks: odd blanks as blanks, joined lines joined, nothing that is not drawn."""
    text = text.replace("\\\n", "")
    if text.isascii() and text.isprintable():
        return text
    return "".join(map(as_seen, text))


def as_seen(char: str) -> str:
    if char in "\t\n" or (char.isascii() and char.isprintable()):
        return char
    category = unicodedata.category(char)
    return " " if char.isspace() or category == "Zs" else "" if category in ("Cc", "Cf") else char


def cut(text: str, depth: int, substituted: str = "") -> Iterator[list[str]]:
    """
    The words between two places where a command could end, and those of quoted texts.

    `substituted` stands in the words for what a substitution prints.
    """
    words: list[str] = []
    inner: list[str] = []
    joined, skip, backquotes = False, False, 0
    for found in TOKEN.finditer(text):
        kind, token = found.lastgroup, found.group()
        if kind in ("cut", "here"):
            backquotes += token.count("`")
            begins = token.startswith("$") or (token.startswith("`") and backquotes % 2)
            yield append(words, substituted if begins else "", joined=joined)
            inner += filter(QUOTED_TEXT.search, words)
            words, joined, skip = ["echo"] if kind == "here" else [], False, False
        elif kind == "blank":
            joined = False
        elif kind == "redirect":
            joined, skip = False, True
        else:
            plain = unquote(kind or "", token)
            if kind in ("ansi", "single", "double") and MAY_BE_TEXT.search(plain):
                inner.append(plain)
            if joined:
                words[-1] += plain
            elif skip:  # the target of a redirection; what follows it without a blank is lost with it
                skip = False
                words.append("")
                joined = True
                continue
            else:
                words.append(plain)
            joined = True
    yield words
    inner += filter(QUOTED_TEXT.search, words)
    if depth < MAX_DEPTH:
        for quoted in dict.fromkeys(inner):
            yield from cut(quoted, depth + 1, substituted)


def append(words: list[str], text: str, *, joined: bool) -> list[str]:
    if text:
        words[-1:] = [words[-1] + text] if joined else [*words[-1:], text]
    return words


def unquote(kind: str, token: str) -> str:
    match kind:
        case "ansi":
            return ANSI_ESCAPE.sub(ansi, token[2:].removesuffix("'"))
        case "single":
            return token[1:].removesuffix("'")
        case "double":
            return re.sub(r'\\([$`"\\\n])', r"\1", token.removeprefix("$")[1:].removesuffix('"'))
        case "escape":
            return token[1:]
        case _:
            return token


def ansi(found: re.Match[str]) -> str:
    code = int(found[1] or found[2] or found[3] or "0", 16) or int(found[4] or "0", 8)
    return chr(code) if 0 < code < 0x110000 else found[5] or ""


def variants(given: Words, values: dict[str, list[str]]) -> Iterator[list[str]]:
    """The words with parameters replaced by what the text sets them to, and with braces taken apart."""
    words = [word for word in given if word]
    if any("{" in word and "," in word for word in words):
        yield words  # the braces may have been quoted
        words = [part for word in words for part in (re.split("[{},]+", word) if "," in word else [word]) if part]
    used = [values[name] for word in words if (name := parameter(word)) in values]
    for at in range(min(max(map(len, used), default=1), MAX_VALUES)):
        yield [part for word in words for part in fill_parameter(word, values, at)]


def fill_parameter(word: str, values: dict[str, list[str]], at: int) -> list[str]:
    known = values.get(parameter(word))
    return known[min(at, len(known) - 1)].split() if known else [word]


def parameter(word: str) -> str:
    """The name of the variable, if the word is nothing but one."""
    found = PARAMETER.fullmatch(word)
    return (found[1] or found[2]) if found else ""


def beginnings(words: list[str]) -> Iterator[Words]:
    """Where a command could begin in these words: at the first, and anywhere behind one that may run another."""
    first = True
    for at, word in enumerate(words):
        if first and (word in LEADING or ASSIGNMENT.match(word)):
            continue
        name = word.rpartition("/")[2]
        name = name.lstrip(":!+") or name
        yield (name, *words[at + 1 : at + MAX_WORDS])
        if first and not may_run(name):
            return
        first = False


def may_run(name: str) -> bool:
    """False for a program that is known and takes no command."""
    entry = tables.lookup(name)
    if entry is None:
        return True
    uses = [wanted.role if isinstance(wanted, Unless) else wanted for wanted in entry.operands]
    return entry.expression in ("files.find", "builtins.alias") or not CARRIERS.isdisjoint(
        [*uses, entry.rest, *entry.values.values()]
    )
