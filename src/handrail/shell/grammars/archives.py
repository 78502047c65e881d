"""Words of programs that pack and unpack."""

import re

from handrail.errors import UnclearError
from handrail.shell.grammars.scan import OptionSpec, scan
from handrail.shell.model import Does, Effect, Word, literal_word

# Words of tar (GNU tar 1.34, tar(1); bsdtar(1)) that list an archive: the old form `tar tzf`, and options.
#
# Only listing is read: options that run programs, name other hosts or write are not in the lists. An archive name
# with a colon is on another machine.

LETTERS = "tvzjJ"
LONG = (
    "--list --verbose --gzip --gunzip --ungzip --bzip2 --xz --lzma --zstd --lzip --full-time --utc --numeric-owner "
    "--wildcards --no-wildcards --wildcards-match-slash --no-wildcards-match-slash --anchored --no-anchored "
    "--ignore-case --no-ignore-case --no-recursion --recursion --force-local --show-stored-names"
)
TAR_SPEC = OptionSpec(
    letters=LETTERS,
    flags=frozenset(LONG.split()),
    values={"-f": Does.READS, "--file": Does.READS, "-C": Does.LOOKS, "--directory": Does.LOOKS},
    attached=re.compile(r"--(exclude|strip-components|quoting-style|occurrence)=[^=]*"),
)
OLD_FORM = re.compile(rf"[{LETTERS}fC]+")
FOLDER = re.compile(r"-C|--directory=")
VERSIONS = frozenset(("--version", "--help", "--usage"))


def tar(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in VERSIONS:
        return ()
    if any((word.literal or "").startswith("--remove") for word in words):
        return packed_away(words, "packs files and removes them")
    found = scan(TAR_SPEC, modern(words))
    if not found.seen & {"-t", "--list"}:
        raise UnclearError("tar is read-only only when it lists an archive (-t, --list)")
    if not found.seen & {"-f", "--file"}:
        raise UnclearError("the archive is not named (-f)")
    for effect in found.effects:
        name = effect.word.literal if effect.word else None
        if effect.does is Does.READS and (name is None or ":" in name):
            raise UnclearError(f"{effect.word} may be an archive on another machine")
    return found.effects


def packed_away(words: tuple[Word, ...], why: str) -> tuple[Effect, ...]:
    """An archiver that removes what it packs: each word may be a file, or the folder in which one is."""
    gone = [found for word in words if (found := without_option(word)).pieces]
    return (
        Effect(Does.UNKNOWN, None, why),
        *(Effect(Does.WRITES, word, "removed once it is packed", removes=True) for word in gone),
    )


def without_option(word: Word) -> Word:
    """`-C/x` and `--directory=/x` as `/x`; nothing for any other option."""
    start = FOLDER.match(word.prefix)
    return word.cut(start.end() if start else len(word.prefix) if word.prefix.startswith("-") else 0)


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


# Words of gzip 1.12, xz 5.4, bzip2 1.0.8 and zstd 1.5 that leave the files alone: to standard output, a listing, a
# test.
#
# The last of several modes counts for some of them (`xz -l -d` unpacks), so a listing or test must be the only mode.

COMPRESSOR_SPEC = OptionSpec(
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


def compressor(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if len(words) == 1 and words[0].literal in SHOWN:
        return ()
    found = scan(COMPRESSOR_SPEC, words)
    looks = found.seen & LOOKING and not found.seen & UNPACKING
    if not found.seen & TO_OUTPUT and not looks:
        raise UnclearError("replaces its operands unless it writes to standard output, lists or tests")
    return tuple(Effect(Does.READS, word, "reads this") for word in found.operands)


# Operands of zip, 7z and rar, some of which remove the files that they have packed.

MOVES = re.compile(r"-[A-Za-z]*m[A-Za-z]*\Z|--move\Z|-sdel\Z|-d[fwr]\Z|mf?\Z")


def packer(words: tuple[Word, ...]) -> tuple[Effect, ...]:
    if any(MOVES.match(word.literal or "") for word in words):
        return packed_away(words, "packs files and removes them")
    return tuple(Effect(Does.READS, word, "reads this") for word in words)
