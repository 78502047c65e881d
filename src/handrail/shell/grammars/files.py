"""Words of programs that find, copy and show files."""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.scan import OptionSpec, scan
from handrail.shell.listing import PLACE, SEARCHES, Narrowing, fill, found_name, only_files
from handrail.shell.model import FREE_TARGETS, Does, Effect, Piece, PieceKind, Word, literal_word

# Expressions of find (GNU findutils 4.9, find(1); FreeBSD and macOS find(1)): options, starting points, then a closed
# list of tests and actions. A find that does not know one of them stops before it does anything.
#
# Names outside the lists are refused; -exec and its kin run another command, which is judged like any other.

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


def find(words: tuple[Word, ...]) -> tuple[Effect, ...]:
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
    unclear = [start for start in starts if start.literal is None and start.may_be_option]
    effects += [Effect(Does.UNKNOWN, start, "could become part of the expression") for start in unclear]
    kind = PieceKind.FILE if only_files(words) else PieceKind.FOUND
    found = FoundPaths(starts or [literal_word(".")], kind, found_name(words))
    while left:
        step(left, effects, found)
    follows = any(word.literal in FOLLOWING for word in words)
    if follows and any(effect.child for effect in effects):
        effects.append(Effect(Does.UNKNOWN, None, "what it finds through links may be anywhere"))
    return tuple(effects)


class FoundPaths:
    """What the next action is given: the starting points, the kind of what is found there, and whether it is all."""

    def __init__(self, starts: list[Word], kind: PieceKind, name: str = "") -> None:
        self.starts, self.kind, self.name = starts, kind, name
        self.narrowing = Narrowing(starts)

    def below(self, start: Word) -> Word:
        """The paths found at or under a starting point."""
        rest = Piece(self.kind, "/{}", quoted=True, narrowed=self.narrowing.now, name=self.name)
        text = start.literal
        known = start.pieces if text is None else (Piece(PieceKind.LITERAL, text, quoted=True),)
        return start._replace(pieces=(*known, rest))


def begins_expression(word: Word) -> bool:
    text = word.literal
    if text is None:
        return word.prefix[:1] in ("(", "!", "-")
    return (text.startswith("-") and text != "-") or text in ("(", ")", "!", ",")


def step(left: list[Word], effects: list[Effect], found: FoundPaths) -> None:
    """Consumes one test, operator or action."""
    word = left.pop(0)
    name = word.literal
    found.narrowing.add(name, left[0].literal if left else None)
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
        why = "-delete removes what it finds"
        effects += [Effect(Does.WRITES, found.below(start), why, removes=True) for start in found.starts]
    elif name == "-files0-from":
        effects.append(Effect(Does.UNKNOWN, take(left, word), "searches the folders named in this file"))
    elif name in RUNS:
        effects += run(left, word, found)
    else:
        effects.append(Effect(Does.UNLISTED, word, "is not a listed test or action of find"))


def take(left: list[Word], word: Word) -> Word:
    if not left or not left[0].single:
        raise UnclearError(f"{word} needs one value", word.start, word.end, "find")
    return left.pop(0)


def run(left: list[Word], action: Word, found: FoundPaths) -> list[Effect]:
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
    below = [found.below(start) for start in found.starts]
    known = [place if start.literal else None for start, place in zip(found.starts, below, strict=True)]
    places = known if marked and len(known) <= MAX_STARTS else [None]
    return [
        Effect(does, child[0], why, child=tuple(fill_place(word, place) for word in child), arguments=tuple(below))
        for place in places
    ]


def fill_place(word: Word, place: Word | None) -> Word:
    """A word with `{}` in it becomes the path that was found: it begins like the starting point."""
    if "{}" not in str(word):
        return word
    if str(word) == "{}" and place is not None and not place.may_be_option:
        return word._replace(pieces=place.pieces)
    return fill(word, "{}", PLACE)


# Words of tree (tree 2.1, tree(1)): in a cluster every letter with a value takes one of the words that follow.

