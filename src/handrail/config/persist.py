"""
Writes permission updates of dialogs, hooks and callbacks to the settings file that they name.

Agreeing to a rule means agreeing to it for this folder: what is added here is added to the trust record too.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeAlias

from handrail.config.needs_trust import split
from handrail.config.places import SettingsPlaces
from handrail.config.rewrite import add_items, remove_items, set_value
from handrail.config.trust import TrustStore
from handrail.config.write import edit
from handrail.errors import SettingsError
from handrail.permissions.modes import MODE_ALIASES, MODES
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.permissions.update import DESTINATIONS, UPDATES, rule_text

DIRECTORIES = ("permissions", "additionalDirectories")


def persist(update: Mapping[str, Any], places: SettingsPlaces) -> Path | None:
    """
    Write an update to the file of its destination; returns the file, or None for an update of the session alone.

    Raises:
        SettingsError: the update is invalid, or the file cannot be written.
    """
    destination = update.get("destination", "session")
    if not isinstance(destination, str) or destination not in DESTINATIONS:
        raise SettingsError(f"{destination!r} is not a destination. Use one of {', '.join(DESTINATIONS)}.")
    source = DESTINATIONS[destination]
    if source == "session":
        return None
    kind = update.get("type")
    match kind:
        case "addRules" | "replaceRules" | "removeRules":
            change, added = _rules(str(kind), update)
        case "setMode":
            change, added = _mode(update.get("mode"))
        case "addDirectories" | "removeDirectories":
            change, added = _directories(str(kind), update.get("directories"))
        case _:
            raise SettingsError(f"there is no update of type {kind!r}. Use one of {', '.join(UPDATES)}.")
    file = edit(places.file(source), places, change)
    if source != "user" and (items := split(source, added)[1]):
        TrustStore(places.state).add(places.cwd, items)
    return file


def is_written_in(update: Mapping[str, Any], section: Mapping[str, Any]) -> bool:
    """Whether the `permissions` of a file hold what an update added to them."""
    match update.get("type"):
        case "addRules":
            behaviour = Behaviour(update["behavior"])
            there = {_meaning(rule, behaviour) for rule in section.get(behaviour.value, ())}
            return all(_meaning(rule_text(rule), behaviour) in there for rule in update["rules"])
        case "setMode":
            return bool(section.get("defaultMode") == update["mode"])
        case "addDirectories":
            return set(update["directories"]) <= set(section.get("additionalDirectories", ()))
        case _:
            return False  # removals have an effect through the file alone


Change: TypeAlias = Callable[[str], str]
"""From the old text of a file to the new one."""


def _rules(kind: str, update: Mapping[str, Any]) -> tuple[Change, dict[str, Any]]:
    behaviour = update.get("behavior")
    if behaviour not in ("allow", "ask", "deny"):
        raise SettingsError(f"{behaviour!r} is not a behavior. Use allow, ask or deny.")
    texts = _texts(update.get("rules"), Behaviour(behaviour))
    path = ("permissions", str(behaviour))
    if kind == "removeRules":
        same = {_meaning(text, Behaviour(behaviour)) for text in texts}
        return lambda text: remove_items(text, path, lambda rule: _meaning(rule, Behaviour(behaviour)) in same), {}
    added = {"permissions": {str(behaviour): texts}}
    if kind == "replaceRules":
        return lambda text: set_value(text, path, list(dict.fromkeys(texts))), added
    return lambda text: add_items(text, path, texts), added


def _texts(rules: Any, behaviour: Behaviour) -> list[str]:
    if not isinstance(rules, Sequence) or isinstance(rules, str):
        raise SettingsError(f"rules is {rules!r}, not a list. Write [{{'toolName': 'Bash'}}].")
    texts = []
    for rule in rules:
        text = rule_text(rule)
        if text is None:
            raise SettingsError(f"{rule!r} is not a rule. Write {{'toolName': 'Bash', 'ruleContent': 'npm test *'}}.")
        parsed = parse_rule(text, behaviour)
        if isinstance(parsed, RuleProblem):
            raise SettingsError(f"{text!r} is not a rule: {parsed.message}.")
        texts.append(text)
    return texts


def _meaning(text: Any, behaviour: Behaviour) -> object:
    """What a rule stands for, whatever its spelling: `Bash`, `Bash()` and `Bash(*)` are one."""
    rule = parse_rule(text, behaviour) if isinstance(text, str) else None
    return text if rule is None or isinstance(rule, RuleProblem) else (rule.tool, rule.spec)


def _mode(mode: Any) -> tuple[Change, dict[str, Any]]:
    if not isinstance(mode, str) or MODE_ALIASES.get(mode, mode) not in MODES:
        raise SettingsError(f"there is no mode {mode!r}. Use one of {', '.join(MODES)}.")
    path = ("permissions", "defaultMode")
    return lambda text: set_value(text, path, mode), {"permissions": {"defaultMode": mode}}


def _directories(kind: str, folders: Any) -> tuple[Change, dict[str, Any]]:
    if not isinstance(folders, Sequence) or isinstance(folders, str) or not all(isinstance(f, str) for f in folders):
        raise SettingsError(f"directories is {folders!r}, not a list of paths. Write ['/path/of/a/folder'].")
    if kind == "removeDirectories":
        return lambda text: remove_items(text, DIRECTORIES, lambda folder: folder in folders), {}
    return lambda text: add_items(text, DIRECTORIES, folders), {"permissions": {"additionalDirectories": list(folders)}}
