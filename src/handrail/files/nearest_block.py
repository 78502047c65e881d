"""
Explains why a text was not found: the most similar block of the file, and exactly what differs.

Equal lines vote for the start of the block, long lines with more weight. If no line is equal, the longest wanted line
is looked for: without its blanks, then in lines that share some of its rarest pieces. The first and the last wanted
line may be parts of lines. The work is bounded by `MAX_LOOKED`.
"""

import difflib
import re
import unicodedata
from collections import Counter, defaultdict
from collections.abc import Iterable
from itertools import islice

from handrail.files.diff import split_lines
from handrail.files.find_text import QUOTES, one_line_end
from handrail.files.source import FileSource
from handrail.files.text import Encoding
from handrail.lazy import lazy_pattern

MAX_LOOKED = 8 * 1024 * 1024
MAX_WANTED_LINES = 400
MAX_SHOWN_LINES = 20
MAX_NAMED = 4
MAX_CHARS = 160
MAX_CANDIDATES = 200
MAX_PIECES = 5
PIECE = 4
ALIKE = 0.5
PART = 0.1
"""How much more alike a part of a line must be than a whole one: there are many parts."""
AROUND = 40
MAX_COUNTED = 40
BLANKS = {ord(char): " " for char in "\u00a0\u2002\u2003\u2007\u2009\u202f\u3000"}
NOTHING = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufeff"), "")
HIDDEN = NOTHING | BLANKS
PLAIN_QUOTES = {ord(quote): family[0] for quote, family in QUOTES.items()}
NUMBERED = lazy_pattern(r"\s*\d+(?:\t|\u2192)")


def nearest_block(source: FileSource, encoding: Encoding, wanted: str) -> str:
    """A paragraph for the model with the block that was probably meant; empty if nothing is similar."""
    text = encoding.decode(source.read(len(encoding.mark), min(source.size, MAX_LOOKED)))
    lines = [line.rstrip("\r\n") for line in split_lines(text)]
    want = [line.rstrip("\r\n") for line in split_lines(one_line_end(wanted[:MAX_LOOKED]))][:MAX_WANTED_LINES]
    keys = [_key(line) for line in lines]
    start = _most_votes(keys, want)
    if start is None:
        start = _most_alike(text, lines, keys, want)
    if start is None:
        return ""
    block = lines[start : start + len(want)]
    spans = [
        _span(mine, theirs, begins=at == 0, ends=at == len(want) - 1 and not wanted.endswith("\n"))
        for at, (mine, theirs) in enumerate(zip(want, block, strict=False))
    ]
    reasons = [
        f"line {start + 1 + at}: {reason}"
        for at, (mine, theirs, (first, end)) in enumerate(zip(want, block, spans, strict=False))
        if (reason := difference(mine, theirs[first:end], first))
    ]
    if not reasons and len(block) < len(want):
        reasons.append(f"the file ends after line {len(lines)}")
    if not reasons and wanted.endswith("\n") and start + len(block) == len(lines) and not text.endswith(("\n", "\r")):
        reasons.append(f"line {len(lines)}: it is the last one and has no line end, and old_string ends with one")
    more = f"; and {len(reasons) - MAX_NAMED} more lines" if len(reasons) > MAX_NAMED else ""
    shown = "\n".join(
        f"{start + 1 + at}\t{_cut(line, spans[at][0])}" for at, line in enumerate(block[:MAX_SHOWN_LINES])
    )
    rest = "\n..." if len(block) > MAX_SHOWN_LINES else ""
    return f"The nearest block:\n{shown}{rest}\nWhat differs: {'; '.join(reasons[:MAX_NAMED])}{more}."


def difference(wanted: str, standing: str, column: int = 0) -> str:
    """How two texts of a line differ; empty if they are equal. `column` is where the second stands in its line."""
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
    if "".join(wanted.split()) == "".join(standing.split()):
        kind = "blanks differ: "
    elif wanted.translate(PLAIN_QUOTES) == standing.translate(PLAIN_QUOTES):
        kind = "quotes differ: "
    elif wanted.casefold() == standing.casefold():
        kind = "upper and lower case differ: "
    elif unicodedata.normalize("NFC", wanted) == unicodedata.normalize("NFC", standing):
        kind = "accents are composed differently: "
        mine, theirs = ascii(wanted[at : at + 10]), ascii(standing[at : at + 10])
    return f"{kind}from column {column + at + 1} the file has {theirs}, old_string {mine}"


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


