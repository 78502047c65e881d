"""What a plugin brings and runs, in words and as data, for the person who is to trust it."""

import json
import shlex
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail.config.plugin_store import InstalledPlugin
from handrail.extensions.commands import find_commands
from handrail.extensions.plugin_tree import tree_diff
from handrail.extensions.plugins import Plugin, unpinned_servers
from handrail.extensions.skills import HeadCache, find_skills

HARMLESS = frozenset(("type", "timeout", "description", "statusMessage", "once", "async"))
"""What of a hook or a server runs nothing."""

SHOWN_WISHES = ("runs", "allowed-tools", "hooks")


def plugin_facts(plugin: Plugin) -> dict[str, Any]:
    """What a plugin brings, as data."""
    return {
        "version": plugin.version,
        "description": plugin.description,
        **_counts(plugin),
        "hooks": sorted(plugin.hooks),
        "mcpServers": sorted(plugin.servers),
        "lspServers": sorted(plugin.language_servers),
        "options": [each.name for each in plugin.options],
    }


def _counts(plugin: Plugin) -> dict[str, int]:
    """How many files of each kind it brings."""
    found: dict[str, int] = {}
    for folder in plugin.folders:
        every = "*/SKILL.md" if folder.kind == "skills" else "**/*.md"
        number = 1 if folder.only else len(list(folder.path.glob(every)))
        found[folder.kind] = found.get(folder.kind, 0) + number
    return found


def plugin_lines(plugin: Plugin, plugin_id: str, known: InstalledPlugin | None) -> Iterator[str]:
    """What a person has to know before they trust a plugin: what it runs, and how it differs from what they trusted."""
    yield f"{plugin_id} {_one_line(plugin.version)}  {_one_line(plugin.description)}".rstrip()
    if plugin.name != plugin_id.partition("@")[0]:
        yield f"  it calls itself {plugin.name}, and all that it brings {plugin.name}:..."
    yield from (f"  {kind}: {count}" for kind, count in _counts(plugin).items())
    yield from (f"  {what} {_one_line(name)}: {what_runs(entry)}" for what, name, entry in _parts_that_run(plugin))
    yield from _wishes(plugin)
    if plugin.programs:
        yield f"  programs in {plugin.programs}: {', '.join(sorted(map(_one_line, _names_in(plugin.programs))))}"
    if plugin.agent:
        yield f"  the agent {plugin.agent} leads sessions, unless you name another"
    for option in plugin.options:
        about = _one_line(option.description or option.title)
        yield f"  option {option.name}{' (required)' if option.required else ''}: {about}"
    yield from (f"  note: {problem}" for problem in (*plugin.problems, *unpinned_servers(plugin)))
    if known is not None and Path(known.copy).is_dir():
        yield "what changed since it was trusted:"
        yield from tree_diff(Path(known.copy), plugin.root)


def _parts_that_run(plugin: Plugin) -> Iterator[tuple[str, str, Any]]:
    yield from (("hook", event, hook) for event, groups in plugin.hooks.items() for hook in _hooks_in(groups))
    yield from (("MCP server", name, entry) for name, entry in plugin.servers.items())
    yield from (("language server", name, entry) for name, entry in plugin.language_servers.items())


def _wishes(plugin: Plugin) -> Iterator[str]:
    """What the skills and commands of a plugin run, allow or hook."""
    folders = plugin.folders
    found = (*find_skills(folders, HeadCache(None)).by_name.values(), *find_commands(folders).by_name.values())
    for each in found:
        wanted = {name: value for name, value in each.widens.items() if name in SHOWN_WISHES}
        if wanted:
            yield f"  {each.kind} {each.name}: {json.dumps(wanted)}"


def what_runs(entry: Any) -> str:
    """The command or address of a hook or a server, and all else that it says: a variable can run a program too."""
    if not isinstance(entry, Mapping):
        return json.dumps(entry)
    args, command = entry.get("args"), entry.get("command")
    if command and isinstance(args, list):
        line, told = shlex.join(map(str, (command, *args))), {"command", "args"}
    else:
        main = next((name for name in ("command", "url", "type") if entry.get(name)), "")
        line, told = str(entry.get(main)), {main}
    rest = {name: value for name, value in entry.items() if name not in HARMLESS | told}
    shown = line if line.isprintable() else json.dumps(line)
    return f"{shown} {json.dumps(rest)}" if rest else shown


def _one_line(text: str) -> str:
    """A text that cannot pass for a line of ours."""
    return " ".join(text.split())


def _names_in(folder: str) -> list[str]:
    return [path.name for path in Path(folder).iterdir()]


def _hooks_in(groups: Any) -> Iterator[dict[str, Any]]:
    for group in groups if isinstance(groups, list) else ():
        for hook in group.get("hooks") or () if isinstance(group, dict) else ():
            if isinstance(hook, dict):
                yield hook
