"""Words of programs that show the machine, time, versions and manuals."""

import re
from collections.abc import Iterator

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word, literal_word

# Words of ps (procps-ng 4.0, ps(1); macOS ps(1)).
#
# The letter `e` without a dash and `-E` show the environment of processes. When ps cannot read its options, it reads
# all of them again as if they had no dash (`ps -e -aux`), so beside `-e` only options are listed that it can always
# read.

PS_LETTERS = re.compile(r"-?[aAcdfFghHjlLmMNrsSTuvwxXyZ]+")
BESIDE_E = re.compile(r"-[AdefFHjlLw]+o?|-p")
ENVIRONMENT = re.compile(r"-?[aefuwxE]+")
FORMATS = re.compile(r"-?[aAcdefFHjlLmwxu]*o|--format")
FORMAT = re.compile(r"(?!.*env)[a-z_%,=:0-9 ]+")  # a column `environ` is known to some
NUMBERS = re.compile(r"[0-9]+(?:,[0-9]+)*")
NAMES = re.compile(r"[A-Za-z0-9_.,-]+")
NUMBERED = frozenset(("-p", "--pid", "--ppid", "-q", "p"))
NAMED = frozenset(("-C", "-u", "-U", "-t", "-g", "-G", "-s", "--user", "--User", "--group", "--tty", "--sid"))
LONG = re.compile(
    r"--(no-headers?|headers?|forest|deselect|cumulative|info|version|help)|--sort=[a-z_,+%-]+|--(width|cols|columns|rows|"
    r"lines)=[0-9]+|--format=(?!.*env)[a-z_%,=:0-9 ]+|--p?pid=[0-9,]+"
)


