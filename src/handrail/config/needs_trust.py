"""
Which of a project's settings need trust: all that are not known to narrow.

The table of keys decides. A project may forbid and ask without trust. A setting that allows, runs a program, names an
address or sets a variable is a `TrustItem` and counts only in a trusted folder. Switching hooks off is an item too: a
hook may be a guard.
"""

import glob
import hashlib
import json
import os
import shlex
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from handrail.config.json_paths import JsonPath, format_path
from handrail.config.keys import ALWAYS, Key, Tree, tree
from handrail.config.shown_values import leaves, show_value, visible
from handrail.extensions.places import SKILL_FAMILIES
from handrail.lazy import lazy, lazy_pattern
from handrail.permissions.mistakes import expand_braces
from handrail.records import record

if TYPE_CHECKING:
    from handrail.agents import definitions
    from handrail.extensions.commands import CommandFile
    from handrail.extensions.definition_files import DefinitionFile
else:
    definitions = lazy("handrail.agents.definitions")  # few projects have agents

# Keys whose values start programs: the project files that these name are part of what is trusted.
RUNS = frozenset(("hooks", "statusLine", "apiKeyHelper", "mcpServers", "lspServers", "commands", "skills", "agents"))
MAX_WORDS, MAX_FOLDERS, MAX_FILE = 200, 5, 4_000_000
MAX_PATTERN_STEPS = 5_000_000
PROJECT = lazy_pattern(r"\$(?:\{(?:CLAUDE|HANDRAIL)_PROJECT_DIR\}|(?:CLAUDE|HANDRAIL)_PROJECT_DIR\b)")
BESIDE = lazy_pattern(r"\$\{(?:CLAUDE|HANDRAIL)_SKILL_DIR\}")
CUT = lazy_pattern(r"[\s;&|()<>=`'\"]+")
ONLY_PRINTS = lazy_pattern(r"(?:cat|head|tail|wc|ls|stat)(?:[ \t]+[\w./~@%+:,-]+)*[ \t]*")
"""A line that shows files and runs none of them: what they say may change from day to day."""
WILD = lazy_pattern(r"[*?\[]")


@record
class TrustItem:
    """One setting that widens. `path` leads to it in its file; `folder` is the one whose trust it needs."""

    source: str
    path: JsonPath
    value: Any
    folder: str = ""

    @property
    def name(self) -> str:
        """The setting that it belongs to, without the place in its list."""
        return format_path([step for step in self.path if isinstance(step, str)])

    @property
    def shown(self) -> str:
        """One line for records. Values of variables and headers, which may be secrets, are left out."""
        if self.path[0] == "env":
            return visible(self.name)
        value = self.value
        if isinstance(value, dict):
            value = {name: part for name, part in value.items() if name not in ("env", "headers")}
        return f"{visible(self.name)}: {_one_line(show_value(str(self.path[-1]), value))}"

    @property
    def safe_value(self) -> Any:
        """The whole value for the user who decides: secrets shortened, control characters made visible."""
        return show_value(str(self.path[-1]), self.value)

    @property
    def lines(self) -> tuple[str, ...]:
        """The name, and below it each part of the value."""
        value = self.safe_value
        if not isinstance(value, dict):
            return (f"{visible(self.name)}: {_one_line(value)}",)
        return (visible(self.name), *(f"  {path}: {_one_line(each)}" for path, each in leaves(value)))

    @property
    def is_hook(self) -> bool:
        """Whether removing it could widen as well."""
        return self.path[0] == "hooks"


def _one_line(value: Any) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def split(source: str, values: Mapping[str, Any], folder: str = "") -> tuple[dict[str, Any], tuple[TrustItem, ...]]:
    """The values that narrow, and the items that do not. Unknown keys are neither: they have no effect."""
    items: list[TrustItem] = []
    kept = _narrow(source, values, tree(), (), items)
    return kept, tuple(TrustItem(item.source, item.path, item.value, folder) for item in items)


def command_items(commands: "Iterable[CommandFile]", folders: Sequence[str]) -> tuple[TrustItem, ...]:
    """What the project's commands and skills run, allow or make dearer; `folders`: those whose settings count."""
    return tuple(
        TrustItem(
            "project",
            (f"{command.kind}s", command.name, name),
            _fill_folder(value, command.file),
            folder_of(command.file, folders),
        )
        for command in commands
        if command.source == "project"
        for name, value in command.widens.items()
    )


def _fill_folder(value: object, file: str) -> object:
    """What a command runs, with the folder of its file filled in: the scripts there are part of what is trusted."""
    folder = os.path.realpath(os.path.dirname(file))  # noqa: PTH120  # runs at every start
    match value:
        case str():
            return BESIDE.sub(lambda _name: folder, value)
        case list():
            return [_fill_folder(each, file) for each in value]
        case dict():
            return {name: _fill_folder(each, file) for name, each in value.items()}
        case _:
            return value


def folder_of(file: str, folders: Sequence[str]) -> str:
    """The folder whose trust a command or an agent needs: the one its file is found in, wherever a link there leads."""
    holder = next((path.parent for path in Path(file).parents if path.name in SKILL_FAMILIES), None)
    real = os.path.realpath(holder) if holder is not None else ""
    return real if real in folders else folders[0]


