"""What people have in `.claude` or `.handrail` that has no effect here. It is named at the start and in `doctor`."""

import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING

from handrail.extensions.places import ConfigFolder
from handrail.lazy import lazy
from handrail.records import record

if TYPE_CHECKING:
    from handrail.extensions import commands, output_styles
else:
    commands = lazy("handrail.extensions.commands")  # most folders have none of their own
    output_styles = lazy("handrail.extensions.output_styles")

AT_START = 3
"""How many notes a session begins with; `doctor` has them all."""

NOT_YET = "not supported yet"
NOT_READ: Mapping[str, str] = {
    "plugins/": "plugins are added with: handrail plugins add",
    "workflows/": f"workflows are {NOT_YET}",
    "scheduled_tasks.json": f"schedules are {NOT_YET}",
    "keybindings.json": "key bindings are read from ~/.handrail",
    "themes/": f"themes of your own are {NOT_YET}",
    "hooks.json": "hooks are read from settings.json",
    ".mcp.json": "MCP servers are read from .mcp.json in the project's folder",
    "mcp.json": "MCP servers are read from .mcp.json in the project's folder",
    "settings.yaml": "settings are read from settings.json",
    "settings.yml": "settings are read from settings.json",
    "settings.toml": "settings are read from settings.json",
    "settings.jsonc": "settings are read from settings.json",
    "setting.json": "settings are read from settings.json",
    "config.json": "settings are read from settings.json",
    "config.toml": "settings are read from settings.json",
    "command/": "commands are read from commands/",
    "agent/": "agents are read from agents/",
    "output-style/": "output styles are read from output-styles/",
    "skill/": "skills are read from skills/",
    "rule/": "rules are read from rules/",
}
"""What means something to some agent, and why it is not read. Other files are people's own business."""
NOT_READ_IN_PROJECTS: Mapping[str, str] = {
    ".handrail/CLAUDE.md": "memory files are read from the project's folder and from .claude",
    ".handrail/AGENTS.md": "memory files are read from the project's folder and from .claude",
    ".handrail/rules/": "rules are read from .claude/rules",
    ".claude/AGENTS.md": "memory files of this name are read from the project's folder",
}
READ_AT_HOME = ("keybindings.json", "mcp.json")
"""What is read from the folder of handrail in the home folder, and from no other."""


@record
class FolderListing:
    """The names in a configuration folder; those of folders end with a slash, and empty folders are left out."""

    shown: str
    source: str
    family: str
    """.handrail or .claude."""
    names: tuple[str, ...]


def folder_notes(listings: Iterable[FolderListing]) -> Iterator[str]:
    """What lies in these folders and has no effect."""
    for listing in listings:
        reasons = dict(NOT_READ)
        if listing.source == "project":
            here = f"{listing.family}/"
            reasons |= {name.removeprefix(here): why for name, why in NOT_READ_IN_PROJECTS.items() if here in name}
        else:
            reasons["settings.local.json"] = "local settings belong to a project"
            if listing.family != ".claude":
                reasons = {name: why for name, why in reasons.items() if name not in READ_AT_HOME}
        for name in listing.names:
            if why := reasons.get(name):
                yield f"{listing.shown}/{name} is not read: {why}"


def extension_notes(folders: Iterable[ConfigFolder]) -> tuple[str, ...]:
    """All that has no effect in these folders, and in what commands say about themselves."""
    folders = tuple(folders)
    notes = [*folder_notes(map(list_folder, folders))]
    if any((folder.path / "commands").is_dir() for folder in folders):
        notes += commands.find_commands(folders).problems
    if any((folder.path / "output-styles").is_dir() for folder in folders):
        notes += output_styles.find_styles(folders).problems
    return tuple(notes)


def start_notes(notes: tuple[str, ...]) -> tuple[str, ...]:
    """The notes that a session begins with."""
    if len(notes) <= AT_START + 1:
        return notes
    return (*notes[:AT_START], f"{len(notes) - AT_START} more notes of this kind: see handrail doctor")


def list_folder(folder: ConfigFolder) -> FolderListing:
    """The names in a folder."""
    names: list[str] = []
    with suppress(OSError), os.scandir(folder.path) as entries:
        for entry in entries:
            if not entry.is_dir():
                names.append(entry.name)
            elif entry.name + "/" in {*NOT_READ, "rules/"} and _has_entries(entry.path):
                names.append(f"{entry.name}/")
    return FolderListing(folder.shown, folder.source, f".{folder.path.name.lstrip('.')}", tuple(sorted(names)))


def _has_entries(path: str) -> bool:
    try:
        with os.scandir(path) as entries:
            return next(entries, None) is not None
    except OSError:
        return False