def ps(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    options = list(split(words))
    short = [text for text in options if not text.startswith("--")]
    if any("e" in text.lower() for text in short) and not all(
        text == "-o" or BESIDE_E.fullmatch(text) for text in short
    ):
        return (Effect(Does.SECRET, None, "may show the environment of processes"),)
    return ()


def split(words: tuple[Word, ...]) -> Iterator[str]:
    """The options, without the values that follow them. Raises UnclearError for what is not listed."""
    left = list(words)
    while left:
        word = left.pop(0)
        text, following = word.literal, left[0].literal if left else None
        if text is None:
            raise UnclearError(f"{word} could become an option", word.start, word.end, "ps")
        if following is not None and takes(text, following):
            del left[0]
        elif not any(form.fullmatch(text) for form in (LONG, PS_LETTERS, BESIDE_E, NUMBERS, ENVIRONMENT)):
            raise UnclearError(f"option {text!r} of ps is not listed", word.start, word.end, "ps")
        yield text


def takes(option: str, value: str) -> bool:
    return bool(
        (FORMATS.fullmatch(option) and FORMAT.fullmatch(value))
        or (option in NUMBERED and NUMBERS.fullmatch(value))
        or (option in NAMED and NAMES.fullmatch(value))
    )


# Words of lsof (lsof 4.95, lsof(8)): options with optional values, and network addresses that may be looked up.

LSOF_LETTERS = "ablnNPRtUvVX"
# No host names: lsof would ask the network for them.
LSOF_ADDRESS = r"(?:[46]?(?:TCP|UDP|tcp|udp)?(?:@(?:localhost|[0-9]+(?:\.[0-9]+){3}))?(?::[A-Za-z0-9,-]+)?)"
FLAGS = re.compile(rf"-[{LSOF_LETTERS}]+|[+-]w|-s(?:TCP|UDP):[A-Z_,^]+")
INTERNET = re.compile(rf"-[{LSOF_LETTERS}]*i{LSOF_ADDRESS}")
WITH_NEXT = re.compile(rf"-[{LSOF_LETTERS}]*[pucds]")
NEXT = re.compile(r"[A-Za-z0-9_.,:^/-]+")
FOLDERS = frozenset(("+D", "+d"))


def lsof(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    left = list(words)
    effects: list[Effect] = []
    while left:
        word = left.pop(0)
        text = word.literal
        if text is None or not text.startswith(("-", "+")):
            if word.may_be_option or word.prefix.startswith("+"):
                raise UnclearError(f"{word} could become an option", word.start, word.end, "lsof")
            effects.append(Effect(Does.LOOKS, word, "lists who has this open"))
        elif text in FOLDERS and left and left[0].single and ":" not in str(left[0]):
            effects.append(Effect(Does.LOOKS, left.pop(0), "lists who has files in it open"))
        else:
            option(text, left)
    return tuple(effects)


def option(text: str, left: list[Word]) -> None:
    following = left[0].literal if left else None
    if INTERNET.fullmatch(text):
        # Behind a bare -i the next word is an address, unless it is an option.
        if text.endswith("i") and left and (following is None or not following.startswith(("-", "+"))):
            if not re.fullmatch(LSOF_ADDRESS, following or "?"):
                raise UnclearError(f"{left[0]} may be a host that is looked up", node="lsof")
            del left[0]
    elif WITH_NEXT.fullmatch(text) and following is not None and NEXT.fullmatch(following):
        del left[0]
    elif not FLAGS.fullmatch(text):
        raise UnclearError(f"option {text!r} of lsof is not listed", node="lsof")


# Words of ip (iproute2 6.1, ip(8)): the forms that show. Objects and actions may be shortened, options not.

OPTIONS = frozenset(  # not -r, which resolves names
    "-4 -6 -0 -br -brief -c -color -d -details -h -human -j -json -o -oneline -p -pretty -s -stats -statistics -t -V "
    "-Version".split()
)
OBJECTS = frozenset("a addr address l link r route ro n neigh neighbor neighbour ru rule maddr maddress".split())
ROUTES = frozenset(("r", "ro", "route"))
# Not `s` alone, which is `set` for links.
SHOWS = frozenset("show list lst ls sh".split())
SHOWS_BY_S = OBJECTS - frozenset(("l", "link", "maddr", "maddress"))
# `show` takes names of interfaces, tables and kinds; words are limited to what those are made of.
WORD = re.compile(r"[A-Za-z0-9_.:/@-]+")
IP_ADDRESS = re.compile(r"[0-9a-fA-F.:/]+")


def ip(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    texts = [word.literal for word in words]
    while texts and texts[0] in OPTIONS:
        texts.pop(0)
    if not texts and words:
        return ()
    if not texts or texts[0] not in OBJECTS:
        raise UnclearError("ip without an object that is listed")
    if texts[0] in ROUTES and texts[1:2] == ["get"] and len(texts) == 3 and IP_ADDRESS.fullmatch(texts[2] or ""):
        return ()
    if len(texts) > 1 and texts[1] not in SHOWS and not (texts[1] == "s" and texts[0] in SHOWS_BY_S):
        raise UnclearError(f"ip {texts[0]} {texts[1]} is not a listed way to show it")
    if not all(text is not None and WORD.fullmatch(text) for text in texts[2:]):
        raise UnclearError("a word that is not the name of something to show")
    return ()


# Filters of ss (iproute2 6.1, ss(8)): states and ports. Addresses are left out, since names are looked up.

KEYWORD = frozenset("state exclude sport dport = == != >= <= > < eq ne ge le gt lt and or not ( ) & | !".split())
FILTER_WORD = re.compile(
    r":[a-z0-9-]+|all|connected|synchronized|bucket|big|established|syn-(sent|recv)|fin-wait-[12]|time-wait|closed|"
    r"close-wait|last-ack|listen(ing)?|closing"
)


def ss_filter(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        text = word.literal
        if text is None or not all(part in KEYWORD or FILTER_WORD.fullmatch(part) for part in text.split()):
            raise UnclearError(f"{word} in a filter of ss", word.start, word.end, "ss")
    return ()


# The operand of date: an output format. Any other operand is a new time for the clock.


def date_format(text: str) -> tuple[Effect, ...]:
    return () if text.startswith("+") else (Effect(Does.STATE, literal_word(text), "sets the clock"),)


# Names of manual pages and sections. With a slash in it, man takes the word for a file and formats that.

NAME = re.compile(r"[A-Za-z0-9_.,:+@\[{ ^$*?|()-]+")


def man_page(text: str) -> tuple[Effect, ...]:
    if not NAME.fullmatch(text):
        raise UnclearError(f"{text!r} may be a file that is formatted")
    return ()


# Words that make a compiler or interpreter say its version and stop, where they are one word behind one dash.

# A word that the program at hand does not know ends it with an error.
VERSIONS = frozenset(
    "-v -version --version -fullversion --full-version -dumpversion -dumpfullversion -dumpmachine".split()
)


def version_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) != 1 or words[0].literal not in VERSIONS:
        raise UnclearError("is read-only only with one word that asks for its version")
    return ()


# Words of `openssl x509` (OpenSSL 3.0, openssl-x509(1)) that only show a certificate. With a colon it is an address.

CERTIFICATE_PARTS = frozenset(
    "-noout -text -subject -issuer -dates -startdate -enddate -serial -fingerprint -sha256 -sha1 -pubkey -email "
    "-ext subjectAltName".split()
)


def certificate(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    left, effects = list(words), list[Effect]()
    while left:
        word = left.pop(0)
        if word.literal == "-in" and left and left[0].single and ":" not in str(left[0]):
            effects.append(Effect(Does.READS, left.pop(0), "shows this certificate"))
        elif word.literal not in CERTIFICATE_PARTS:
            raise UnclearError(f"{word} of openssl x509 is not read", word.start, word.end)
    return tuple(effects)