def _most_votes(keys: list[str], want: list[str]) -> int | None:
    wanted: defaultdict[str, list[int]] = defaultdict(list)
    for at, line in enumerate(want):
        bare = NUMBERED.sub("", line, count=1)
        for key in {_key(line), _key(bare)} - {""}:
            wanted[key].append(at)
    votes: Counter[int] = Counter()
    for at, key in enumerate(keys):
        for place in wanted.get(key, ())[:10]:
            if place <= at:
                votes[at - place] += len(key)
    return max(votes, key=lambda start: (votes[start], -start)) if votes else None


def _most_alike(text: str, lines: list[str], keys: list[str], want: list[str]) -> int | None:
    """Where the longest wanted line is most alike to a line of the file or to a part of one."""
    row = max(range(len(want)), key=lambda at: len(want[at].strip()), default=0)
    line = want[row].strip()[:MAX_CHARS] if want else ""
    if not line:
        return None
    bare = "\n".join(keys).replace(" ", "")
    found = bare.find(_squeeze(line))
    if found >= 0:
        return max(bare.count("\n", 0, found) - row, 0)
    best, likeness = -1, ALIKE
    pieces = _rarest_pieces(line, text)
    holding = (at for at, other in enumerate(lines) if any(piece in other for piece in pieces))
    for at in islice(holding, MAX_CANDIDATES):
        other = lines[at].strip()
        parts = (other[start : start + len(line)] for start in _starts(line, other, pieces))
        alike = max(_ratio(line, other[: 2 * MAX_CHARS]), *(_ratio(line, part) - PART for part in parts), 0)
        if alike > likeness:
            best, likeness = at, alike
    return max(best - row, 0) if best >= 0 else None


def _rarest_pieces(line: str, text: str) -> list[str]:
    """The pieces of a line that are in the text, the rarest first; few enough to be looked for in every line."""
    size = min(PIECE, len(line))
    every = range(0, len(line) - size + 1, max(1, len(line) // MAX_COUNTED))
    counted = ((text.count(piece), piece) for piece in {line[at : at + size] for at in every} if piece.strip())
    return [piece for count, piece in sorted(counted) if count][:MAX_PIECES]


def _starts(wanted: str, line: str, pieces: Iterable[str]) -> set[int]:
    """Where in a line the wanted text may begin, by the places of pieces that both have."""
    return {max(line.find(piece) - wanted.find(piece), 0) for piece in pieces if piece in line}


def _ratio(one: str, other: str) -> float:
    matcher = difflib.SequenceMatcher(None, one, other, autojunk=False)
    return matcher.ratio() if matcher.real_quick_ratio() > ALIKE and matcher.quick_ratio() > ALIKE else 0.0


def _span(wanted: str, line: str, *, begins: bool = True, ends: bool = True) -> tuple[int, int]:
    """
    The part of a line where a wanted line was probably meant.

    `begins`, `ends`: it may begin, or end, in the middle of the line; else the whole line is meant.
    """
    whole = (0, len(line))
    if not (begins or ends) or _key(wanted) == _key(line):
        return whole
    before = r"\s*" if wanted[:1].isspace() or not begins else ""
    after = r"\s*" if wanted[-1:].isspace() or not ends else ""
    letters = r"\s*".join(map(re.escape, _squeeze(wanted[:MAX_CHARS])))
    pattern = f"{'' if begins else '^'}{before}{letters}{after}{'' if ends else '$'}"
    if letters and (found := re.search(pattern, line, re.IGNORECASE)):
        return found.span()
    if not begins:
        return 0, min(len(wanted), len(line))
    if not ends:
        return max(len(line) - len(wanted), 0), len(line)
    starts = _starts(wanted, line, _rarest_pieces(wanted[:MAX_CHARS], line))
    parts = [(start, start + len(wanted)) for start in sorted(starts)]
    return max((*parts, whole), key=lambda part: _likeness(wanted, line[slice(*part)]))


def _likeness(one: str, other: str) -> tuple[float, bool]:
    return _ratio(one[:MAX_CHARS], other[: 2 * MAX_CHARS]), one[:1] == other[:1]


def _squeeze(line: str) -> str:
    return _key(line).replace(" ", "")


def _cut(line: str, column: int = 0) -> str:
    """The line; of a long one, the part around the column."""
    begin = max(column - AROUND, 0) if len(line) > MAX_CHARS else 0
    shown = line[begin : begin + MAX_CHARS]
    return f"{'...' if begin else ''}{shown}{'...' if begin + MAX_CHARS < len(line) else ''}"
