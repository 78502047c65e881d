"""Words of shell builtins and of commands that run others."""

import re
import shlex

from handrail.errors import UnclearError
from handrail.shell.listing import FED, PLACE, fill
from handrail.shell.model import Does, Effect, PieceKind, Word, literal_word
from handrail.shell.scope import PLAIN_NAME, SHOWN, harmless_setting

# Conditions of `test`, `[` and `[[` (bash 5.2, CONDITIONAL EXPRESSIONS).
#
# Words are read in order; every file operator looks at a file. UnclearError: -v and -R (subscripts are evaluated), and
# arithmetic comparisons of anything but whole numbers.

FILE_TESTS = frozenset(f"-{letter}" for letter in "bcdefghkprstuwxGLNOS")
TEXT_TESTS = frozenset(("-z", "-n"))
FILE_PAIRS = frozenset(("-nt", "-ot", "-ef"))
TEXT_PAIRS = frozenset(("=", "==", "!=", "<", ">"))
NUMBER_PAIRS = frozenset(("-eq", "-ne", "-lt", "-le", "-gt", "-ge"))
JOINERS = frozenset(("!", "(", ")", "&&", "||", "-a", "-o"))
NUMBER = re.compile(r"[+-]?[0-9]+\Z")


def test(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    """Effects of the conditions; `]` at the end belongs to `[` and is left out."""
    left = [word for word in words if not (word is words[-1] and word.literal == "]")]
    effects: list[Effect] = []
    while left:
        word = left.pop(0)
        text = word.literal
        following = left[0].literal if left else None
        if following in FILE_PAIRS | TEXT_PAIRS | NUMBER_PAIRS and len(left) > 1:
            effects += pair(word, following or "", left[1])
            del left[:2]
        elif text in FILE_TESTS and left and following not in JOINERS:
            effects.append(Effect(Does.LOOKS, single(left.pop(0)), "tests this file"))
        elif text in TEXT_TESTS and left:
            single(left.pop(0))
        elif text not in JOINERS:
            bare(word)
    return tuple(effects)


def pair(left: Word, operator: str, right: Word) -> list[Effect]:
    single(left)
    if operator in NUMBER_PAIRS and not (number(left) and number(right)):
        raise UnclearError(f"{operator} with more than numbers", left.start, right.end, "test")
    if operator in FILE_PAIRS:
        return [Effect(Does.LOOKS, single(word), "compares this file") for word in (left, right)]
    if any(piece.kind is PieceKind.BRACE for piece in right.pieces):
        raise UnclearError("a word of unknown size in a condition", right.start, right.end, "test")
    return []


def number(word: Word) -> bool:
    """True for what is surely a whole number. Some shells evaluate anything else."""
    if len(word.pieces) == 1 and word.pieces[0].text in ("$?", "$#", "$$"):
        return True
    if all(piece.quoted and piece.kind is PieceKind.SUBSTITUTION for piece in word.pieces if piece.text):
        return True  # of a shell that evaluates it, see `portable`
    if len(word.pieces) == 1 and word.pieces[0].kind is PieceKind.ARITHMETIC:
        return True
    return all(NUMBER.match(value) for value in word.alternatives or ("",))


def single(word: Word) -> Word:
    if not word.single:
        raise UnclearError("a word of unknown size in a condition", word.start, word.end, "test")
    return word


def bare(word: Word) -> None:
    """A word on its own: true when not empty. It must not be an operator we do not know."""
    if word.literal is None or (word.literal.startswith("-") and len(word.literal) > 1):
        raise UnclearError(f"{word} in a condition", word.start, word.end, "test")


# Definitions of `alias` (bash 5.2): NAME=TEXT. The text is looked into, its use is not followed.


def alias(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects = [Effect(Does.STATE, None, "changes what a command name means")]
    for word in words:
        name, equals, text = (word.literal or "").partition("=")
        if equals:
            effects.append(Effect(Does.RUNS, word, f"{name} runs this text", shell=text))
        elif word.literal is None:
            effects.append(Effect(Does.UNKNOWN, word, "the text of the alias is not known"))
    return tuple(effects)


# Options of `set` (bash 5.2, The Set Builtin): those that change when a script stops or what it prints about itself.
#
# Not among them: -a exports variables, -k and -B change what words mean, -- and operands set the parameters, no words
# at all shows every variable.

LETTERS = frozenset("euxvo")
SET_OPTIONS_NAMES = frozenset("errexit nounset xtrace verbose pipefail".split())


def set_options(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if not words:
        raise UnclearError("set without options shows all variables")
    left = [word.literal or "" for word in words]
    while left:
        option = left.pop(0)
        if option[:1] not in ("-", "+") or not option[1:] or not set(option[1:]) <= LETTERS or option.count("o") > 1:
            raise UnclearError(f"set {option!r} is not read", node="command")
        if "o" in option and (not left or left.pop(0) not in SET_OPTIONS_NAMES):
            raise UnclearError("an option of set that is not listed", node="command")
    return ()


# Options of `shopt` (bash 5.2, The Shopt Builtin): those that make a pattern match no more files than it does without.
#
# Not among them: globstar and nocaseglob make it match more, extglob changes how the line is read,
# expand_aliases and lastpipe change what runs where.

SHOPT_NAMES = frozenset("nullglob failglob nocasematch globasciiranges".split())
FLAGS = frozenset(("-s", "-u", "-q", "-p", "-qs", "-sq"))


def shopt(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        if word.literal not in SHOPT_NAMES and word.literal not in FLAGS:
            raise UnclearError(f"shopt {word} is not read", word.start, word.end, "command")
    return ()


# Words of `export`, `declare`, `local`, `readonly` (bash 5.2): NAME=VALUE with names and values that change no program.
#
# Everything else is a change: an option (-i evaluates, -n points to another variable), a name alone, a subscript.


def settings(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    changes = [word for word in words if not is_harmless(word)]
    return tuple(Effect(Does.STATE, word, "changes a variable, which may change what programs do") for word in changes)


def is_harmless(word: Word) -> bool:
    name, equals, _ = word.prefix.partition("=")
    return bool(equals) and harmless_setting(name, word.cut(len(name) + 1))


# Names of variables, as `read` takes them: plain lower-case names, since a subscript is evaluated by the shell.


def names(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if not words:
        raise UnclearError("read without a name sets REPLY", node="command")
    for word in words:
        if not PLAIN_NAME.match(word.literal or ""):
            raise UnclearError(f"{word} is not a plain name", word.start, word.end, "word")
    return ()


# Names of environment variables, as printenv takes them: only those that never hold a secret.


def variables(text: str) -> tuple[Effect, ...]:
    return () if text in SHOWN else (Effect(Does.SECRET, literal_word(text), "its value may be a secret"),)


# Operands of GNU parallel: a command, then what it is run with, behind `:::` or from standard input.

INPUTS = (":::", "::::", ":::+", "::::+")


def parallel(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    end = next((at for at, word in enumerate(words) if word.literal in INPUTS), len(words))
    given = [word for word in words[end:] if word.literal not in INPUTS]
    command = [part for word in words[:end] for part in parts(word)]
    if not command:  # the commands themselves come in
        return tuple(Effect(Does.STARTS, word, "is run", child=tuple(parts(word))) for word in given)
    if not any("{}" in str(word) for word in command):
        command.append(literal_word(PLACE))
    child = tuple(fill(word, "{}", PLACE if given else FED) for word in command)
    return (Effect(Does.STARTS, words[0], "is run with each input", child=child, arguments=tuple(given)),)


def parts(word: Word) -> list[Word]:
    """The words of a text for a shell, taken as one command."""
    try:
        texts = shlex.split(word.literal or "")
    except ValueError:
        texts = []
    return [literal_word(text, word.start, word.end) for text in texts] or [word]
