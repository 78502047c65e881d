"""
What is known at one point of a script: possible working folders and variables set on the line.

A variable is known only between its assignment on this line and its use; anything else is the environment's,
whose values may be secrets. After a branch only what holds on every way is kept.
"""

import posixpath
import re
from collections.abc import Container, Mapping

from handrail.errors import UnclearError
from handrail.lazy import lazy_pattern
from handrail.named_tuples import NamedTuple
from handrail.shell.clean_environment import SET_FOR_READING, takes_back
from handrail.shell.model import Piece, PieceKind, Word, literal_word
from handrail.shell.words import ELEMENTS

# Names a script may set without changing how the shell or a program behaves: lower case, no setting of a proxy or npm.
PLAIN_NAME = lazy_pattern(
    r"(?!.*_proxy\Z|npm_config_|histchars\Z|auto_resume\Z)[a-z_][a-z0-9_]*[a-z0-9][a-z0-9_]*\Z|[a-z]\Z"
)
# Variables of the environment that name no secret. PWD is the working folder, HOME the home folder.
SHOWN = frozenset(
    "? # $ ! PWD HOME USER LOGNAME HOSTNAME UID EUID PPID SHLVL RANDOM SECONDS LINENO COLUMNS LINES SHELL TERM LANG "
    "OSTYPE HOSTTYPE MACHTYPE BASH_VERSION OLDPWD PATH TMPDIR EDITOR PAGER TZ LC_ALL LC_CTYPE VIRTUAL_ENV".split()
)
# May be set for one command: they choose language, time zone, colour or width. (GNU libc, setlocale(3), tzset(3);
# git(1), Environment Variables)
HARMLESS_ENV = frozenset("TZ NO_COLOR FORCE_COLOR CLICOLOR COLUMNS NODE_ENV CI".split())
# In other charsets a byte of a character may be a bracket or a backslash, and the shell reads the line differently.
LOCALES = frozenset("LANG LC_ALL LC_CTYPE LC_COLLATE LC_MESSAGES LC_NUMERIC LC_TIME".split())
PLAIN_LOCALE = lazy_pattern(r"(?:C|POSIX|[A-Za-z]+(?:_[A-Za-z]+)?\.(?i:UTF-?8)(?:@\w+)?)?\Z")
HARMLESS_VALUE = lazy_pattern(r"(?!.*\.\.)[A-Za-z0-9_.@+-][A-Za-z0-9_.@+/-]*\Z|\Z")
WHOLE_NUMBER = lazy_pattern(r"-?[0-9]+\Z")
NUMBER_NAME = lazy_pattern(r"[A-Za-z_][A-Za-z0-9_]*")
PARAMETER = lazy_pattern(r"\$\{?#?([A-Za-z_][A-Za-z0-9_]*|[?#$!])")
MAX_FOLDERS = 4
ANY_NAME = "*"
HOMES = lazy_pattern(r"(?:~[\w.+-]*|\$HOME|\$\{HOME\b[^}]*\})/*\Z")  # that of any user

Folders = tuple[str | None, ...]


class ArrayValue(NamedTuple):
    """What an array holds."""

    elements: tuple[str, ...]


# The texts a variable can hold, a pattern for the name of a file, the elements of an array, Kind.INPUT when it was read
# from standard input, Kind.ARITHMETIC for a whole number, or Kind.PARAMETER for any text.
Value = tuple[str, ...] | ArrayValue | Piece | PieceKind


def harmless_setting(name: str, word: Word) -> bool:
    """True if a program behaves the same with this variable in its environment, but for language, time or looks."""
    text = word.literal if word.pieces else ""
    if text is None:
        return False
    if name in SET_FOR_READING:
        return not takes_back(name, text)
    if name in LOCALES:
        return PLAIN_LOCALE.match(text) is not None
    return name in HARMLESS_ENV and HARMLESS_VALUE.match(text) is not None and ("/" not in text or name == "TZ")


