"""Replaces secrets, paths of this machine and volatile text in what is recorded and compared."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path

from handrail.conversation.redact import Redactor, TextEdit, apply_edits, secret_edit
from handrail.errors import CassetteError
from handrail.records import record

SAFE_PATH = re.compile(r'[^"\\\x00-\x1f{}]{2,}')
SHORTEST_PART = 8
MAX_ROUNDS = 8
PLACEHOLDER = re.compile(r"(\{\{[^{}]*\}\})")
NO_SECRETS = Redactor()

# text that never distinguishes two requests
VOLATILE: tuple[tuple[str, str], ...] = (
    ("uuid", r"\b[0-9a-fA-F]{8}(?:-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}\b"),
    ("date", r"\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?)?"),
    ("time", r"\b\d\d:\d\d:\d\d(?:[.,]\d+)?\b"),
    ("duration", r"\b\d+(?:\.\d+)? ?(?:s|ms|us|sec|secs|seconds)\b"),
    ("address", r"\b0x[0-9a-fA-F]{6,16}\b"),
    ("run", r"\b\d+-[0-9a-f]{8}(?=/[0-9a-f]{24}\b)"),
)


@record
class Normalizer:
    """
    `places` are pairs of absolute path and name: a recording holds the name in braces, and a replay puts the path back.

    `volatile` are patterns of the caller for text that changes from run to run.
    """

    redactor: Redactor = NO_SECRETS
    places: tuple[tuple[str, str], ...] = ()
    volatile: tuple[re.Pattern[str], ...] = ()

    def edits(self, text: str) -> list[TextEdit]:
        """The edits that remove secrets and paths from a text, in order. Where both overlap, the secret wins."""
        found = self._secrets(text)
        for path, name in self.places:
            if path not in text:
                continue
            for match in re.finditer(rf"(?<![\w.-]){re.escape(path)}(?![\w-])(?!\.\w)", text):
                if not any(edit.start < match.end() and match.start() < edit.end for edit in found):
                    found.append(TextEdit(match.start(), match.end(), placeholder(name)))
        return sorted(found, key=lambda edit: edit.start)

    def restore(self, data: bytes) -> bytes:
        """Recorded bytes with the paths of this machine."""
        if b"{{handrail:" in data:
            for path, name in self.places:
                data = data.replace(placeholder(name).encode(), path.encode())
        return data

    def normalize(self, text: str) -> str:
        """The text without secrets, paths and what changes from run to run. Normalizing twice changes nothing."""
        patterns = (*_VOLATILE, *(("volatile", pattern) for pattern in self.volatile))
        for _ in range(MAX_ROUNDS):
            # text beside a replacement may match only now
            before, text = text, apply_edits(text, self.edits(text))
            for name, pattern in patterns:
                text = _replace_matches(text, pattern, f"{{{{{name}}}}}")
            if text == before:
                break
        return text

    def _secrets(self, text: str) -> list[TextEdit]:
        found = self.redactor.spans(text)
        end = found[-1].end if found else 0
        # a stream can break off in the middle of a secret
        for label, secret in self.redactor.secrets:
            for size in range(min(len(secret) - 1, len(text) - end), SHORTEST_PART - 1, -1):
                if text.endswith(secret[:size]):
                    return [*found, secret_edit(len(text) - size, len(text), label)]
        return found


_VOLATILE = tuple((name, re.compile(pattern)) for name, pattern in VOLATILE)


def build_normalizer(redactor: Redactor, places: Mapping[str, Path], volatile: Iterable[str] = ()) -> Normalizer:
    """
    A normalizer; `places` are folders by name, for example cwd and home, and a folder inside another one wins.

    Raises:
        CassetteError: a path cannot be part of a recording, or a pattern is no regular expression.
    """
    known: dict[str, str] = {}
    for name, path in places.items():
        # the path as given comes first: a replay puts it back
        for form in dict.fromkeys((str(path), str(path.resolve()))):
            if form == "/":
                continue
            if not SAFE_PATH.fullmatch(form):
                raise CassetteError(f"{form!r} has characters that cannot be recorded. Work in another folder.")
            known.setdefault(form, name)
    ordered = sorted(known.items(), key=lambda pair: -len(pair[0]))
    try:
        patterns = tuple(re.compile(pattern) for pattern in volatile)
    except re.error as error:
        raise CassetteError(
            f"{error.pattern!r} is not a regular expression: {error}. Correct it in volatile."
        ) from error
    return Normalizer(redactor, tuple(ordered), patterns)


def _replace_matches(text: str, pattern: re.Pattern[str], replacement: str) -> str:
    """Replace matches, except inside placeholders of this run or of the recorded one."""
    if not pattern.search(text):
        return text
    parts = PLACEHOLDER.split(text)
    parts[::2] = [pattern.sub(lambda found: replacement if found[0] else "", part) for part in parts[::2]]
    return "".join(parts)


def placeholder(name: str) -> str:
    """What a recording holds instead of a path."""
    return f"{{{{handrail:{name}}}}}"
