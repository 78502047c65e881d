"""Programs of jq and yq, and the words around them."""

import re

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, Word

# Filters of jq (jq 1.6 to 1.8, jq(1)): strings, fields, operators, and a closed list of names.
#
# jq cannot write files or start programs. UnclearError: names that are not listed, modules, comments. The environment
# (`env`, `$ENV`) is an effect: it may show secrets.

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
JQ_FORMATS = frozenset("@text @json @html @uri @urid @csv @tsv @sh @base64 @base64d @base32 @base32d".split())
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


def jq(text: str) -> tuple[Effect, ...]:
    if len(text) > MAX_LENGTH:
        raise UnclearError("the filter is too long")
    reader = JqReader(text)
    reader.expression(0, "")
    return tuple(reader.effects)


class JqReader:
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
        elif kind == "format" and part not in JQ_FORMATS:
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


# The words of a jq command (jq 1.6 to 1.8, jq(1)): options, then the filter, then files.
#
# Long options are exact and never take `=`; some take two words, which the tables cannot say.

JQ_LETTERS = frozenset("srcCMabSRnejhV")
JQ_FLAGS = frozenset(
    """
    --slurp --raw-output --compact-output --color-output --monochrome-output --ascii-output --binary --sort-keys
    --raw-input --null-input --exit-status --join-output --help --version --tab --seq --stream --stream-errors
    --unbuffered --raw-output0 --build-configuration --ascii
    """.split()
)
TEXTS = {"--indent": 1, "--arg": 2, "--argjson": 2}
FILES = frozenset(("--slurpfile", "--rawfile"))
ENDS = frozenset(("--help", "--version", "--build-configuration", "-h", "-V"))


def jq_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    left, effects = list(words), list[Effect]()
    operands, options_over, files = list[Word](), False, True
    shows_itself = False
    while left:
        word = left.pop(0)
        text = word.literal
        if options_over or text == "-" or not word.may_be_option:
            operands.append(word)
            if len(operands) > 1 and files:
                effects.append(Effect(Does.READS, word, "reads this"))
        elif text is None:
            raise UnclearError(f"{word} could become an option", word.start, word.end, "jq")
        elif text == "--":
            options_over = True
        elif text in ("--args", "--jsonargs"):
            files = False
        elif text in TEXTS:
            take(left, word, TEXTS[text])
        elif text in FILES:
            effects.append(Effect(Does.READS, take(left, word, 2)[1], "reads this"))
        elif text in JQ_FLAGS or (not text.startswith("--") and set(text[1:]) <= JQ_LETTERS):
            shows_itself = shows_itself or text in ENDS
        else:
            effects.append(Effect(Does.UNLISTED, word, "is not a listed option of jq"))
    return (*effects, *program(operands, shows_itself))


def take(left: list[Word], option: Word, count: int) -> list[Word]:
    taken, left[:count] = left[:count], []
    if len(taken) < count or not all(word.single for word in taken):
        raise UnclearError(f"{option} needs {count} known words", option.start, option.end, "jq")
    return taken


def program(operands: list[Word], shows_itself: bool) -> tuple[Effect, ...]:
    if not operands:
        return () if shows_itself else (Effect(Does.UNLISTED, None, "jq without a filter"),)
    text = operands[0].literal
    if text is None:
        raise UnclearError("the filter is not literal", operands[0].start, operands[0].end, "jq")
    return jq(text)


# The words of a yq command. Two programs have this name: one in Go with a language of its own (mikefarah/yq 4), one in
# Python that hands its filter to jq (kislyuk/yq 3). Only what is harmless in both is read.
#
# In Go, `-s` writes one file per document, and expressions can load files (`load`) or run programs (`system`).

YQ_LETTERS = frozenset("rcCMSenNPyYj0")
YQ_FLAGS = frozenset(
    """
    --raw-output --compact-output --prettyPrint --no-colors --colors --no-doc --null-input --exit-status
    --yaml-output --yml-output --yaml-roundtrip --unwrapScalar --tojson --sort-keys --version -V --help -h
    """.split()
)
# A word behind one of these is a value in Go and the filter in Python: it must be harmless as both.
YQ_FORMATS = re.compile(r"(?:(?:auto|a|yaml|y|json|j|props|p|csv|c|tsv|t|xml|x|toml|shell|lua|base64|uri)|[0-9])\Z")
WITH_FORMAT = frozenset(("-o", "--output-format", "-p", "--input-format", "-I", "--indent"))
ATTACHED = re.compile(r"(-[opI]=?|--(output-format|input-format|indent|unwrapScalar)=)([a-z0-9]+)\Z")
VERBS = frozenset(("e", "eval", "ea", "eval-all"))
# Of the Go program; as the Python one does not know them, it fails.
MORE = frozenset(
    "explode sort_keys tag style anchor alias kind key parent line column filename file_index fileIndex fi "
    "document_index documentIndex di line_comment head_comment foot_comment to_json to_yaml to_xml to_props from_json "
    "from_yaml from_xml from_props to_number to_string upcase downcase ireduce".split()
)


def yq_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    left, operands, effects, asks_version = list(words), list[Word](), list[Effect](), False
    while left:
        word = left.pop(0)
        text = word.literal
        if text == "-" or not word.may_be_option:
            operands.append(word)
        elif text is None:
            raise UnclearError(f"{word} could become an option", word.start, word.end, "yq")
        elif text in WITH_FORMAT:
            value = left.pop(0).literal if left else None
            if not YQ_FORMATS.match(value or ""):
                raise UnclearError(f"{text} {value!r} is not a listed format", word.start, word.end, "yq")
        elif (attached := ATTACHED.match(text)) and (YQ_FORMATS.match(attached[3]) or attached[3] in ("true", "false")):
            continue
        elif text in YQ_FLAGS or (not text.startswith("--") and set(text[1:]) <= YQ_LETTERS):
            asks_version = asks_version or text in ("--version", "-V", "--help", "-h")
        else:
            effects.append(Effect(Does.UNLISTED, word, "is not an option that both programs named yq have"))
    if not operands and asks_version:
        return tuple(effects)
    return (*effects, *expression(operands))


def expression(operands: list[Word]) -> list[Effect]:
    if operands and operands[0].literal in VERBS:
        operands = operands[1:]
    if not operands or operands[0].literal is None:
        raise UnclearError("yq without a literal expression")
    text = operands[0].literal
    if re.fullmatch(r"[A-Za-z0-9_/-][A-Za-z0-9_./-]*\.(ya?ml|json|toml|xml)", text):
        return [Effect(Does.READS, word, "reads this") for word in operands]  # the Go program prints it as it is
    if re.search(r"\bdef\b", text):
        raise UnclearError("one yq has no definitions")
    reader = JqReader(text, MORE)
    reader.expression(0, "")
    return [*reader.effects, *(Effect(Does.READS, word, "reads this") for word in operands[1:])]