class Scope(NamedTuple):
    folders: Folders = (".",)
    variables: Mapping[str, Value] = {}  # never changed in place
    in_home: bool = False  # one of the folders that are not known is the home folder

    def with_variable(self, name: str, value: Value) -> "Scope":
        return self._replace(variables={**self.variables, name: value})

    def forgetting(self, names: set[str], moves: bool) -> "Scope":
        """Without the variables of these names, or without any if ANY_NAME is among them."""
        kept = {name: value for name, value in self.variables.items() if not names & {name, ANY_NAME}}
        return Scope((None,) if moves else self.folders, kept, self.in_home)

    def forgetting_in_loop(self, names: set[str], moves: bool, numbers: set[str]) -> "Scope":
        """The same at the start of a loop; what holds a number and is only set to numbers in it still holds one."""
        kept = {name for name in numbers if is_number(self.variables.get(name))}
        scope = self.forgetting(names, moves)
        return scope._replace(variables={**scope.variables, **dict.fromkeys(kept, PieceKind.ARITHMETIC)})

    def assigning(self, name: str, word: Word) -> "Scope":
        """After `name=word`. Only the first element of an array is changed by it."""
        values = self.resolve(word).alternatives if word.pieces else ("",)
        if isinstance(self.variables.get(name), ArrayValue):
            return self.with_variable(name, PieceKind.PARAMETER)
        return self.with_variable(
            name, values or (PieceKind.ARITHMETIC if is_number_word(word) else PieceKind.PARAMETER)
        )

    def entering(self, target: Word | None) -> "Scope":
        """After a `cd` that worked."""
        text = target.literal if target is not None else None
        if text is None or text == "-":
            return self._replace(folders=(None,), in_home=target is None or bool(HOMES.match(str(target))))
        joined = tuple(None if old is None else posixpath.normpath(posixpath.join(old, text)) for old in self.folders)
        return self._replace(folders=tuple(dict.fromkeys(joined)))

    def working_in(self, target: Word) -> "Scope":
        """For one program that goes to a folder by itself: unlike `cd` it takes `link/..` for where the link leads."""
        text = target.literal
        if text is None:
            return self._replace(folders=(None,), in_home=bool(HOMES.match(str(target))))
        return self._replace(
            folders=tuple(
                None if old is None else text if old == "." else posixpath.join(old, text) for old in self.folders
            )
        )

    def resolve(self, word: Word) -> Word:
        """The word with variables of this line replaced by the values they can have."""
        if not any(piece.kind is PieceKind.PARAMETER for piece in word.pieces):
            return word
        return word._replace(pieces=tuple(self.resolve_piece(piece) for piece in word.pieces))

    def resolve_piece(self, piece: Piece) -> Piece:
        name = piece.text[1:]
        if piece.kind is not PieceKind.PARAMETER or name not in self.variables:
            return piece
        values = self.variables[name]
        if isinstance(values, ArrayValue):  # without a subscript it is the first element
            values = values.elements[:1] or PieceKind.PARAMETER
        if isinstance(values, PieceKind):
            return piece._replace(kind=values)
        if isinstance(values, Piece):  # without quotes a name with a blank in it would be several words
            return values if piece.quoted else piece
        # Unquoted, a value is split and globbed; a value of these letters only is not.
        plain = all(re.fullmatch(r"[A-Za-z0-9_./:@%+,=-]+", value) for value in values)
        return piece._replace(values=values, quoted=piece.quoted or plain)

    def elements(self, piece: Piece) -> tuple[str, ...]:
        """What `${name[@]}` and the like stand for. Raises UnclearError for an array that the line does not set."""
        found = ELEMENTS.fullmatch(piece.text)
        value = self.variables.get(found[2]) if found else None
        if found is None or not isinstance(value, ArrayValue):
            raise UnclearError(f"{piece.text}, an array that is not known")
        if found[3] == "@":
            return (str(len(value.elements)),) if found[1] else value.elements
        if found[1] or int(found[3]) >= len(value.elements):
            raise UnclearError(f"{piece.text}, an element that is not known")
        return (value.elements[int(found[3])],)

    def expand_arrays(self, words: tuple[Word, ...]) -> tuple[Word, ...]:
        """The words with those of arrays in their places, where these stand alone and in quotes."""
        expanded: list[Word] = []
        for word in words:
            arrays = [piece for piece in word.pieces if piece.text.startswith("${") and ELEMENTS.fullmatch(piece.text)]
            pieces = [piece for piece in word.pieces if piece.text]
            if not any(piece.kind is PieceKind.PARAMETER for piece in arrays):
                expanded.append(word)
            elif pieces == arrays[:1] and arrays[0].quoted:
                expanded += [literal_word(text, word.start, word.end) for text in self.elements(arrays[0])]
            else:
                raise UnclearError(f"{word}, an array inside a word or without quotes", word.start, word.end)
        return tuple(expanded)

    def evaluates(self, piece: Piece, assigned: Container[str] = ()) -> str:
        """A name in arithmetic whose value bash would evaluate as well, since it may be more than a number."""
        names = NUMBER_NAME.findall(piece.text) if piece.kind is PieceKind.ARITHMETIC else ()
        known = (name for name in names if name in assigned or not is_number(self.variables.get(name)))
        return next(known, "")

    def secret(self, piece: Piece) -> bool:
        """True for a parameter whose value is not ours to show."""
        if piece.kind is not PieceKind.PARAMETER or piece.values is not None:
            return False
        found = PARAMETER.match(piece.text)
        name = found.group(1) if found else ""
        return name not in SHOWN and name not in self.variables


def is_number(value: Value | None) -> bool:
    """Whether a variable surely holds a whole number."""
    if isinstance(value, PieceKind):
        return value is PieceKind.ARITHMETIC
    return (
        isinstance(value, tuple) and not isinstance(value, Piece | ArrayValue) and all(map(WHOLE_NUMBER.match, value))
    )


def is_number_word(word: Word) -> bool:
    """Whether a word is a whole number, written or calculated."""
    if len(word.pieces) == 1 and word.pieces[0].kind is PieceKind.ARITHMETIC:
        return True
    return WHOLE_NUMBER.match(word.literal or "") is not None


def merge(one: Scope, two: Scope) -> Scope:
    """What holds whichever way was taken."""
    if one is two:
        return one
    folders: Folders = tuple(dict.fromkeys(one.folders + two.folders))
    both = one.variables.keys() & two.variables.keys()
    variables = {name: either(one.variables[name], two.variables[name]) for name in both}
    return Scope(folders if len(folders) <= MAX_FOLDERS else (None,), variables, one.in_home or two.in_home)


def either(one: Value, two: Value) -> Value:
    if one == two:
        return one
    if is_number(one) and is_number(two) and PieceKind.ARITHMETIC in (one, two):
        return PieceKind.ARITHMETIC
    if isinstance(one, PieceKind | Piece | ArrayValue) or isinstance(two, PieceKind | Piece | ArrayValue):
        return PieceKind.PARAMETER
    return tuple(dict.fromkeys(one + two))
