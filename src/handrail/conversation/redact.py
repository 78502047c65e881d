"""
Removes secrets from text before it is written to a transcript, log, trace or cassette.

Three things are secrets: environment variables whose name says so, text of a known shape (keys and tokens of many
vendors, private keys, passwords in URLs), and whatever the user's own patterns match. Text that looks like a secret by
chance is missing from the record, never from the conversation.
"""

import json
import re
from binascii import b2a_base64
from bisect import bisect_right
from collections.abc import Iterable, Iterator, Mapping
from functools import lru_cache
from typing import Any

from handrail.conversation.secret_search import find_secrets
from handrail.conversation.secret_shapes import SHAPES
from handrail.errors import PatternError
from handrail.lazy import lazy_pattern
from handrail.records import record

SECRET_WORDS = frozenset({"KEY", "KEYS", "PASS", "PASSWD", "PWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PAT"})
SECRET_ENDS = ("TOKEN", "TOKENS", "SECRET", "SECRETS", "PASSWORD", "APIKEY")
NOT_SECRET_ENDS = frozenset({"FILE", "PATH", "DIR", "SOCK", "NAME", "ID", "URL", "TYPE"})
SHORTEST_SECRET = 8
DEEPEST = 150
SECRET_HEADERS = frozenset(
    {
        "api-key",
        "authorization",
        "cookie",
        "openai-organization",
        "openai-project",
        "proxy-authorization",
        "set-cookie",
        "x-api-key",
        "x-goog-api-key",
    }
)

TELLING = lazy_pattern(r"(?i)pass|pwd|psk|secret|token|key|auth|cookie")
"""What is in a name that may say that its value is secret; most names have none of it."""
LONGEST_NAME = 200
QUOTES = lazy_pattern(r"[\"'`\\]")

MARKER = r"\[redacted:([^\[\]\s]*)\]"
LABELS = frozenset(("password", "assigned-key", "pattern", *(label for label, _, _ in SHAPES)))


@record
class TextEdit:
    """A range of a text and its replacement."""

    start: int
    end: int
    text: str


def apply_edits(text: str, edits: Iterable[TextEdit]) -> str:
    """The text with the edits applied, which are in order and do not overlap."""
    pieces, at = [], 0
    for edit in edits:
        pieces += [text[at : edit.start], edit.text]
        at = edit.end
    return "".join([*pieces, text[at:]]) if pieces else text


def secret_edit(start: int, end: int, label: str) -> TextEdit:
    """The edit that removes a secret."""
    return TextEdit(start, end, f"[redacted:{label}]")


