"""What a site's robots.txt says to us (RFC 9309)."""

import re
from urllib.parse import quote, unquote

from handrail.records import record

AGENT = "handrail"
MAX_BYTES = 500_000
MAX_RULES = 5_000
KEPT = "/?&=%:@!$'()*+,;~-._"


@record
class RobotsRule:
    """A line of the file: whether paths that begin like this may be fetched."""

    pattern: str
    allows: bool


def read_robots(text: str) -> tuple[RobotsRule, ...]:
    """The rules of the group for us, or of the group for all others."""
    groups: dict[str, list[RobotsRule]] = {}
    named: list[str] = []
    in_rules = False
    for line in text.splitlines()[: 2 * MAX_RULES]:
        field, colon, value = line.partition("#")[0].partition(":")
        field, value = field.strip().lower(), value.strip()
        if field == "user-agent":
            if in_rules:
                named, in_rules = [], False
            named.append(value.lower())
            groups.setdefault(value.lower(), [])
        elif colon and field in ("allow", "disallow"):
            in_rules = True
            for name in named if value else ():
                groups[name].append(RobotsRule(value, field == "allow"))
    ours = [name for name in groups if re.match(r"[a-z_-]*", name)[0] == AGENT]  # type: ignore[index]  # it always matches
    found = [rule for name in ours for rule in groups[name]] if ours else groups.get("*", [])
    return tuple(found[:MAX_RULES])


def may_fetch(rules: tuple[RobotsRule, ...], path: str) -> bool:
    """Whether the longest matching rule allows a path (with its query); without one it is allowed."""
    plain = _normal(path)
    matching = [rule for rule in rules if _matches(_normal(rule.pattern), plain)]
    return not matching or max((len(rule.pattern), rule.allows) for rule in matching)[1]


def _normal(path: str) -> str:
    return quote(unquote(path), safe=KEPT)


def _matches(pattern: str, path: str) -> bool:
    """`*` is any text, `$` at the end is the end; matched piece by piece, so that no pattern takes long."""
    ends = pattern.endswith("$")
    first, *rest = pattern.removesuffix("$").split("*")
    if not path.startswith(first):
        return False
    at = len(first)
    for number, piece in enumerate(rest):
        if ends and number == len(rest) - 1:
            return path.endswith(piece) and len(path) - len(piece) >= at
        found = path.find(piece, at)
        if found < 0:
            return False
        at = found + len(piece)
    return not ends or at == len(path)
