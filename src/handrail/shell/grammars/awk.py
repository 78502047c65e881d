"""
Programs of awk (POSIX awk, gawk 5.2, mawk 1.3.4, the one true awk, busybox): read as tokens, all of them known.

Running (system, pipes, @), writing (print > ...), reading other files (getline < ..., ARGV), the environment
(ENVIRON) and every function that is neither built in nor defined in the program are refused. Where awks differ in what
is a regular expression, the text is refused too.
"""

import re
from itertools import pairwise

from handrail.errors import UnclearError
from handrail.named_tuples import NamedTuple
from handrail.shell.model import Does, Effect

BUILT_IN = frozenset(
    """
    length substr index split sub gsub match sprintf sin cos atan2 exp log sqrt int rand srand tolower toupper gensub
    strftime mktime systime and or xor compl lshift rshift strtonum asort asorti patsplit isarray typeof fflush
    """.split()
)
BEFORE_EXPRESSION = frozenset("print printf return exit else do".split())  # not case: a variable outside gawk
KEYWORDS = BEFORE_EXPRESSION | frozenset(
    "BEGIN END BEGINFILE ENDFILE function func if while for break continue next nextfile delete getline switch "
    "default in case".split()
)
VARIABLES = frozenset("NR NF FNR FS OFS RS ORS FILENAME SUBSEP RSTART RLENGTH CONVFMT OFMT".split())
REFUSED = {
    "system": (Does.STARTS, "system() runs a command"),
    "ENVIRON": (Does.SECRET, "ENVIRON holds all variables of the environment"),
    "SYMTAB": (Does.UNKNOWN, "SYMTAB reaches every variable by name"),
    "FUNCTAB": (Does.UNKNOWN, "FUNCTAB reaches every function by name"),
    "ARGV": (Does.UNKNOWN, "ARGV names the files that are read"),
    "ARGC": (Does.UNKNOWN, "ARGC tells which files are read"),
}
TOKEN = re.compile(
    r"""(?P<blank>(?:[ \t]|\\\n)+|\#[^\n\\]*(?=\n|\Z))
      | (?P<newline>\n)
      | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
      | (?P<number>(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?)
      | (?P<string>"(?:[^"\\\n]|\\[^\n])*")
      | (?P<operator>&&|\|\||\+\+|--|\*\*=?|[-+*%^=!<>]=|!~|>>|\|&|[-+*%^=!<>~?:$,;(){}[\]|@/])
    """,
    re.VERBOSE,
)
# A bracket with nothing special in it may hold a slash: awks that end the expression there refuse the program.
REGEX = re.compile(r"/(?:\[\^?+[^][\\\n]++\]|\[\^?+\]?+(?:\[:[a-z]++:\]|\\[^\n]|[^][\\\n/])*+\]|\\[^\n]|[^/\[\\\n])*+/")
ENDS_OPERAND = frozenset(("number", "string", "regex"))
MAX_TOKENS = 1500


class Token(NamedTuple):
    kind: str
    text: str


def awk(text: str) -> tuple[Effect, ...]:
    tokens = tokenize(text)
    effects: list[Effect] = []
    depth, printing = 0, -1  # printing: the depth at which an unfinished print stands
    defined = {after.text for token, after in pairwise(tokens) if token.text in ("function", "func")}
    for at, token in enumerate(tokens):
        following = tokens[at + 1] if at + 1 < len(tokens) else Token("end", "")
        depth += (token.text in ("(", "[")) - (token.text in (")", "]")) if token.kind == "operator" else 0
        if token.kind == "name":
            effects += name(token.text, following, defined)
            if token.text in ("print", "printf"):
                printing = depth
            if token.text == "getline":
                plain_getline(tokens[at + 1 : at + 3])
        elif token.kind == "operator":
            if token.text in (";", "{", "}"):
                printing = -1
            effects += operator(token.text, writes=depth <= printing)
    return tuple(effects)


def tokenize(text: str) -> list[Token]:
    tokens: list[Token] = []
    at, control = 0, AwkControl()
    while at < len(text):
        regex = text[at] == "/" and begins_regex(tokens, control)
        found = (REGEX if regex else TOKEN).match(text, at)
        if not found or len(tokens) > MAX_TOKENS:
            raise UnclearError(f"text that is not read at character {at + 1}")
        at = found.end()
        token = Token("regex" if regex else found.lastgroup or "", found.group())
        if token.kind != "blank":
            control.note(token, tokens)
            tokens.append(token)
    return tokens


class AwkControl:
    """Which closing bracket ends the condition of an if, while or for: a regular expression may follow it."""

    def __init__(self) -> None:
        self.stack: list[bool] = []
        self.closed = False

    def note(self, token: Token, before: list[Token]) -> None:
        self.closed = False
        if token == Token("operator", "("):
            self.stack.append(bool(before) and before[-1].text in ("if", "while", "for", "switch"))
        elif token == Token("operator", ")"):
            self.closed = self.stack.pop() if self.stack else True


def begins_regex(tokens: list[Token], control: AwkControl) -> bool:
    """True where an expression can begin, False where it has just ended. Raises UnclearError where awks may differ."""
    if not tokens:
        return True
    last = tokens[-1]
    if last.text in ("++", "--", "length", "getline") or control.closed:
        raise UnclearError(f"a slash behind {last.text!r}")
    if last.kind in ENDS_OPERAND or last.text in (")", "]"):
        return False
    if last.kind == "name":
        if last.text in KEYWORDS and last.text not in BEFORE_EXPRESSION:
            raise UnclearError(f"a slash behind {last.text!r}")
        return last.text in BEFORE_EXPRESSION
    return True


def name(text: str, following: Token, defined: set[str]) -> list[Effect]:
    if text in REFUSED:
        does, why = REFUSED[text]
        return [Effect(does, None, why)]
    if following.text == "(" and text not in KEYWORDS | VARIABLES | BUILT_IN | defined:
        return [Effect(Does.UNKNOWN, None, f"{text}() is not a known function")]
    return []


def operator(text: str, *, writes: bool) -> list[Effect]:
    if text in ("|", "|&"):
        return [Effect(Does.STARTS, None, "a pipe runs a command")]
    if text == "@":
        return [Effect(Does.UNKNOWN, None, "@ loads code or calls a function by its name")]
    if text == ">>" or (text == ">" and writes):
        return [Effect(Does.WRITES, None, f"print {text} writes a file")]
    return []


def plain_getline(following: list[Token]) -> None:
    """`getline` and `getline name` read the input; what else stands behind could be another file."""
    texts = [token.text for token in following] + ["", ""]
    simple = ("", ";", "\n", "}", ")")
    variable = bool(following) and following[0].kind == "name" and following[0].text not in KEYWORDS
    if texts[0] not in simple and not (variable and texts[1] in (*simple, ">", ">=", "==", "!=")):
        raise UnclearError("getline of a form that is not read")
