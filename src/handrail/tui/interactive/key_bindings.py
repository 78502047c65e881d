"""The keys of the terminal: what each does by default, and what the user's own file says."""

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path

from prompt_toolkit.filters import FilterOrBool
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent

from handrail.records import record

DEFAULT_KEYS: dict[str, tuple[str, ...]] = {
    "submit": ("enter",),
    "newline": ("escape enter", "c-j"),
    "interrupt": ("escape",),
    "leave": ("c-c",),
    "end": ("c-d",),
    "next-mode": ("s-tab",),
    "transcript": ("c-o",),
    "tasks": ("c-t",),
    "editor": ("c-g",),
    "history-search": ("c-r",),
    "paste-image": ("c-v",),
    "redraw": ("c-l",),
    "suspend": ("c-z",),
}
"""What can be bound in the file, with the keys that do it if the file says nothing."""

OnKey = Callable[[KeyPressEvent], None]


@record
class KeyAction:
    """Something that a key does: its name in the file, what it does, and when."""

    name: str
    act: OnKey
    when: FilterOrBool = True


def read_keys(file: Path) -> tuple[dict[str, tuple[str, ...]], list[str]]:
    """The keys of each action, and what is wrong with the file."""
    if not file.is_file():
        return DEFAULT_KEYS, []
    try:
        value = json.loads(file.read_text("utf-8"))
    except (OSError, ValueError) as error:
        return DEFAULT_KEYS, [f"{file}: it cannot be read as JSON: {error}. The usual keys hold."]
    if not isinstance(value, dict):
        return DEFAULT_KEYS, [f'{file}: it is no JSON object. Write, for example: {{"transcript": "c-x c-t"}}.']
    keys, problems = dict(DEFAULT_KEYS), []
    for name, wanted in value.items():
        texts = [wanted] if isinstance(wanted, str) else wanted
        if name not in DEFAULT_KEYS:
            problems.append(f"{file}: there is no action {name!r}. Known: {', '.join(DEFAULT_KEYS)}.")
        elif not isinstance(texts, list) or not all(isinstance(text, str) and _is_known(text) for text in texts):
            problems.append(f"{file}: {name}: {wanted!r} names no keys. Write them like c-x, f5 or escape enter.")
        else:
            keys[name] = tuple(texts)
    return keys, problems


def _is_known(keys: str) -> bool:
    try:
        KeyBindings().add(*keys.split())
    except ValueError:
        return False
    return bool(keys.split())


def bind(actions: Sequence[KeyAction], keys: Mapping[str, Sequence[str]]) -> KeyBindings:
    """The bindings of these actions."""
    bindings = KeyBindings()
    for action in actions:
        for each in keys.get(action.name, ()):
            bindings.add(*each.split(), filter=action.when)(action.act)
    return bindings