def agent_items(files: "Iterable[DefinitionFile]", folders: Sequence[str]) -> tuple[TrustItem, ...]:
    """What the project's agent files run, connect to or write, and those that would replace a built-in agent."""
    return tuple(
        TrustItem("project", ("agents", file.content.text("name"), *path), value, folder_of(str(file.path), folders))
        for file in files
        if file.source == "project"
        for path, value in _agent_values(file)
    )


def _agent_values(file: "DefinitionFile") -> "Iterator[tuple[JsonPath, Any]]":
    head = file.content
    if definitions.is_built_in(head.text("name")):
        yield (), {**{name: str(value) for name, value in head.values.items()}, "prompt": head.body}
    yield from (((name,), value) for name, value in definitions.values_to_trust(head, file.text).items())


def fingerprint(item: TrustItem, folder: str) -> str:
    """A digest of an item for the trust record. It changes with the item and with the files that it runs."""
    content = json.dumps([item.source, item.name, item.value], sort_keys=True, ensure_ascii=True)
    digest = hashlib.sha256(content.encode())
    if starts_programs(item):
        if any(map(_is_endless, _possible_paths(item.value, folder))):
            return os.urandom(32).hex()  # it is not known what it runs, so that no record of trust may hold it
        for name in sorted(files_named(item.value, folder)):
            with suppress(OSError), Path(name).open("rb") as file:
                data = hashlib.sha256(file.read(MAX_FILE) + _rest_stamp(file)).hexdigest()
                digest.update(f"\0{name}\0{data}".encode("utf-8", "surrogateescape"))
    return digest.hexdigest()


def starts_programs(item: TrustItem) -> bool:
    """Whether an item names a program that would be started."""
    return item.path[0] in RUNS


def _narrow(
    source: str, values: Mapping[str, Any], level: Tree, path: JsonPath, items: list[TrustItem]
) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, value in values.items():
        known, here = level.get(name), (*path, name)
        if isinstance(known, Key):
            if known.narrows == ALWAYS or any(type(value) is type(one) and value == one for one in known.narrows):
                kept[name] = value
            elif not known.has_effect:
                continue  # there is nothing to trust yet
            elif known.whole:
                items.append(TrustItem(source, here, value))
            else:
                items += (TrustItem(source, way, part) for way, part in _parts(here, value, hooks=name == "hooks"))
        elif known is not None and (inner := _narrow(source, value, known, here, items)):
            kept[name] = inner
    return kept


def _parts(path: JsonPath, value: Any, *, hooks: bool) -> Iterator[tuple[JsonPath, Any]]:
    """The parts of lists and maps, so that removing one does not change the others."""
    match value:
        case list():
            yield from (((*path, at), part) for at, part in enumerate(value))
        case dict():
            for name, part in value.items():
                yield from _parts((*path, name), part, hooks=False) if hooks else [((*path, name), part)]
        case _:
            yield path, value


def files_named(value: Any, folder: str) -> Iterator[str]:
    """The real paths of the project files that a command names."""
    words = [word for word in _possible_paths(value, folder) if not _is_endless(word)]
    inside = [real for word in words for real in _inside(word, folder)]
    below = [real for real in inside if os.path.isdir(real)]  # noqa: PTH112  # it may be entered: cd scripts && sh x
    inside += [real for start in below[:MAX_FOLDERS] for word in words for real in _inside(word, start)]
    border = folder.rstrip("/") + "/"
    for real in dict.fromkeys(inside):
        if real.startswith(border) and os.path.isfile(real):  # noqa: PTH113
            yield real


def _possible_paths(value: Any, folder: str) -> list[str]:
    """The words of a command that may be paths or patterns."""
    words = [word for text in _texts(value) if not ONLY_PRINTS.fullmatch(text) for word in _words(text)][:MAX_WORDS]
    plain = [PROJECT.sub(lambda _name: folder, each) for word in words for each in expand_braces(word) or [word]]
    return plain[:MAX_WORDS]


def _is_endless(word: str) -> bool:
    """Whether a pattern opens so many brackets without closing them that finding its files would take minutes."""
    rests = [part[part.rfind("]") + 1 :] for part in word.split("/")]
    return any(rest.count("[") * len(rest) > MAX_PATTERN_STEPS for rest in rests)


def _inside(word: str, folder: str) -> Iterator[str]:
    """The real paths that a word may mean in a folder; a pattern means the files that it matches now."""
    try:
        path = os.path.join(folder, word)  # noqa: PTH118  # may be absolute
        found = islice(glob.iglob(path), MAX_WORDS) if WILD.search(word) else (path,)  # noqa: PTH207
        yield from map(os.path.realpath, found)
    except (OSError, ValueError):
        return


def _rest_stamp(file: BinaryIO) -> bytes:
    """A stamp for the unread rest of a large file: its size and its change time, which programs cannot set."""
    status = os.fstat(file.fileno())
    return b"" if status.st_size <= MAX_FILE else f"{status.st_size} {status.st_ctime_ns}".encode()


def _texts(value: Any) -> Iterator[str]:
    match value:
        case str():
            yield value
        case list():
            for part in value:
                yield from _texts(part)
        case dict():
            for part in value.values():
                yield from _texts(part)


def _words(text: str) -> list[str]:
    """The words of a shell line, and the parts of words that are quoted or follow an operator or an equals sign."""
    try:
        words = shlex.split(text)
    except ValueError:
        words = text.split()
    return [*words, *(part for word in words for part in CUT.split(word) if part != word)]
