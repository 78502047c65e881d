"""Checks the addresses of HTTP hooks."""

import re
from collections.abc import Iterable
from urllib.parse import urlsplit


def url_problem(url: str) -> str:
    """What is wrong with the address of a hook; empty = nothing."""
    if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
        return "an address has no blanks, backslashes or unusual characters"
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError as error:
        return str(error)
    if parts.scheme not in ("http", "https") or not parts.hostname or port == 0:
        return "write http://host/path or https://host/path"
    return "a name and password do not belong in an address" if "@" in parts.netloc else ""


def url_allowed(url: str, patterns: Iterable[str]) -> bool:
    """Whether one of the patterns matches the address. `*` matches anything, in a host only parts of it."""
    return any(_regex(pattern).fullmatch(url) for pattern in patterns)


def _regex(pattern: str) -> re.Pattern[str]:
    scheme, separator, rest = pattern.partition("://")
    host, slash, path = rest.partition("/") if separator else ("", "", pattern)
    front = _wildcards(scheme, "[a-z]*") + re.escape(separator) + _wildcards(host, "[^/?#@]*") if separator else ""
    return re.compile(front + re.escape(slash) + _wildcards(path, ".*"), re.IGNORECASE | re.DOTALL)


def _wildcards(text: str, star: str) -> str:
    """A regular expression in which each run of stars is one `star`, so that it cannot backtrack for long."""
    return star.join(re.escape(part) for part in re.split(r"\*+", text))
