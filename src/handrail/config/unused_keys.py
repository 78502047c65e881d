"""The settings of a file that have no effect: keys that handrail does not know, or only keeps."""

from collections.abc import Iterator, Mapping
from difflib import get_close_matches
from typing import Any

from handrail.config.document import SettingsDocument
from handrail.config.json_paths import JsonPath, format_path
from handrail.config.keys import Key, Tree, tree
from handrail.config.problems import Problem

COMMENTS = ("_", "/", "$", "#")
"""How names begin that only hold a remark."""

RULE_LISTS = {
    **dict.fromkeys(("allow", "allowed", "allowedtools", "allowlist"), "allow"),
    **dict.fromkeys(("ask", "asks", "confirm"), "ask"),
    **dict.fromkeys(("deny", "denied", "denies", "denylist", "deniedtools", "disallow"), "deny"),
    **dict.fromkeys(("disallowed", "disallowedtools", "block", "blocked", "blocklist"), "deny"),
    **dict.fromkeys(("forbid", "forbidden", "reject", "refuse"), "deny"),
}
"""What people call the lists of rules, in small letters alone, and what they mean by it."""
RULE_SECTIONS = ("permission", "permissions", "permissionrules", "rules")


def misplaced_lists(values: Mapping[str, Any]) -> Iterator[tuple[JsonPath, str, Any]]:
    """The lists of rules in unknown keys, each with its path and with what it is to do: allow, ask or deny."""
    for name, value in values.items():
        plain = _plain(name)
        section, _, last = name.partition(".")
        if _plain(section) in RULE_SECTIONS and last and (meant := _meant_list(last)):
            yield (name,), meant, value
        elif plain in RULE_LISTS:
            yield (name,), RULE_LISTS[plain], value
        elif plain in RULE_SECTIONS and isinstance(value, dict):
            known = tree()["permissions"] if name == "permissions" else {}
            for inner, rules in value.items():
                if inner not in known and (meant := _meant_list(inner)):
                    yield (name, inner), meant, rules


def _meant_list(name: str) -> str:
    """Which list of rules a key beside them stands for, also a misspelt one; empty if none."""
    near = get_close_matches(_plain(name), RULE_LISTS, n=1, cutoff=0.66)  # aks, dney
    return RULE_LISTS[near[0]] if near and not name.startswith(COMMENTS) else ""


def _plain(name: str) -> str:
    return "".join(char for char in name.casefold() if char.isalpha())


def unused_keys(values: Mapping[str, Any], level: Tree | None = None, path: JsonPath = ()) -> Iterator[JsonPath]:
    """The paths of the keys without an effect."""
    level = tree() if level is None else level
    for name, value in values.items():
        known = level.get(name)
        if known is None:
            if not name.startswith(COMMENTS):
                yield (*path, name)
        elif isinstance(known, Key):
            if not known.has_effect:
                yield (*path, name)
        elif isinstance(value, dict):
            yield from unused_keys(value, known, (*path, name))


def unused_note(document: SettingsDocument) -> tuple[Problem, ...]:
    """One hint about all of them, except those that another problem names; misplaced rules get one of their own."""
    known = {problem.key for problem in document.problems}
    known |= {format_path(path) for path, _, _ in misplaced_lists(document.values)}
    names = [name for name in map(format_path, unused_keys(document.values)) if name not in known]
    if not names:
        return ()
    file = document.file
    return (Problem(file.source, file.shown, 0, f"keys without effect: {', '.join(names)}", hint=True),)
