"""The policy of a folder: the one place where settings become rules, mode and working folders."""

import json
from collections.abc import Iterable, Mapping
from os.path import realpath
from pathlib import Path
from typing import Any

from handrail.errors import HandrailError
from handrail.permissions.policy import NO_FLAGS, Flags, Policy
from handrail.permissions.rules import Behaviour, Rule, RuleProblem, Source, parse_rule


def current_policy(
    cwd: Path | str,
    variables: Mapping[str, str],
    *,
    mode: str = "",
    settings: str = "",
    add_dirs: Iterable[str] = (),
    flags: Flags = NO_FLAGS,
) -> Policy:
    """
    The policy in force in a folder. `settings` is a file, or JSON, that is read beside the settings of the folder.

    Raises:
        HandrailError: the settings cannot be read, or there is no such mode.
    """
    here = realpath(cwd)
    policy = Policy.empty(here, realpath(variables.get("HOME") or Path.home())).with_flags(flags)
    policy = policy.with_directories((here, *(realpath(Path(here, folder)) for folder in add_dirs)))
    if settings:
        policy = with_settings(policy, settings)
    try:
        return policy.with_mode(mode) if mode else policy
    except ValueError as error:
        raise HandrailError(str(error)) from error


def with_settings(policy: Policy, settings: str) -> Policy:
    """The policy with the rules, the mode and the folders of one file or JSON text."""
    inline = settings.strip().startswith("{")
    file = "" if inline else str(Path(policy.cwd, settings))
    text = settings if inline else Path(file).read_text("utf-8-sig")
    folder = realpath(Path(file).parent) if file else policy.cwd
    shown = "" if inline else settings
    section = permissions_of(text, shown or "--settings")
    rules: list[Rule | RuleProblem] = [*policy.rules, *policy.problems]
    for kind in Behaviour:
        rules += [
            parse_rule(rule, kind, Source("flag", shown, line_of(text, rule), folder))
            for rule in strings(section, kind.value)
        ]
    extra = (realpath(Path(folder, each)) for each in strings(section, "additionalDirectories"))
    policy = policy.with_rules(rules).with_directories((*policy.working_dirs, *extra))
    mode = section.get("defaultMode")
    return policy.with_mode(mode) if isinstance(mode, str) else policy


def permissions_of(text: str, where: str) -> Mapping[str, Any]:
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        raise HandrailError(f"{where}:{error.lineno}: this is not JSON: {error.msg}.") from error
    section = value.get("permissions", {}) if isinstance(value, dict) else None
    if not isinstance(section, dict):
        raise HandrailError(f"{where}: permissions is not an object.")
    return section


def strings(section: Mapping[str, Any], key: str) -> list[str]:
    value = section.get(key, [])
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise HandrailError(f"permissions.{key} is {value!r}, not a list of texts.")
    return value


def line_of(text: str, rule: str) -> int:
    """The line that a rule stands in, or 0."""
    at = text.find(json.dumps(rule, ensure_ascii=False))
    return text.count("\n", 0, at) + 1 if at >= 0 else 0
