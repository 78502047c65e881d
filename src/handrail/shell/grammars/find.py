"""
Expressions of find (GNU findutils 4.9, find(1); FreeBSD and macOS find(1)): options, starting points, then a closed
list of tests and actions. A find that does not know one of them stops before it does anything.

Names outside the lists are refused; -exec and its kin run another command, which is judged like any other.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.listing import SEARCHES, only_files
from handrail.shell.model import Does, Effect, Kind, Piece, Word, literal_word

LEADING = frozenset("-H -L -P -O0 -O1 -O2 -O3 -E -X -d -s -x".split())
FOLLOWING = frozenset(("-L", "-H", "-follow"))
SHOWN = frozenset("--help -help --version -version".split())
MAX_STARTS = 8
WITHOUT_VALUE = frozenset(
    """
    ( ) ! , -a -and -o -or -not -true -false -depth -d -daystart -follow -ignore_readdir_race -noignore_readdir_race
    -mount -xdev -noleaf -nowarn -warn -empty -executable -readable -writable -nogroup -nouser -ls -print -print0
    -prune -quit
    """.split()
)
WITH_VALUE = frozenset(
    """
    -maxdepth -mindepth -regextype -amin -atime -cmin -ctime -mmin -mtime -fstype -gid -group -ilname -iname -inum
    -ipath -iregex -iwholename -links -lname -name -path -perm -regex -size -type -uid -used -user -wholename -xtype
    -context -printf
    """.split()
)
WITH_FILE = re.compile(r"-(anewer|cnewer|newer|samefile|newer[aBcm][aBcmt])\Z")
WRITES = {"-fprint": 1, "-fprint0": 1, "-fls": 1, "-fprintf": 2}
RUNS = frozenset(("-exec", "-execdir", "-ok", "-okdir"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in SHOWN:
        return ()
    left = list(words)
    effects: list[Effect] = []
    while left and left[0].literal in LEADING:
        left.pop(0)
    starts: list[Word] = []
    while left and not begins_expression(left[0]):
        starts.append(left.pop(0))
    effects += [Effect(Does.LOOKS, start, SEARCHES) for start in starts or [literal_word(".")]]
    kind = Kind.FILE if only_files(words) else Kind.FOUND
    while left:
        step(left, effects, starts, kind)
    follows = any(word.literal in FOLLOWING for word in words)
    if follows and any(effect.child for effect in effects):
        effects.append(Effect(Does.UNKNOWN, None, "what it finds through links may be anywhere"))
    return tuple(effects)


def begins_expression(word: Word) -> bool:
    text = word.literal
    if text is None:
        if word.may_be_option:
            raise UnclearError(f"{word} could become part of the expression", word.start, word.end, "find")
        return word.prefix[:1] in ("(", "!")
    return (text.startswith("-") and text != "-") or text in ("(", ")", "!", ",")


def step(left: list[Word], effects: list[Effect], starts: list[Word], kind: Kind) -> None:
    """Consumes one test, operator or action."""
    word = left.pop(0)
    name = word.literal
    if name is None:
        effects.append(Effect(Does.UNKNOWN, word, "could become any test or action of find"))
        return
    if name in WITHOUT_VALUE:
        return
    if name in WITH_VALUE or WITH_FILE.match(name):
        value = take(left, word)
        if WITH_FILE.match(name) and not name.endswith("t"):
            effects.append(Effect(Does.LOOKS, value, "compares with this file"))
    elif name in WRITES:
        effects.append(Effect(Does.WRITES, take(left, word), f"{name} writes this file"))
        if WRITES[name] == 2:
            take(left, word)
    elif name == "-delete":
        effects.append(Effect(Does.WRITES, None, "-delete removes what it finds"))
    elif name == "-files0-from":
        effects.append(Effect(Does.UNKNOWN, take(left, word), "searches the folders named in this file"))
    elif name in RUNS:
        effects += run(left, word, starts, kind)
    else:
        effects.append(Effect(Does.UNLISTED, word, "is not a listed test or action of find"))


def take(left: list[Word], word: Word) -> Word:
    if not left or not left[0].single:
        raise UnclearError(f"{word} needs one value", word.start, word.end, "find")
    return left.pop(0)


def run(left: list[Word], action: Word, starts: list[Word], kind: Kind) -> list[Effect]:
    """`-exec command {} ;`: the command up to `;` or `{} +`, once for each starting point in place of `{}`."""
    child: list[Word] = []
    while left:
        word = left.pop(0)
        text = word.literal
        if text == ";" or (text == "+" and child and str(child[-1]) == "{}"):
            break
        child.append(word)
    else:
        raise UnclearError(f"{action} without its end", action.start, action.end, "find")
    if not child:
        raise UnclearError(f"{action} without a command", action.start, action.end, "find")
    why = f"{action} runs a command"
    # -execdir gives ./name in a folder of its own, -ok asks on the terminal: looked into, not followed.
    does = Does.RUNS if action.literal == "-exec" else Does.STARTS
    marked = any("{}" in str(word) for word in child)
    places: list[str | None] = [start.literal for start in starts] or ["."]
    if not marked or len(places) > MAX_STARTS:
        places = [None]
    return [Effect(does, child[0], why, child=tuple(found(word, place, kind) for word in child)) for place in places]


def found(word: Word, start: str | None, kind: Kind) -> Word:
    """A word with `{}` in it becomes the path that was found: it begins like the starting point."""
    if "{}" not in str(word):
        return word
    if str(word) == "{}" and start and not start.startswith("-"):
        return word._replace(pieces=(Piece(Kind.LITERAL, start, quoted=True), Piece(kind, "/{}", quoted=True)))
    return word._replace(pieces=(Piece(Kind.INPUT, "{}", quoted=True),))
