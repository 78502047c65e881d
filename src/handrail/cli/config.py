"""`handrail config`: show settings and where they come from, and change them."""

import argparse
import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import report_failure
from handrail.config.check import check_values, describe_value
from handrail.config.document import read_document
from handrail.config.flags import SettingsFlags
from handrail.config.json_paths import format_path
from handrail.config.keys import find, tree
from handrail.config.load import load_settings
from handrail.config.merge import merge_values
from handrail.config.places import SettingsPlaces, places_for
from handrail.config.rewrite import remove_key, set_value
from handrail.config.schema import build_schema
from handrail.config.snapshot import Layer, Settings
from handrail.config.unused_keys import unused_keys
from handrail.config.write import edit
from handrail.conversation.plain import plain, plain_json
from handrail.errors import SettingsError
from handrail.extensions.output_styles import find_styles
from handrail.extensions.places import ConfigFolder, config_folders
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

MISSING = 1


def run(chosen: argparse.Namespace) -> int:
    """0 = done, 1 = the key is not set, 2 = it cannot be done."""
    if chosen.way == "schema":
        print(json.dumps(build_schema(), indent=2))
        return 0
    places = places_for(Path.cwd(), os.environ, state_folder(os.environ))
    if chosen.way in ("set", "unset"):
        return change(chosen, places)
    settings = load_settings(places, os.environ, SettingsFlags())
    for problem in settings.problems:
        sys.stderr.write(f"handrail: {plain(str(problem))}\n")
    if chosen.scope:
        settings = only(settings, places, chosen.scope)
    path = tuple(chosen.key.split(".")) if chosen.way == "get" else ()
    value = settings.get(*path)
    if value is None:
        report_failure(f"{chosen.key} {_why_missing(path)}", as_json=chosen.json)
        return MISSING
    if chosen.show_source:
        rows = [{"key": key, "value": value, "source": source} for key, value, source in origins(settings, path)]
        lines = [f"{r['key']} = {json.dumps(r['value'], ensure_ascii=False)}  ({r['source']})" for r in rows]
        print(plain_json(rows) if chosen.json else plain("\n".join(lines)))
    else:
        print(plain_json(value, indent=None if chosen.json else 2))
    return 0


def only(settings: Settings, places: SettingsPlaces, scope: str) -> Settings:
    """The settings in the files of one source, whether or not they take effect."""
    layers = [Layer(found, found.values) for file in places.files((scope,)) if (found := read_document(file))]
    return Settings(
        layers=tuple(layers),
        values=merge_values(layer.values for layer in layers),
        trust=settings.trust,
    )


def origins(settings: Settings, path: tuple[str, ...]) -> Iterator[tuple[str, Any, str]]:
    """Every value with the place where it is written; lists item by item."""
    for key, value in leaves(settings.get(*path), path):
        layer = next(layer for layer in settings.layers if holds(layer, key, value))
        file = layer.document.file
        way = (*key[:-1], position(layer, key, value)) if isinstance(key[-1], int) else key
        line = layer.document.line(way)
        yield format_path(key), value, f"{layer.source} {file.shown}" + (f":{line}" if line else "")


def leaves(value: Any, path: tuple[str | int, ...]) -> Iterator[tuple[tuple[str | int, ...], Any]]:
    """The values of a tree: objects are walked, lists are taken item by item."""
    if isinstance(value, dict) and value:
        for name, inner in value.items():
            yield from leaves(inner, (*path, name))
    elif isinstance(value, list):
        yield from (((*path, at), inner) for at, inner in enumerate(value))
    elif path:
        yield path, value


def holds(layer: Layer, path: tuple[str | int, ...], value: Any) -> bool:
    """Whether a layer holds this value, alone or as an item of its list."""
    found: Any = layer.values
    for step in path:
        if isinstance(step, int):
            return isinstance(found, list) and value in found
        found = found.get(step) if isinstance(found, dict) else None
    return bool(found == value)


def position(layer: Layer, path: tuple[str | int, ...], value: Any) -> int:
    """The index of a value in the list of its layer."""
    found: Any = layer.values
    for step in path[:-1]:
        found = found[step]
    at: int = found.index(value)
    return at


def change(chosen: argparse.Namespace, places: SettingsPlaces) -> int:
    """Write or remove one value."""
    path = tuple(chosen.key.split("."))
    file = places.file(chosen.scope or "user")
    if chosen.way == "unset":
        there = read_document(file)
        if there is None or (not there.broken and Settings(values=there.values).get(*path) is None):
            sys.stderr.write(f"handrail: {plain(f'{chosen.key} is not set in {file.shown}')}.\n")
            return MISSING
        edit(file, places, lambda text: remove_key(text, path))
    else:
        value = fitting(path, chosen.value)
        edit(file, places, lambda text: set_value(text, path, value))
    ignored = load_settings(places, os.environ, SettingsFlags()).ignored
    waits = any(item.source == file.source and item.name.startswith(chosen.key) for item in ignored)
    note = " It takes effect once the folder is trusted: handrail trust." if waits else ""
    if chosen.way == "set" and path[0] not in tree():
        note = " handrail does not know this key: it is kept, and has no effect."
    if chosen.way == "set" and path == ("outputStyle",):
        note += _style_note(chosen.value, places)
    print(f"{chosen.key} {'was removed from' if chosen.way == 'unset' else 'is set in'} {file.shown}.{note}")
    return 0


def _style_note(name: str, places: SettingsPlaces) -> str:
    """What is said of an output style that is not there now; plugins bring others, with a colon in their names."""
    folders = config_folders(Path(places.cwd), os.environ)
    known = find_styles((*folders, *(ConfigFolder(each, "policy", str(each)) for each in places.policy))).by_name
    if name in known or ":" in name:
        return ""
    return f" There is no style {name!r} here, so it has no effect.{did_you_mean(name, known)}"


def _why_missing(path: tuple[str, ...]) -> str:
    """Whether a key without a value is known, and the one that was probably meant."""
    nested: Any = None
    for name in reversed(path):
        nested = {name: nested}
    if hint := next((problem.message for problem in check_values(nested)[1] if problem.hint), ""):
        return hint
    if find(path) is None and any(unused_keys(nested)):
        return "is not known. `handrail config schema` prints the keys there are."
    return "is not set."


def fitting(path: tuple[str, ...], text: str) -> Any:
    """The value that a text stands for; SettingsError if it does not fit the key."""
    known = find(path)
    try:
        value = text if known and known.schema.get("type") == "string" else json.loads(text)
    except ValueError:
        value = text
    if known and known.schema.get("type") == "array" and isinstance(value, str):
        raise SettingsError(f"{known.name} is {describe_value(value)} and must be a list: {json.dumps([value])}")
    nested: Any = value
    for name in reversed(path):
        nested = {name: nested}
    wrong = [problem for problem in check_values(nested)[1] if not problem.hint]
    hints = [problem for problem in check_values(nested)[1] if problem.hint]
    if wrong or (hints and known is None):
        problem = (wrong or hints)[0]
        raise SettingsError(f"{format_path(problem.path)} {problem.message}")
    section = nested.get("permissions")
    for kind in Behaviour:
        rules = section.get(kind.value) if isinstance(section, dict) else None
        for rule in rules if isinstance(rules, list) else ():
            if isinstance(found := parse_rule(rule, kind), RuleProblem):
                raise SettingsError(f"permissions.{kind.value} has the rule {rule!r}: {found.message}.")
    if known and known.managed:
        raise SettingsError(f"{known.name} works only in policy files. Ask your administrator to set it there.")
    return value
