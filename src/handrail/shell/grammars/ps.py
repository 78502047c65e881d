"""
Words of ps (procps-ng 4.0, ps(1); macOS ps(1)).

The letter `e` without a dash and `-E` show the environment of processes. When ps cannot read its options, it reads all
of them again as if they had no dash (`ps -e -aux`), so beside `-e` only options are listed that it can always read.
"""

import re
from collections.abc import Iterator

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word

LETTERS = re.compile(r"-?[aAcdfFghHjlLmMNrsSTuvwxXyZ]+")
BESIDE_E = re.compile(r"-[AdefFHjlLw]+o?|-p")
ENVIRONMENT = re.compile(r"-?[aefuwxE]+")
FORMATS = re.compile(r"-?[aAcdefFHjlLmwxu]*o|--format")
FORMAT = re.compile(r"(?!.*env)[a-z_%,=:0-9 ]+")  # a column `environ` is known to some
NUMBERS = re.compile(r"[0-9]+(?:,[0-9]+)*")
NAMES = re.compile(r"[A-Za-z0-9_.,-]+")
NUMBERED = frozenset(("-p", "--pid", "--ppid", "-q", "p"))
NAMED = frozenset(("-C", "-u", "-U", "-t", "-g", "-G", "-s", "--user", "--User", "--group", "--tty", "--sid"))
LONG = re.compile(
    r"--(no-headers?|headers?|forest|deselect|cumulative|info|version|help)|--sort=[a-z_,+-]+|--(width|cols|columns|rows|"
    r"lines)=[0-9]+|--format=(?!.*env)[a-z_%,=:0-9 ]+|--p?pid=[0-9,]+"
)


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
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
        elif not any(form.fullmatch(text) for form in (LONG, LETTERS, BESIDE_E, NUMBERS, ENVIRONMENT)):
            raise UnclearError(f"option {text!r} of ps is not listed", word.start, word.end, "ps")
        yield text


def takes(option: str, value: str) -> bool:
    return bool(
        (FORMATS.fullmatch(option) and FORMAT.fullmatch(value))
        or (option in NUMBERED and NUMBERS.fullmatch(value))
        or (option in NAMED and NAMES.fullmatch(value))
    )
