"""Checks the values of a settings file. Wrong values are left out and reported; the others are kept."""

from collections.abc import Mapping, Sequence
from contextlib import suppress
from difflib import get_close_matches
from functools import reduce
from types import UnionType
from typing import Any

from handrail.config.json_paths import JsonPath, format_path
from handrail.config.keys import ALWAYS, KEYS, Key, Schema, Tree, tree
from handrail.permissions.modes import STRICTNESS, stricter
from handrail.records import record

TYPES: Mapping[str, tuple[type | UnionType, str]] = {
    "string": (str, "text in quotes"),
    "boolean": (bool, "true or false"),
    "integer": (int, "a whole number"),
    "number": (int | float, "a number"),
    "array": (list, "a list"),
    "object": (dict, "an object"),
}
"""The types of JSON Schema, as Python types and as words."""
FORBIDS: tuple[JsonPath, ...] = (
    ("permissions", "deny"),
    ("permissions", "ask"),
    ("permissions", "disableBypassPermissionsMode"),
    ("permissions", "disableAutoMode"),
    ("sandbox", "enabled"),
    ("sandbox", "autoAllowBashIfSandboxed"),
    ("sandbox", "allowUnsandboxedCommands"),
    ("sandbox", "network", "deniedDomains"),
    ("sandbox", "filesystem", "denyRead"),
    ("sandbox", "filesystem", "denyWrite"),
    ("deniedMcpServers",),
    ("disabledMcpjsonServers",),
    ("allowedMcpServers",),
    ("allowedHttpHookUrls",),
    ("httpHookAllowedEnvVars",),
    ("availableModels",),
    ("disableSkillShellExecution",),
    ("redact",),
)
"""A mistake in these, or in the objects that hold them, means that it is unknown what the file forbids."""
STRICT_MODES = tuple(mode.casefold() for mode in STRICTNESS if stricter(mode, "default"))


@record
class ValueProblem:
    """
    Something wrong with one value.

    `doubt`: it is unknown what the file would have forbidden. `hint`: only a hint, the value still counts.
    """

    path: JsonPath
    message: str
    doubt: bool = False
    hint: bool = False


class _OmitError(Exception):
    """The value cannot be used."""


def check_values(values: dict[str, Any]) -> tuple[dict[str, Any], list[ValueProblem]]:
    """The usable values, and what is wrong with the others. Unknown keys are kept."""
    problems: list[ValueProblem] = []
    return _section(values, tree(), (), problems), problems


def _section(values: dict[str, Any], level: Tree, path: JsonPath, problems: list[ValueProblem]) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in values.items():
        here = (*path, name)
        known = level.get(name)
        if known is None:
            problems += _hint(name, level, here)
            kept[name] = value
        elif isinstance(known, Key):
            with suppress(_OmitError):
                schema = {"type": known.schema["type"]} if known.raw else known.schema
                kept[name] = _fit(_wrap_text(known, value, here, problems), schema, here, problems)
        elif isinstance(value, dict):
            kept[name] = _section(value, known, here, problems)
        else:
            problems.append(_mismatch(here, value, "an object"))
    return kept


def _wrap_text(key: Key, value: Any, path: JsonPath, problems: list[ValueProblem]) -> Any:
    """Accept a single text for a list that only narrows, as a list of one."""
    if isinstance(value, str) and key.narrows == ALWAYS and key.schema["type"] == "array":
        problems.append(
            ValueProblem(path, f"is {describe_value(value)} and must be a list; it is read as a list of one.")
        )
        return [value]
    return value


def _fit(value: Any, schema: Schema, path: JsonPath, problems: list[ValueProblem]) -> Any:
    """The value without the parts that do not fit. Raises _OmitError if nothing is left of it."""
    if expected := schema.get("type"):
        kind, shown = TYPES[expected]
        if not isinstance(value, kind) or (isinstance(value, bool) and expected != "boolean"):
            problems.append(_mismatch(path, value, shown))
            raise _OmitError
    if "enum" in schema and value not in schema["enum"]:
        problems.append(_mismatch(path, value, "one of " + ", ".join(map(repr, schema["enum"]))))
        raise _OmitError
    if "minimum" in schema and value < schema["minimum"]:
        problems.append(_mismatch(path, value, f"at least {schema['minimum']}"))
        raise _OmitError
    if "pattern" in schema and not value.strip():
        problems.append(_mismatch(path, value, "a name; write one, or leave the key out"))
        raise _OmitError
    if isinstance(value, str) and (problem := text_problem(value)):
        problems.append(ValueProblem(path, f"{problem}.", _forbids(path)))
        raise _OmitError
    if isinstance(value, list) and "items" in schema:
        kept: list[Any] = []
        for at, item in enumerate(value):
            with suppress(_OmitError):
                kept.append(_fit(item, schema["items"], (*path, at), problems))
        return kept
    if isinstance(value, dict):
        return _fit_object(value, schema, path, problems)
    return value