@record
class Redactor:
    """`secrets` are pairs of name and exact value; `patterns` are the user's own. Its repr shows no secret."""

    secrets: tuple[tuple[str, str], ...] = ()
    patterns: tuple[re.Pattern[str], ...] = ()

    def __repr__(self) -> str:
        return f"Redactor({len(self.secrets)} secrets, {len(self.patterns)} patterns)"

    def spans(self, text: str) -> list[TextEdit]:
        """The edits that remove the secrets of a text, in order, without overlap."""
        found: list[TextEdit] = []
        for label, value in self.secrets:
            if value in text:
                found += _occurrences(text, value, label)
        found += [secret_edit(start, end, label) for start, end, label in find_secrets(text)]
        for pattern in self.patterns:
            found += _matches(text, pattern, "pattern")
        return _merge(self._outside(text, found)) if found else found

    def _outside(self, text: str, spans: list[TextEdit]) -> list[TextEdit]:
        """The spans that are not inside an earlier replacement: a label of ours, not what else stands in its place."""
        if "[redacted:" not in text:
            return spans
        labels = LABELS.union(name for name, _ in self.secrets)
        done = [match.span() for match in re.finditer(MARKER, text) if match[1] in labels]
        starts, ends = [start for start, _ in done], [0, *(end for _, end in done)]
        return [span for span in spans if span.end > ends[bisect_right(starts, span.start)]]

    def text(self, text: str) -> str:
        """The text without secrets."""
        return apply_edits(text, self.spans(text))

    def named_text(self, name: str, text: str) -> str:
        """The text without secrets; all of it is one if its name says so, as in `"password": "..."`."""
        clean = self.text(text)
        if not _may_tell(name):
            return clean
        head = len(as_entry(name, ""))
        edits = [
            TextEdit(max(edit.start, head) - head, min(edit.end, head + len(clean)) - head, edit.text)
            for edit in self.spans(f'{as_entry(name, clean)}"')
            if edit.end > head
        ]
        return apply_edits(clean, edits)

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it redacted, names included. What is nested too deeply is left out."""
        if type(value) is str:
            return self.text(value)
        if not self.patterns and self._has_none(value):
            return value
        return self._redact_value(value, 0)

    def _has_none(self, value: Any) -> bool:
        """Whether a value has no secrets, the common case: one look at all its texts costs less than one at each."""
        texts: list[str] = []
        return _collect_texts(value, texts, 0) and not self.spans("\n".join(texts))

    def _redact_value(self, value: Any, depth: int) -> Any:
        match value:
            case str():
                return self.text(value)
            case Mapping() | list() | tuple() if depth >= DEEPEST:
                return "[nested too deeply]"
            case Mapping():
                return {
                    self.text(str(name)): self.named_text(shown, each)
                    if isinstance(each, str) and (shown := telling_name(str(name), value))
                    else self._redact_value(each, depth + 1)
                    for name, each in value.items()
                }
            case list() | tuple():
                return [self._redact_value(each, depth + 1) for each in value]
            case _:
                return value


def telling_name(name: str, entries: Mapping[Any, Any]) -> str:
    """The name that may say that an entry of an object is secret; of `"name": "PASSWORD", "value": "..."` the first."""
    if name == "value":
        name = next((str(entries[each]) for each in ("name", "key") if each in entries), name)
    return name if _may_tell(name) else ""


def as_entry(name: str, text: str) -> str:
    """A name and a text as a line of JSON in which the text ends at the next quote."""
    return f'"{name}": "{QUOTES.sub("x", text)}'


@lru_cache(maxsize=1024)
def _may_tell(name: str) -> bool:
    return len(name) <= LONGEST_NAME and TELLING.search(name) is not None


def build_redactor(
    env: Mapping[str, str], patterns: Iterable[str] = (), headers: Iterable[tuple[str, str]] = ()
) -> Redactor:
    """
    A redactor for the secrets of an environment and of headers, and the user's patterns (regular expressions).

    Raises:
        PatternError: a pattern is no regular expression.
    """
    found = [(name, value) for name, value in env.items() if _is_secret(name)]
    for name, value in headers:
        if value.strip() and is_secret_name(name):
            found.append((name, value.split()[-1]))
    named = {value: name for name, value in found if len(value) >= SHORTEST_SECRET}
    # of two that overlap the longer must be found first
    forms = {form: name for value, name in named.items() for form in _spellings(value)}
    secrets = sorted(((name, form) for form, name in forms.items()), key=lambda pair: (-len(pair[1]), pair[1]))
    return Redactor(tuple(secrets), tuple(_pattern(pattern) for pattern in patterns))


def _spellings(value: str) -> Iterator[str]:
    """The value as it is, as JSON, addresses and bytes in hexadecimal write it, and its part of any text in base64."""
    data = value.encode("utf-8", "surrogateescape")
    yield from (value, json.dumps(value)[1:-1], json.dumps(value, ensure_ascii=False)[1:-1])
    whole, with_paths = (re.sub(rb"[^\w.~%s-]" % kept, _percent, data).decode() for kept in (b"", b"/"))
    yield from (whole, with_paths, whole.replace("%20", "+"), data.hex(), "\0".join(value))
    for before in range(3):
        coded = b2a_base64(bytes(before) + data, newline=False)
        # what shares a letter of the code with its neighbours differs with them
        core = coded[(0, 2, 3)[before] : (before + len(data)) // 3 * 4].decode()
        if len(core) >= SHORTEST_SECRET:
            yield from (core, core.replace("+", "-").replace("/", "_"))


def _percent(found: re.Match[bytes]) -> bytes:
    return b"%%%02X" % found[0][0]


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable or a header of this name is a secret."""
    return name.lower() in SECRET_HEADERS or _is_secret(name.replace("-", "_"))


def _is_secret(name: str) -> bool:
    words = name.upper().split("_")
    secret = any(word in SECRET_WORDS or word.endswith(SECRET_ENDS) for word in words)
    return secret and words[-1] not in NOT_SECRET_ENDS and name.upper() != "PWD"


def _pattern(pattern: str) -> re.Pattern[str]:
    try:
        return re.compile(pattern)
    except re.error as error:
        raise PatternError(f"{pattern!r} is not a regular expression: {error}. Correct it or take it out.") from error


def _collect_texts(value: Any, texts: list[str], depth: int) -> bool:
    """Add every text in a JSON value; False = it is nested too deeply, or is more than plain JSON."""
    kind = type(value)
    if kind is str:
        texts.append(value)
    elif kind is dict and depth < DEEPEST:
        for name, each in value.items():
            if type(name) is not str:
                return False
            if type(each) is str:
                texts.append(each)
                if shown := telling_name(name, value):
                    texts.append(f'{as_entry(shown, each)}"')
            elif not _collect_texts(each, texts, depth + 1):
                return False
        texts += value
    elif kind in (list, tuple) and depth < DEEPEST:
        return all(_collect_texts(each, texts, depth + 1) for each in value)
    else:
        return value is None or kind in (int, float, bool)
    return True


def _occurrences(text: str, value: str, label: str) -> list[TextEdit]:
    found, at = [], text.find(value)
    while at >= 0:
        found.append(secret_edit(at, at + len(value), label))
        at = text.find(value, at + len(value))
    return found


def _matches(text: str, pattern: re.Pattern[str], label: str) -> list[TextEdit]:
    group = "secret" if "secret" in pattern.groupindex else 0
    return [secret_edit(*found.span(group), label) for found in pattern.finditer(text) if found[group]]


def _merge(spans: list[TextEdit]) -> list[TextEdit]:
    merged: list[TextEdit] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = TextEdit(last.start, max(last.end, span.end), last.text)
        else:
            merged.append(span)
    return merged
