"""
Explains why a text was not found: the most similar block of the file, and exactly what differs.

Equal lines vote for the start of the block, long lines with more weight. If no line is equal, lines that share the
rarest word are compared. The work is bounded by `MAX_LOOKED`.
"""

import difflib
import re
import unicodedata
from collections import Counter, defaultdict

from handrail.files.diff import split_lines
from handrail.files.find_text import QUOTES, one_line_end
from handrail.files.source import FileSource
from handrail.files.text import Encoding

MAX_LOOKED = 8 * 1024 * 1024
MAX_WANTED_LINES = 400
MAX_SHOWN_LINES = 20
MAX_NAMED = 4
MAX_CHARS = 160
MAX_CANDIDATES = 200
ALIKE = 0.5
BLANKS = {ord(char): " " for char in "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"}
NOTHING = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
HIDDEN = NOTHING | BLANKS
PLAIN_QUOTES = {ord(quote): family[0] for quote, family in QUOTES.items()}
NUMBERED = re.compile(r"\s*\d+(?:\t|\u2192)")
WORD = re.compile(r"\w{3,}")


def nearest_block(source: FileSource, encoding: Encoding, wanted: str) -> str:
    """A paragraph for the model with the block that was probably meant; empty if nothing is similar."""
    text = encoding.decode(source.read(len(encoding.mark), min(source.size, MAX_LOOKED)))
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    want = [line.rstrip("\r\n") for line in split_lines(one_line_end(wanted[:MAX_LOOKED]))][:MAX_WANTED_LINES]
    start = _most_votes(lines, want)
    if start is None:
        start = _most_alike(text, lines, want)
    if start is None:
        return ""
    block = lines[start : start + len(want)]
    reasons = [
        f"line {start + 1 + at}: {reason}"
        for at, (mine, theirs) in enumerate(zip(want, block, strict=False))
        if (reason := difference(mine, theirs))
    ]
    if not reasons and len(block) < len(want):
        reasons.append(f"the file ends after line {len(lines)}")
    if not reasons and wanted.endswith("\n") and start + len(block) == len(lines) and not text.endswith(("\n", "\r")):
        reasons.append(f"line {len(lines)}: it is the last one and has no line end, and old_string ends with one")
    more = f"; and {len(reasons) - MAX_NAMED} more lines" if len(reasons) > MAX_NAMED else ""
    shown = "\n".join(f"{start + 1 + at}\t{_cut(line)}" for at, line in enumerate(block[:MAX_SHOWN_LINES]))
    rest = "\n..." if len(block) > MAX_SHOWN_LINES else ""
    return f"The nearest block:\n{shown}{rest}\nWhat differs: {'; '.join(reasons[:MAX_NAMED])}{more}."


def difference(wanted: str, standing: str) -> str:
    """How two lines differ; empty if they are equal."""
    if wanted == standing:
        return ""
    if (number := NUMBERED.match(wanted)) and wanted[number.end() :] == standing:
        return "old_string holds the line number that Read shows; leave it out"
    if wanted.translate(HIDDEN) == standing.translate(HIDDEN):
        return _describe_hidden(wanted, standing)
    if wanted.lstrip() == standing.lstrip():
        return f"the file is indented by {_blanks(standing)}, old_string by {_blanks(wanted)}"
    if wanted.rstrip() == standing.rstrip():
        return f"the file has {_blanks(standing[::-1])} at the end, old_string {_blanks(wanted[::-1])}"
    at = next(
        (i for i, (a, b) in enumerate(zip(wanted, standing, strict=False)) if a != b), min(len(wanted), len(standing))
    )
    mine, theirs = repr(_cut(wanted[at : at + 40])), repr(_cut(standing[at : at + 40]))
    kind = ""
    if wanted.split() == standing.split():
        kind = "blanks differ: "
    elif wanted.translate(PLAIN_QUOTES) == standing.translate(PLAIN_QUOTES):
        kind = "quotes differ: "
    elif wanted.casefold() == standing.casefold():
        kind = "upper and lower case differ: "
    elif unicodedata.normalize("NFC", wanted) == unicodedata.normalize("NFC", standing):
        kind = "accents are composed differently: "
        mine, theirs = ascii(wanted[at : at + 10]), ascii(standing[at : at + 10])
    return f"{kind}from column {at + 1} the file has {theirs}, old_string {mine}"


def _describe_hidden(wanted: str, standing: str) -> str:
    def describe(text: str, other: str) -> str:
        mine, theirs = Counter(text), Counter(other)
        odd = next((char for char in text if ord(char) in HIDDEN and mine[char] != theirs[char]), "")
        return odd and f"U+{ord(odd):04X} {unicodedata.name(odd, '')} in column {text.index(odd) + 1}"

    inside, asked = describe(standing, wanted), describe(wanted, standing)
    parts = [f"the file has {inside}"] if inside else []
    parts += [f"old_string has {asked}"] if asked else []
    return ", ".join(parts) or "characters that cannot be seen stand in another order"


def _blanks(line: str) -> str:
    """The leading whitespace of a line, in words."""
    found = line[: len(line) - len(line.lstrip())]
    counted = Counter(found)
    names = {" ": "space", "\t": "tab"}
    words = [
        f"{count} {names.get(char, f'U+{ord(char):04X}')}{'s' if count > 1 else ''}" for char, count in counted.items()
    ]
    return " and ".join(words) or "nothing"


def _key(line: str) -> str:
    """The line without differences in whitespace, case, quotes, accents and invisible characters."""
    if not line.isascii():
        line = unicodedata.normalize("NFC", line.translate(HIDDEN).translate(PLAIN_QUOTES))
    return " ".join(line.casefold().split())


def _most_votes(lines: list[str], want: list[str]) -> int | None:
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(want):
        bare = NUMBERED.sub("", line, count=1)
        for key in {_key(line), _key(bare)} - {""}:
            wanted[key].append(at)
    votes: Counter[int] = Counter()
    for at, line in enumerate(lines):
        key = _key(line)
        for place in wanted.get(key, ())[:10]:
            if place <= at:
                votes[at - place] += len(key)
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _most_alike(text: str, lines: list[str], want: list[str]) -> int | None:
    """Where the longest wanted line has its most similar line, among those that share its rarest word."""
    row = max(range(len(want)), key=lambda at: len(want[at].strip()), default=0)
    line = want[row][:MAX_CHARS] if want else ""
    words = sorted(set(WORD.findall(line)), key=len, reverse=True)[:10]
    known = [(count, word) for word in words if (count := text.count(word))]
    if not known:
        return None
    word = min(known)[1]
    candidates = [at for at, other in enumerate(lines) if word in other][:MAX_CANDIDATES]
    matcher = difflib.SequenceMatcher(None, autojunk=False)
    matcher.set_seq2(line.strip())
    best, likeness = -1, ALIKE
    for at in candidates:
        matcher.set_seq1(lines[at].strip()[:MAX_CHARS])
        if matcher.real_quick_ratio() > likeness and matcher.ratio() > likeness:
            best, likeness = at, matcher.ratio()
    return max(best - row, 0) if best >= 0 else None


def _cut(line: str) -> str:
    return line if len(line) <= MAX_CHARS else f"{line[:MAX_CHARS]}..."
