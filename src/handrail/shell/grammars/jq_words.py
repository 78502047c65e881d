"""
The words of a jq command (jq 1.6 to 1.8, jq(1)): options, then the filter, then files.

Long options are exact and never take `=`; some take two words, which the tables cannot say.
"""

from handrail.errors import UnclearError
from handrail.shell.grammars import jq
from handrail.shell.model import Does, Effect, Word

LETTERS = frozenset("srcCMabSRnejhV")
FLAGS = frozenset(
    """
    --slurp --raw-output --compact-output --color-output --monochrome-output --ascii-output --binary --sort-keys
    --raw-input --null-input --exit-status --join-output --help --version --tab --seq --stream --stream-errors
    --unbuffered --raw-output0 --build-configuration --ascii
    """.split()
)
TEXTS = {"--indent": 1, "--arg": 2, "--argjson": 2}
FILES = frozenset(("--slurpfile", "--rawfile"))
ENDS = frozenset(("--help", "--version", "--build-configuration", "-h", "-V"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
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
        elif text in FLAGS or (not text.startswith("--") and set(text[1:]) <= LETTERS):
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
    return jq.read(text)
