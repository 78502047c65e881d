"""
Values that a name says to be secret: `password=...`, `"api_key": "..."`, `<password>...</password>`, `--token ...`.

A value is quoted, stands without blanks around the sign, as the rest of a line, or behind a flag. Code is not touched:
a call, a variable or an attribute has no digit, or goes on behind what could be a value.
"""

import re
from collections.abc import Iterator, Sequence

from handrail.lazy import lazy_pattern

KEY_NAME = r"(?:api|access|account|application|private|preshared|encryption|signing|master)[_-]?key"
NAMES = (
    ("passw", r"passw(?:or)?d"),
    ("passphrase", "passphrase"),
    ("pass_phrase", "pass_phrase"),
    ("pass", r"(?:(?<=[_\-\"'.\n])|\A)pass"),
    ("pwd", r"(?<=[_\-\"'])pwd"),
    ("psk", r"(?<![a-z0-9])psk"),
    ("secret", r"secret(?:[_ -]?(?:access)?[_ -]?key(?:_base)?(?: \[\w{0,30}\])?)?"),
    ("token", "token"),
    ("apikey_private", "apikey_private"),
    ("key", rf"{KEY_NAME}\Z"),
)
"""What every name has in it, and the whole name."""
OF_PASSWORDS = ("pass", "pwd", "psk")
NAME_PARTS = (*OF_PASSWORDS, "secret", "token", "key")
"""One of these is in every name."""
BEFORE_KEY = len("application_")

_BARE = r"(?![$<{\[%(=])[^\s\"'\\,;&()<>{}$\[\]]"
_END = r"(?![\w(.\[])"
_QUOTE = r"\\{0,7}[\"'`]"
_QUOTED = r"(?![$<{\[%])[^\s\"'`\\]"
_DIGIT, _DIGIT_OR_SIGN = r"(?=[^\s\"']{0,300}?[0-9])", r"(?=[^\s\"']{0,300}?[0-9!@#%^*+~=])"
_TYPE = r"(?:\s{0,2}:\s{0,2}[A-Za-z][\w.\[\], |]{0,40}?(?=\s{0,4}=))?"


def _assigned_value(shortest: int, contains: str) -> str:
    """What stands behind a secret name; `contains`: what a value that may be a word must contain."""
    size = f"{{{shortest},300}}"
    bare = rf"({contains}{_BARE}{size}+){_END}"
    forms = (
        rf"\\{{0,7}}[\"']?{_TYPE}\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}[bBfFrRuU]{{0,2}}({_QUOTE})({_QUOTED}{size})\1",
        rf"{_QUOTE}\s{{0,4}},\s{{0,4}}({_QUOTE})({contains}{_QUOTED}{size})\3",
        rf"\(\s{{0,2}}({_QUOTE})({contains}{_QUOTED}{size})\5",
        rf"[\"']\s{{1,4}}value\s{{0,2}}=\s{{0,2}}([\"'])({_QUOTED}{size})\7",
        rf">((?![$<{{\[%])[^<\s]{size})</",
        rf"(?:=|%3[dD]){bare}",
        rf"[ \t]{{0,4}}[:=][ \t]{{1,4}}(?:[|>][+-]?[ \t]*\n[ \t]{{1,20}})?{bare}[ \t]*(?:[#;][^\n]*)?\r?$",
        rf"\\{{0,7}}[\"']?,?\s{{1,40}}\\{{0,7}}[\"']?[vV]alue\\{{0,7}}[\"']?:\s{{0,4}}{_QUOTE}({_QUOTED}{size}){_QUOTE}",
        rf"[\"']?\s{{1,40}}value:[ \t]{{1,4}}{bare}[ \t]*\r?$",
    )
    return rf"(?m:{'|'.join(forms)})"


PASSWORD_VALUE, KEY_VALUE = _assigned_value(4, _DIGIT_OR_SIGN), _assigned_value(16, _DIGIT)
PASSWORD_FLAG = rf"[ \t]{{1,4}}({_DIGIT_OR_SIGN}{_BARE}{{4,300}}+){_END}"
KEY_FLAG = rf"[ \t]{{1,4}}({_DIGIT}{_BARE}{{16,300}}+){_END}"
FLAG = lazy_pattern(r"(?<![\w-])--[A-Za-z-]*\Z")

