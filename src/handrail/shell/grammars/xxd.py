"""Words of xxd (vim 9.0, xxd(1)), whose "lazy parser" looks at first letters only; the second operand is written."""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.scan import Spec, scan
from handrail.shell.model import Does, Effect, Word

VALUES = "-c -cols -g -groupsize -l -len -n -name -o -s -seek"
SPEC = Spec(
    flags=frozenset(
        "-a -autoskip -b -bits -C -capitalize -d -e -E -EBCDIC -h -help -i -include -p -ps -postscript -plain -u -v "
        "-version --version --help".split()
    ),
    values=dict.fromkeys(VALUES.split()),
    attached=re.compile(r"-[cglos][+-]?(0x)?[0-9a-fA-F]+"),
    options_first=True,
)


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if any(word.literal is not None and word.literal.startswith(("-r", "--r")) for word in words):
        raise UnclearError("-r turns a dump into the file it shows")
    found = scan(SPEC, words)
    if not all(word.single for word in found.operands):
        raise UnclearError("an operand may be several words, and the second would be written")
    effects = list(found.effects)
    effects += [Effect(Does.READS, word, "dumps this file") for word in found.operands[:1] if word.literal != "-"]
    effects += [Effect(Does.WRITES, word, "the output file") for word in found.operands[1:]]
    return tuple(effects)
