"""
Words of tar (GNU tar 1.34, tar(1); bsdtar(1)) that list an archive: the old form `tar tzf`, and options.

Only listing is read: options that run programs, name other hosts or write are not in the lists. An archive name with a
colon is on another machine.
"""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.scan import Spec, scan
from handrail.shell.model import Does, Effect, Word, literal_word

LETTERS = "tvzjJ"
LONG = (
    "--list --verbose --gzip --gunzip --ungzip --bzip2 --xz --lzma --zstd --lzip --full-time --utc --numeric-owner "
    "--wildcards --no-wildcards --wildcards-match-slash --no-wildcards-match-slash --anchored --no-anchored "
    "--ignore-case --no-ignore-case --no-recursion --recursion --force-local --show-stored-names"
)
SPEC = Spec(
    letters=LETTERS,
    flags=frozenset(LONG.split()),
    values={"-f": Does.READS, "--file": Does.READS, "-C": Does.LOOKS, "--directory": Does.LOOKS},
    attached=re.compile(r"--(exclude|strip-components|quoting-style|occurrence)=[^=]*"),
)
OLD_FORM = re.compile(rf"[{LETTERS}fC]+")
VERSIONS = frozenset(("--version", "--help", "--usage"))


def read_words(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in VERSIONS:
        return ()
    found = scan(SPEC, modern(words))
    if not found.seen & {"-t", "--list"}:
        raise UnclearError("tar is read-only only when it lists an archive (-t, --list)")
    if not found.seen & {"-f", "--file"}:
        raise UnclearError("the archive is not named (-f)")
    for effect in found.effects:
        name = effect.word.literal if effect.word else None
        if effect.does is Does.READS and (name is None or ":" in name):
            raise UnclearError(f"{effect.word} may be an archive on another machine")
    return found.effects


def modern(words: tuple[Word, ...]) -> tuple[Word, ...]:
    """`tar tfC a.tar dir` as `tar -t -f a.tar -C dir`."""
    first = words[0].literal if words else None
    if not first or first.startswith("-"):
        return words
    if not OLD_FORM.fullmatch(first):
        raise UnclearError(f"{first!r} is not a listed way to list an archive")
    left, out = list(words[1:]), list[Word]()
    for letter in first:
        out.append(literal_word(f"-{letter}", words[0].start, words[0].end))
        if letter in "fC":
            out += left[:1]
            del left[:1]
    return (*out, *left)
