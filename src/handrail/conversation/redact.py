"""
Removes secrets from text before it is written to a transcript, log, trace or cassette.

Three things are secrets: environment variables whose name says so, text of a known shape (keys and tokens of many
vendors, private keys, passwords in URLs), and whatever the user's own patterns match. Text that looks like a secret by
chance is missing from the record, never from the conversation.
"""

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from handrail.errors import PatternError
from handrail.lazy import lazy_pattern
from handrail.records import record

SECRET_WORDS = frozenset({"KEY", "KEYS", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS", "PAT"})
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

MARKER = r"\[redacted:([^\[\]\s]*)\]"
_EDGE = r"(?<![A-Za-z0-9])"
_VALUE = r"(?![$<{\[])[^\s\"'\\,;]"  # not the name of a variable, not something already removed

_HEADER_VALUE = (
    r"[\"']?\s{0,4}:\s{0,4}[\"']?"
    rf"(?:(?:bearer|basic|token)\s{{1,4}})?(?P<secret>{_VALUE}{{8,}})"
)

# What a name says to be secret: quoted, without blanks around the sign, as the rest of a line, or behind a flag. Code
# is not touched: a call, a variable or an attribute has no digit, or goes on behind what could be a value.
KEY_NAME = r"(?:api|access|account|private|encryption|signing|master)[_-]?key"
NAMES = (
    ("passw", r"passw(?:or)?d"),
    ("passphrase", "passphrase"),
    ("secret", r"secret(?:[_-]?(?:access)?[_-]?key)?"),
    ("token", "token"),
    ("key", rf"{KEY_NAME}\Z"),
)
"""What every name has in it, and the whole name."""
BEFORE_KEY = len("encryption_")
_BARE = r"(?![$<{\[%(])[^\s\"'\\,;&()<>{}$\[\]]"
_END = r"(?![\w(.\[])"
_DIGIT, _DIGIT_OR_SIGN = r"(?=[^\s\"']{0,300}?[0-9])", r"(?=[^\s\"']{0,300}?[0-9!@#%^*+~])"


def _assigned_value(shortest: int, contains: str) -> str:
    """What stands behind a secret name; `contains`: what a value without quotes must contain."""
    quoted = rf"\\?[\"']?\s{{0,4}}(?:=>|:=|[=:])\s{{0,4}}(\\?[\"'])((?![$<{{\[%])[^\s\"'\\]{{{shortest},300}})\1"
    bare = rf"({contains}{_BARE}{{{shortest},300}}+){_END}"
    return rf"(?m:{quoted}|={bare}|[ \t]{{0,4}}[:=][ \t]{{1,4}}{bare}[ \t]*$)"


PASSWORD_VALUE, KEY_VALUE = _assigned_value(4, _DIGIT_OR_SIGN), _assigned_value(16, _DIGIT)
PASSWORD_FLAG = rf"[ \t]{{1,4}}({_DIGIT_OR_SIGN}{_BARE}{{4,300}}+){_END}"
KEY_FLAG = rf"[ \t]{{1,4}}({_DIGIT}{_BARE}{{16,300}}+){_END}"
FLAG = lazy_pattern(r"(?<![\w-])--[A-Za-z-]*\Z")

# label, a literal that is part of every match (in small letters if case does not matter), the shape; a group named
# `secret` is what is removed, else all of it; nothing without a bound is looked for from each of many beginnings
SHAPES: tuple[tuple[str, str, str], ...] = (
    ("anthropic-key", "sk-ant-", r"sk-ant-[\w-]{16,}"),
    ("api-key", "sk-", rf"{_EDGE}sk-(?!ant-)(?=[A-Za-z_-]{{0,200}}[0-9])[\w-]{{20,}}"),
    ("stripe-key", "k_", rf"{_EDGE}[rs]k_(?:live|test)_[A-Za-z0-9]{{16,}}"),
    ("github-token", "gh", r"gh[oprsu]_[A-Za-z0-9]{30,}"),
    ("github-token", "github_pat_", r"github_pat_\w{22,}"),
    ("gitlab-token", "glpat-", r"glpat-[\w-]{18,}"),
    ("aws-key", "A", r"A(?<![A-Za-z0-9]A)(?:KI|SI)A[0-9A-Z]{16}(?![0-9A-Z])"),
    ("google-key", "AIza", r"AIza[\w-]{35}"),
    ("google-token", "ya29.", r"ya29\.[\w-]{20,}"),
    ("slack-token", "xox", r"xox[abeoprs]-[A-Za-z0-9-]{10,}"),
    ("npm-token", "npm_", r"npm_[A-Za-z0-9]{36}"),
    ("pypi-token", "pypi-", r"pypi-[\w-]{40,}"),
    ("huggingface-token", "hf_", rf"{_EDGE}hf_[A-Za-z0-9]{{30,}}"),
    ("groq-key", "gsk_", r"gsk_[A-Za-z0-9]{30,}"),
    ("xai-key", "xai-", rf"{_EDGE}xai-[A-Za-z0-9]{{30,}}"),
    ("cargo-token", "cio", rf"{_EDGE}cio[A-Za-z0-9]{{32}}(?![A-Za-z0-9])"),
    ("rubygems-key", "rubygems_", r"rubygems_[0-9a-f]{40,}"),
    ("nuget-key", "oy2", rf"{_EDGE}oy2[a-z0-9]{{43}}(?![A-Za-z0-9])"),
    ("docker-token", "dckr_", r"dckr_(?:pat|oat)_[\w-]{20,}"),
    ("package-index", "_auth", r"_auth(?:Token)?\s{0,2}=\s{0,2}[\"']?(?P<secret>(?![$<{\[])[\w+/=.-]{8,})"),
    ("package-index", "_password", rf"(?<![A-Za-z0-9])_password\s{{0,2}}=\s{{0,2}}[\"']?(?P<secret>{_VALUE}{{6,}})"),
    ("sendgrid-key", "SG.", rf"{_EDGE}SG\.[\w-]{{16,}}\.[\w-]{{32,}}"),
    ("mailgun-key", "key-", rf"{_EDGE}key-[0-9a-f]{{32}}(?![0-9a-f])"),
    ("mailchimp-key", "-us", rf"{_EDGE}[0-9a-f]{{32}}-us[0-9]{{1,2}}(?![A-Za-z0-9])"),
    ("brevo-key", "xkeysib-", r"xkeysib-[0-9a-f]{64}-\w{16}"),
    ("resend-key", "re_", rf"{_EDGE}re_(?=\w{{0,100}}[0-9])[A-Za-z0-9]{{8,100}}_[A-Za-z0-9]{{16,}}"),
    ("twilio-key", "SK", r"SK(?<![A-Za-z0-9]SK)[0-9a-f]{32}(?![0-9a-f])"),
    ("azure-key", "accountkey=", r"(?i)\baccountkey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    ("azure-key", "sharedaccesskey=", r"(?i)\bsharedaccesskey=(?P<secret>[A-Za-z0-9+/]{40,}={0,2})"),
    ("signed-url", "sig=", r"(?<=[?&])sig=(?P<secret>[\w%+/=-]{32,})"),
    ("signed-url", "-signature=", r"(?i)(?<=[?&])x-(?:amz|goog)-signature=(?P<secret>[0-9a-f]{32,})"),
    ("aws-token", "-security-token=", r"(?i)(?<=[?&])x-amz-security-token=(?P<secret>[\w%+/=-]{32,})"),
    ("google-key", "GOCSPX-", r"GOCSPX-[\w-]{20,}"),
    ("google-key", "GOOG1", rf"{_EDGE}GOOG1[A-Z0-9]{{20,}}"),
    ("digitalocean-token", "_v1_", rf"{_EDGE}do[oprt]_v1_[0-9a-f]{{40,}}"),
    ("dropbox-token", "sl.", rf"{_EDGE}sl\.[\w-]{{60,}}"),
    ("databricks-token", "dapi", rf"{_EDGE}dapi[0-9a-f]{{32}}"),
    ("vault-token", "hvs.", rf"{_EDGE}hvs\.[\w-]{{24,}}"),
    ("vault-token", "hvb.", rf"{_EDGE}hvb\.[\w-]{{24,}}"),
    ("terraform-token", ".atlasv1.", r"[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,}"),
    ("shopify-token", "shp", rf"{_EDGE}shp(?:at|ca|pa|ss)_[0-9a-fA-F]{{32}}"),
    ("supabase-token", "sbp_", rf"{_EDGE}sbp_[0-9a-f]{{40}}"),
    ("grafana-token", "glsa_", rf"{_EDGE}glsa_[\w+/=-]{{32,}}"),
    ("grafana-token", "glc_", rf"{_EDGE}glc_[\w+/=-]{{32,}}"),
    ("replicate-token", "r8_", rf"{_EDGE}r8_[A-Za-z0-9]{{30,}}"),
    ("age-key", "AGE-SECRET-KEY-1", r"AGE-SECRET-KEY-1[0-9A-Z]{50,}"),
    ("webhook", "hooks.slack.com/", r"(?<=hooks\.slack\.com/)(?:services|workflows)/[\w/-]{20,}"),
    ("webhook", "/api/webhooks/", r"(?<=/api/webhooks/)[0-9]{15,}/[\w-]{40,}"),
    ("password", "PASSWORD=", rf"PASSWORD=(?P<secret>{_BARE}{{4,300}}+){_END}"),
    ("password", "pwd=", r"(?i);\s{0,2}pwd=(?P<secret>[^;\s\"']{4,200})"),
    # the second half passes over what begins like one, so that its end is looked for once
    ("jwt", "eyJ", r"(?P<secret>eyJ[\w-]{8,}\.eyJ[\w-]{8,}\.[\w-]{8,})|eyJ[\w-]{8,}"),
    (
        "private-key",
        "PRIVATE KEY-----",
        r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----[\s\S]*?(?:-----END [A-Z ]{0,40}PRIVATE KEY-----|\Z)",
    ),
    ("header", "authorization", rf"(?i)\bauthorization{_HEADER_VALUE}"),
    ("header", "api-key", rf"(?i)\b(?:x-|x-goog-)?api-key{_HEADER_VALUE}"),
    ("bearer", "earer", rf"\b[Bb]earer\s{{1,4}}(?P<secret>(?=[^\s]*[0-9]){_VALUE}{{16,}})"),
    ("url-password", "://", r"://[^\s/:@]{0,256}:(?P<secret>(?![$<{\[])[^\s/@]{3,256})@"),
)

LABELS = frozenset(("password", "assigned-key", "pattern", *(label for label, _, _ in SHAPES)))
_NEEDLES = tuple((needle, shape.startswith("(?i)"), label, shape) for label, needle, shape in SHAPES)


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
        found = [span for label, value in self.secrets for span in _occurrences(text, value, label)]
        small = text.lower()
        for needle, ignores_case, label, shape in _NEEDLES:
            if needle in (small if ignores_case else text):
                found += _matches(text, re.compile(shape), label)
        found += _assignments(text, small)
        for pattern in self.patterns:
            found += _matches(text, pattern, "pattern")
        return _merge(self._outside(text, found))

    def _outside(self, text: str, spans: list[TextEdit]) -> list[TextEdit]:
        """The spans that are not inside an earlier replacement: a label of ours, not what else stands in its place."""
        if not spans or "[redacted:" not in text:
            return spans
        labels = LABELS.union(name for name, _ in self.secrets)
        done = [match.span() for match in re.finditer(MARKER, text) if match[1] in labels]
        return [span for span in spans if not any(start <= span.start and span.end <= end for start, end in done)]

    def text(self, text: str) -> str:
        """The text without secrets."""
        return apply_edits(text, self.spans(text))

    def value(self, value: Any) -> Any:
        """A JSON value with every string in it redacted, names included. What is nested too deeply is left out."""
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
                return {self.text(str(name)): self._redact_value(each, depth + 1) for name, each in value.items()}
            case list() | tuple():
                return [self._redact_value(each, depth + 1) for each in value]
            case _:
                return value


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
    # a value looks different inside JSON; of two that overlap the longer must be found first
    forms = {form: name for value, name in named.items() for form in (value, json.dumps(value)[1:-1])}
    secrets = sorted(((name, form) for form, name in forms.items()), key=lambda pair: (-len(pair[1]), pair[1]))
    return Redactor(tuple(secrets), tuple(_pattern(pattern) for pattern in patterns))


def is_secret_name(name: str) -> bool:
    """Whether the value of a variable or a header of this name is a secret."""
    return name.lower() in SECRET_HEADERS or _is_secret(name.replace("-", "_"))


def _is_secret(name: str) -> bool:
    words = name.upper().split("_")
    secret = any(word in SECRET_WORDS or word.endswith(SECRET_ENDS) for word in words)
    return secret and words[-1] not in NOT_SECRET_ENDS


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
            if type(name) is not str or not _collect_texts(each, texts, depth + 1):
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


def _assignments(text: str, small: str) -> list[TextEdit]:
    """Values that are assigned to a name of a password or a key. Names are searched first, because values are slow."""
    found: list[TextEdit] = []
    if len(small) != len(text):  # this letter is two in small letters, and then the places in the two texts differ
        small = text.replace("\N{LATIN CAPITAL LETTER I WITH DOT ABOVE}", "i").lower()
    for is_password, start, end in _names(small):
        shape = PASSWORD_VALUE if is_password else KEY_VALUE
        value = re.compile(shape).match(text, end)
        if value is None and FLAG.search(text, max(start - 32, 0), start):
            value = re.compile(PASSWORD_FLAG if is_password else KEY_FLAG).match(text, end)
        if value is not None and value.lastindex is not None:
            found.append(secret_edit(*value.span(value.lastindex), "password" if is_password else "assigned-key"))
    return found


def _names(small: str) -> Iterator[tuple[bool, int, int]]:
    """Where names of passwords (True) and keys stand. What they have in them is found much sooner than a pattern."""
    for part, shape in NAMES:
        at = small.find(part)
        while at >= 0:
            pattern = re.compile(shape)
            end = at + len(part)
            name = pattern.search(small, max(at - BEFORE_KEY, 0), end) if part == "key" else pattern.match(small, at)
            if name is not None:
                yield part.startswith("pass"), *name.span()
            at = small.find(part, end)


def _merge(spans: list[TextEdit]) -> list[TextEdit]:
    merged: list[TextEdit] = []
    for span in sorted(spans, key=lambda each: (each.start, -each.end)):
        if merged and span.start < merged[-1].end:
            last = merged[-1]
            merged[-1] = TextEdit(last.start, max(last.end, span.end), last.text)
        else:
            merged.append(span)
    return merged
