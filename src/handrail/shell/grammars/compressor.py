"""
Words of gzip 1.12, xz 5.4, bzip2 1.0.8 and zstd 1.5 that leave the files alone: to standard output, a listing, a test.

The last of several modes counts for some of them (`xz -l -d` unpacks), so a listing or test must be the only mode.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.scan import Spec, scan
from handrail.shell.model import Does, Effect, Word

SPEC = Spec(
    letters="cdkltvqnNh123456789V",
    flags=frozenset(
        "--stdout --to-stdout --decompress --uncompress --keep --list --test --verbose --quiet --no-name --name --help "
        "--version".split()
    ),
    attached=re.compile(r"-T[0-9]+|--(threads|memlimit)=[0-9]+"),
)
TO_OUTPUT = frozenset(("-c", "--stdout", "--to-stdout"))
LOOKING = frozenset(("-l", "--list", "-t", "--test"))
# Alone: bzip2 says its version and goes on with its operands.
SHOWN = frozenset(("--help", "--version", "-h", "-V"))
UNPACKING = frozenset(("-d", "--decompress", "--uncompress"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in SHOWN:
        return ()
    found = scan(SPEC, words)
    looks = found.seen & LOOKING and not found.seen & UNPACKING
    if not found.seen & TO_OUTPUT and not looks:
        raise UnclearError("replaces its operands unless it writes to standard output, lists or tests")
    return tuple(Effect(Does.READS, word, "reads this") for word in found.operands)