TREE_SPEC = OptionSpec(
    # Not -R, which writes 00Tree.html files.
    letters="adlfxqNQpugshDFvtcUriASnCXJ",
    flags=frozenset(
        "--gitignore --ignore-case --matchdirs --metafirst --prune --info --noreport --si --du --inodes --device "
        "--dirsfirst --filesfirst --nolinks --version --help".split()
    ),
    values={
        **dict.fromkeys("-L -P -I -H -T".split()),
        **dict.fromkeys("--gitfile --infofile --hintro --houtro".split(), Does.READS),
        "-o": Does.WRITES,
    },
    attached=re.compile(r"-L[0-9]+|--(charset|filelimit|timefmt|sort)=.*"),
)


def tree(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    found = scan(TREE_SPEC, words)
    folders = found.operands or (literal_word("."),)
    return (*found.effects, *(Effect(Does.LOOKS, word, "lists this folder") for word in folders))


# Operands of cp, mv, ln, install and rsync: the last one is written, the others are read.


def copy(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    effects = [Effect(Does.READS, word, "copied from here") for word in words[:-1]]
    return (*effects, *(Effect(Does.WRITES, word, "writes here") for word in words[-1:]))


# Words of xxd (vim 9.0, xxd(1)), whose "lazy parser" looks at first letters only; the second operand is written.

VALUES = "-c -cols -g -groupsize -l -len -n -name -o -s -seek"
XXD_SPEC = OptionSpec(
    flags=frozenset(
        "-a -autoskip -b -bits -C -capitalize -d -e -E -EBCDIC -h -help -i -include -p -ps -postscript -plain -u -v "
        "-version --version --help".split()
    ),
    values=dict.fromkeys(VALUES.split()),
    attached=re.compile(r"-[cglos][+-]?(0x)?[0-9a-fA-F]+"),
    options_first=True,
)


def xxd(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if any(word.literal is not None and word.literal.startswith(("-r", "--r")) for word in words):
        raise UnclearError("-r turns a dump into the file it shows")
    found = scan(XXD_SPEC, words)
    if not all(word.single for word in found.operands):
        raise UnclearError("an operand may be several words, and the second would be written")
    effects = list(found.effects)
    effects += [Effect(Does.READS, word, "dumps this file") for word in found.operands[:1] if word.literal != "-"]
    effects += [Effect(Does.WRITES, word, "the output file") for word in found.operands[1:]]
    return tuple(effects)


# Operands of bat: files that are read. `cache` is a sub-command, which builds or clears its cache.


def bat_files(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(
        Effect(Does.STATE, word, "is a sub-command that changes bat's cache")
        if word.literal == "cache"
        else Effect(Does.READS, word, "reads this")
        for word in words
    )


# Operands of tee: files that its input is written to.


def copies_of_input(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    written = (word for word in words if word.literal not in FREE_TARGETS)
    return tuple(Effect(Does.WRITES, word, "writes its input to files") for word in written)


# Operands of less and more: files, and commands behind a plus, which are left out. Less matches patterns itself.

WILD = re.compile(r"[*?\[\]{}]")


def paged_files(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if any(word.literal is None or word.literal.startswith("+") or WILD.search(word.literal) for word in words):
        raise UnclearError("a word that may be a command or a pattern for the pager")
    return tuple(Effect(Does.READS, word, "shows this file") for word in words)


# Operands that are files or addresses (xmllint): an address is fetched, a file is read.


def local_files(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    return tuple(
        Effect(Does.NETWORK, word, "fetches this address")
        if ":" in str(word).partition("/")[0]
        else Effect(Does.READS, word, "reads this")
        for word in words
    )


# Words of the GNU binutils: one that begins with `@` names a file with more options in it.


def at_file_text(text: str) -> tuple[Effect, ...]:
    if text.startswith("@"):
        raise UnclearError(f"{text} is a file with options in it")
    return ()


def at_file(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    for word in words:
        if not word.prefix or word.prefix.startswith("@"):
            raise UnclearError(f"{word} could be a file with options in it", word.start, word.end)
    return tuple(Effect(Does.READS, word, "reads this") for word in words)