def _fit_object(value: dict[str, Any], schema: Schema, path: JsonPath, problems: list[ValueProblem]) -> dict[str, Any]:
    missing = [name for name in schema.get("required", ()) if name not in value]
    if missing:
        problems.append(ValueProblem(path, f"has no {missing[0]!r}; add it."))
        raise _OmitError
    choices = [name for choice in schema.get("oneOf", ()) for name in choice["required"]]
    if choices and sum(name in value for name in choices) != 1:
        problems.append(ValueProblem(path, f"must have exactly one of {', '.join(choices)}.", _forbids(path)))
        raise _OmitError
    kept: dict[str, Any] = {}
    for name, inner in value.items():
        rule = schema.get("properties", {}).get(name) or schema.get("additionalProperties")
        try:
            kept[name] = _fit(inner, rule, (*path, name), problems) if rule else inner
        except _OmitError:
            if name in schema.get("required", ()) or "oneOf" in schema:
                raise
    return kept


def text_problem(value: str) -> str:
    """Why a text cannot be passed on; empty if it can."""
    if "\0" in value:
        return "holds a NUL character"
    if not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value):
        return "holds half of a pair of characters (a lone surrogate)"
    return ""


def _mismatch(path: JsonPath, value: Any, expected: str) -> ValueProblem:
    what = "not a text" if path[0] == "env" else describe_value(value)  # a value of env may be a secret
    return ValueProblem(
        path, f"is {what} and must be {expected}.", _forbids(path) or _resembles_strict_mode(path, value)
    )


def _forbids(path: JsonPath) -> bool:
    return any(path[: len(key)] == key or key[: len(path)] == path for key in FORBIDS)


def _resembles_strict_mode(path: JsonPath, value: Any) -> bool:
    """Whether a value that is no mode may have meant one that is stricter than default."""
    if path != ("permissions", "defaultMode") or not isinstance(value, str):
        return False
    letters = "".join(filter(str.isalpha, value.casefold()))
    return bool(get_close_matches(letters, STRICT_MODES, n=1, cutoff=0.6))


def describe_value(value: Any) -> str:
    """A value for a message, short and in the terms of JSON."""
    match value:
        case None:
            return "null"
        case bool():
            return "true" if value else "false"
        case list():
            return "a list"
        case dict():
            return "an object"
        case _:
            text = ascii(value) if isinstance(value, str) and text_problem(value) else repr(value)
            return text if len(text) <= 80 else text[:77] + "..."


def _hint(name: str, level: Tree, path: JsonPath) -> list[ValueProblem]:
    """A hint about an unknown key that resembles a known one, or stands at the wrong level."""
    if "." in name and (nested := [key.path for key in KEYS if key.name == format_path(path)]):
        return [ValueProblem(path, f"is not known. Did you mean {_as_objects(nested[0])}?", hint=True)]
    near = get_close_matches(name, level, n=1, cutoff=0.8)
    folded = [known for known in level if known.casefold() == name.casefold()]
    here = [format_path((*path[:-1], found)) for found in (folded or near)]
    # a short name such as mode or url may mean anything
    elsewhere = [key.name for key in KEYS if key.path[-1] == name and not name.islower()]
    found = here or elsewhere
    return [ValueProblem(path, f"is not known. Did you mean {found[0]!r}?", hint=True)] if found else []


def _as_objects(path: Sequence[str]) -> str:
    """A path as JSON: `{"sandbox": {"enabled": ...}}`."""
    return reduce(lambda inner, name: f'{{"{name}": {inner}}}', reversed(path), "...")
