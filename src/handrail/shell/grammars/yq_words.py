"""
The words of a yq command. Two programs have this name: one in Go with a language of its own (mikefarah/yq 4), one in
Python that hands its filter to jq (kislyuk/yq 3). Only what is harmless in both is read.

In Go, `-s` writes one file per document, and expressions can load files (`load`) or run programs (`system`).
"""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.jq import Reader
from handrail.shell.model import Does, Effect, Word

LETTERS = frozenset("rcCMSenNPyYj0")
FLAGS = frozenset(
    """
    --raw-output --compact-output --prettyPrint --no-colors --colors --no-doc --null-input --exit-status
    --yaml-output --yml-output --yaml-roundtrip --unwrapScalar --tojson --sort-keys --version -V --help -h
    """.split()
)
# A word behind one of these is a value in Go and the filter in Python: it must be harmless as both.
FORMATS = re.compile(r"(?:(?:auto|a|yaml|y|json|j|props|p|csv|c|tsv|t|xml|x|toml|shell|lua|base64|uri)|[0-9])\Z")
WITH_FORMAT = frozenset(("-o", "--output-format", "-p", "--input-format", "-I", "--indent"))
ATTACHED = re.compile(r"(-[opI]=?|--(output-format|input-format|indent|unwrapScalar)=)([a-z0-9]+)\Z")
VERBS = frozenset(("e", "eval", "ea", "eval-all"))
# Of the Go program; as the Python one does not know them, it fails.
MORE = frozenset(
    "explode sort_keys tag style anchor alias kind key parent line column filename file_index fileIndex fi "
    "document_index documentIndex di line_comment head_comment foot_comment to_json to_yaml to_xml to_props from_json "
    "from_yaml from_xml from_props to_number to_string upcase downcase ireduce".split()
)


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
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
            if not FORMATS.match(value or ""):
                raise UnclearError(f"{text} {value!r} is not a listed format", word.start, word.end, "yq")
        elif (attached := ATTACHED.match(text)) and (FORMATS.match(attached[3]) or attached[3] in ("true", "false")):
            continue
        elif text in FLAGS or (not text.startswith("--") and set(text[1:]) <= LETTERS):
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
    reader = Reader(text, MORE)
    reader.expression(0, "")
    return [*reader.effects, *(Effect(Does.READS, word, "reads this") for word in operands[1:])]
