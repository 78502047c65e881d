"""The settings of a file that have no effect: keys that handrail does not know, or only keeps."""

from collections.abc import Iterator, Mapping
from typing import Any

from handrail.config.document import SettingsDocument
from handrail.config.json_paths import JsonPath, format_path
from handrail.config.keys import Key, Tree, tree
from handrail.config.problems import Problem

COMMENTS = ("_", "/", "$", "#")
"""How names begin that only hold a remark."""


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
    """One hint about all of them, except those that another problem names."""
    known = {problem.key for problem in document.problems}
    names = [name for name in map(format_path, unused_keys(document.values)) if name not in known]
    if not names:
        return ()
    file = document.file
    return (Problem(file.source, file.shown, 0, f"no effect here: {', '.join(names)}", hint=True),)
