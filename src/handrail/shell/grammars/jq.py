"""
Filters of jq (jq 1.6 to 1.8, jq(1)): strings, fields, operators, and a closed list of names.

jq cannot write files or start programs. UnclearError: names that are not listed, modules, comments. The environment
(`env`, `$ENV`) is an effect: it may show secrets.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect

KEYWORDS = frozenset("def if then elif else end as reduce foreach try catch label and or not".split())
# What `jq -n builtins` prints (1.6, 1.8), without env, the names of modules and their places (modulemeta, get_*).
NAMES = frozenset(
    """
    IN INDEX JOIN GROUP_BY UNIQUE_BY abs acos acosh add all any arrays ascii ascii_downcase ascii_upcase asin
    asinh atan atan2 atanh booleans bsearch builtins capture cbrt ceil combinations contains copysign cos cosh
    date dateadd datesub debug del delpaths drem empty endswith erf erfc error exp exp10 exp2 explode expm1 fabs
    false fdim finites first flatten floor fma fmax fmin fmod format frexp from_entries fromdate fromdateiso8601
    fromjson fromstream gamma getpath gmtime group_by gsub halt halt_error has have_decnum have_literal_numbers
    hypot implode in index indices infinite input input_filename input_line_number inputs inside isempty
    isfinite isinfinite isnan isnormal isvalid iterables join keys keys_unsorted last ldexp leaf_paths length
    lgamma lgamma_r limit localtime log log10 log1p log2 logb ltrim ltrimstr map map_values match max max_by min
    min_by mktime modf nan nearbyint nextafter nexttoward normals now nth null nulls numbers objects path paths
    pick pow range recurse recurse_down remainder repeat reverse rindex rint round rtrim rtrimstr scalars scalb
    scalbln scan select setpath significand sin sinh skip sort sort_by split splits sqrt startswith stderr
    strflocaltime strftime strings strptime sub tan tanh test tgamma to_entries toarray toboolean todate
    todateiso8601 tojson tonumber tostream tostring transpose trim trimstr true trunc truncate_stream type
    unique unique_by until utf8bytelength values walk while with_entries break
    """.split()
)
FORMATS = frozenset("@text @json @html @uri @urid @csv @tsv @sh @base64 @base64d @base32 @base32d".split())
MAX_LENGTH = 8_000
MAX_DEPTH = 20
TOKEN = re.compile(
    r"""\s+
    | (?P<string>")
    | (?P<field>\.[A-Za-z_][A-Za-z0-9_]*)
    | (?P<variable>\$[A-Za-z_][A-Za-z0-9_]*)
    | (?P<format>@[A-Za-z0-9]+)
    | (?P<number>\.?[0-9][0-9.]*(?:[eE][+-]?[0-9]+)?)
    | (?P<name>[A-Za-z_][A-Za-z0-9_]*)
    | (?P<open>[(\[{])
    | (?P<close>[)\]}])
    | (?P<other>\?//|[-+*/%|]=|//=?|[=!<>]=|\.\.|[-+*/%<>=|,.;:?])
    """,
    re.VERBOSE,
)
BEHIND_KEY = re.compile(r"\s*[,:}]")
CLOSES = {")": "(", "]": "[", "}": "{"}


def read(text: str) -> tuple[Effect, ...]:
    if len(text) > MAX_LENGTH:
        raise UnclearError("the filter is too long")
    reader = Reader(text)
    reader.expression(0, "")
    return tuple(reader.effects)


class Reader:
    """One pass over the tokens. Functions that the filter defines are known from there on."""

    def __init__(self, text: str, more: frozenset[str] = frozenset()) -> None:
        self.text, self.effects = text, list[Effect]()
        self.known = set(NAMES | more)
        self.heading = ""  # inside `def name(a; $b):`, what comes next: "name", "(", "parameters"

    def expression(self, at: int, closer: str, depth: int = 0) -> int:
        """Reads up to the bracket that closes it (or the end of the text) and returns the place behind."""
        if depth > MAX_DEPTH:
            raise UnclearError("the filter is nested too deep")
        stack: list[str] = []
        before = ""  # the last part that is not blank
        while at < len(self.text):
            found = TOKEN.match(self.text, at)
            if found is None:
                raise UnclearError(f"{self.text[at]!r} is not read here")
            kind, part, at = found.lastgroup, found[0], found.end()
            if kind is None:
                continue
            if kind == "string":
                at = self.string(at, depth)
            elif kind in ("open", "close"):
                if not stack and part == closer:
                    return at
                nest(stack, part)
            else:
                key = stack[-1:] == ["{"] and before in ("{", ",") and BEHIND_KEY.match(self.text, at)
                self.part(kind, part, bool(key))
            self.follow_heading(part)
            before = part
        if stack or closer:
            raise UnclearError("a bracket that is not closed")
        return at

    def follow_heading(self, part: str) -> None:
        if part == "def":
            self.heading = "name"
        elif self.heading == "name":
            self.heading = "("
        elif self.heading == "(":
            self.heading = "parameters" if part == "(" else ""
        elif part == ")":
            self.heading = ""

    def string(self, at: int, depth: int) -> int:
        while at < len(self.text):
            if self.text[at] == '"':
                return at + 1
            if self.text.startswith("\\(", at):
                at = self.expression(at + 2, ")", depth + 1)
            else:
                at += 2 if self.text[at] == "\\" else 1
        raise UnclearError("a string that is not closed")

    def part(self, kind: str, part: str, key: bool) -> None:
        if kind == "name":
            self.name(part, key)
        elif part == "$ENV":
            self.secret()
        elif kind == "variable" and part.startswith("$__") and part != "$__loc__":
            raise UnclearError(f"{part} is not listed")
        elif kind == "format" and part not in FORMATS:
            raise UnclearError(f"{part} is not a listed format")

    def name(self, name: str, key: bool) -> None:
        """A keyword, a function or, in an object, the name of a field."""
        if name == "env" and not key:
            self.secret()
            return
        if self.heading in ("name", "parameters"):
            self.known.add(name)
        if not (key or name in KEYWORDS or name in self.known):
            raise UnclearError(f"{name!r} is not a listed function")

    def secret(self) -> None:
        self.effects.append(Effect(Does.SECRET, None, "the filter shows variables of the environment"))


def nest(stack: list[str], bracket: str) -> None:
    if bracket not in CLOSES:
        stack.append(bracket)
    elif not stack or stack.pop() != CLOSES[bracket]:
        raise UnclearError("brackets that do not match")
