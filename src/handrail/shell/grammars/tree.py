"""Words of tree (tree 2.1, tree(1)): in a cluster every letter with a value takes one of the words that follow."""

import re

from handrail.shell.grammars.scan import Spec, scan
from handrail.shell.model import Does, Effect, Word, literal_word

SPEC = Spec(
    # Not -R, which writes 00Tree.html files.
    letters="adlfxqNQpugshDFvtcUriASnCXJ",
    flags=frozenset(
        "--gitignore --ignore-case --matchdirs --metafirst --prune --info --noreport --si --du --inodes --device "
        "--dirsfirst --filesfirst --nolinks --version --help".split()
    ),
    values={
        "-L": None,
        "-P": None,
        "-I": None,
        "-H": None,
        "-T": None,
        "-o": Does.WRITES,
        "--gitfile": Does.READS,
        "--infofile": Does.READS,
        "--hintro": Does.READS,
        "--houtro": Does.READS,
    },
    attached=re.compile(r"-L[0-9]+|--(charset|filelimit|timefmt|sort)=.*"),
)


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    found = scan(SPEC, words)
    folders = found.operands or (literal_word("."),)
    return (*found.effects, *(Effect(Does.LOOKS, word, "lists this folder") for word in folders))