# where nothing but a value can stand, it may be a word: a line of its own, an address, a connection string, a flag
_NUMBER = r"(?:[ \t]{0,8}\d{1,7}(?:\t|\\t|[:\N{RIGHTWARDS ARROW}]))?"  # of a line, as tools write it
WORD_LINE = lazy_pattern(
    rf"(?m:(?:^|\\n)(?:[^\s:]{{0,80}}:)?{_NUMBER}[-+<> ]{{0,2}}(?:export[ \t]{{1,4}})?[\w.-]{{0,40}}\Z)"
)  # also one inside JSON
WORD_PLACE = lazy_pattern(r"(?:[?&;][ \t]{0,2}[\w.-]{0,40}|(?<![\w-])--[A-Za-z-]{0,40})\Z")
LINE_WORD = rf"(?m:=({_BARE}{{4,300}}+)[ \t]*(?:\r?$|\\[nr]|\"))"
PLACE_WORD = rf"(?m:=({_BARE}{{4,300}}+)(?=[&;\s\"']|$))"
WORKING_FOLDER = lazy_pattern(r"(?i)([\"'])pwd\1\s{0,4}:\s{0,4}[\"']/")
NO_VALUES = frozenset(("none", "null", "true", "false", "undefined", "password", "passwd", "secret", "token", "pass"))
# a name with an underscore and a mixture that no word is: `setx AWS_SECRET_ACCESS_KEY ...`
KEY_BEHIND_BLANK = (
    r"[ \t]{1,4}((?=\S{0,300}?[0-9])(?=\S{0,300}?[a-z])(?=\S{0,300}?[A-Z])[A-Za-z0-9+/=_-]{20,300}+)(?![\w(.])"
)

# Session tokens are longer than what a name is followed by elsewhere; nothing else is so long without a blank.
LONG_VALUE = (
    rf"\\{{0,7}}[\"']?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}(?:{_QUOTE})?"
    r"((?=[^\s\"']{0,300}?[0-9])(?=[^\s\"']{0,300}?[A-Z])[\w+/=.%~-]{301,}+)"
)


def assigned_values(text: str, small: str, parts: Sequence[str]) -> Iterator[tuple[int, int, bool]]:
    """
    Where such values stand, and whether they are passwords. Names are searched first, because values are slow.

    `small` is the text in small letters, each in its place; `parts` are those of `NAME_PARTS` that are in it.
    """
    long = (0, 0)
    for is_password, start, end in _names(small, parts):
        if long[0] <= start < long[1] or text[end : end + 1].isalnum():
            continue  # `tokens`: no value begins with a letter or a digit, and patterns take 2 ms to compile
        value = _password(text, start, end) if is_password else _key(text, start, end)
        if value is None and (value := re.compile(LONG_VALUE).match(text, end)) is not None:
            long = value.span(1)
        if value is not None and value.lastindex is not None:
            yield *value.span(value.lastindex), is_password


def _password(text: str, start: int, end: int) -> re.Match[str] | None:
    value = re.compile(PASSWORD_VALUE).match(text, end)
    if value is not None and WORKING_FOLDER.match(text, max(start - 1, 0)):
        return None
    before = max(start - 160, 0)
    if value is None and FLAG.search(text, before, start):
        value = re.compile(PASSWORD_FLAG).match(text, end)
    if value is None and text.startswith("=", end):
        is_line = WORD_LINE.search(text, before, start) is not None
        shape = LINE_WORD if is_line else PLACE_WORD if WORD_PLACE.search(text, before, start) else ""
        value = re.compile(shape).match(text, end) if shape else None
        if value is not None and value[1].lower() in NO_VALUES:
            return None
    return value


def _key(text: str, start: int, end: int) -> re.Match[str] | None:
    value = re.compile(KEY_VALUE).match(text, end)
    if value is None and FLAG.search(text, max(start - 64, 0), start):
        value = re.compile(KEY_FLAG).match(text, end)
    if value is None and "_" in text[max(start - 1, 0) : end]:
        value = re.compile(KEY_BEHIND_BLANK).match(text, end)
    return value


def _names(small: str, parts: Sequence[str]) -> Iterator[tuple[bool, int, int]]:
    """Where names of passwords (True) and keys stand. What they have in them is found much sooner than a pattern."""
    for part, shape in NAMES:
        at = small.find(part) if any(each in part for each in parts) else -1
        if at < 0:
            continue  # most texts have none of them, and then no pattern is compiled
        pattern = re.compile(shape)
        while at >= 0:
            end = at + len(part)
            name = pattern.search(small, max(at - BEFORE_KEY, 0), end) if part == "key" else pattern.match(small, at)
            if name is not None:
                yield part.startswith(OF_PASSWORDS), *name.span()
            at = small.find(part, end)
