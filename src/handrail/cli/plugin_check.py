"""What is wrong with plugins: with those that were added, or with one in a folder that someone is writing."""

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from handrail.cli.terminal import count_of
from handrail.config.plugin_store import InstalledPlugin, PluginStore
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.extensions.commands import find_commands
from handrail.extensions.output_styles import find_styles
from handrail.extensions.plugin_tree import tree_diff, tree_hash
from handrail.extensions.plugins import (
    Marketplace,
    Plugin,
    read_marketplace,
    read_plugin,
    unpinned_servers,
    unset_options,
)
from handrail.extensions.skills import HeadCache, find_skills
from handrail.hooks.parsing import parse_hooks
from handrail.hooks.specs import HookSource
from handrail.mcp.config import check_entry
from handrail.session.agents.definitions import find_agents
from handrail.session.settings.session_settings import SessionSettings


def check_plugins(chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings) -> int:
    """Name what is wrong; 1 if something is."""
    if chosen.folder:
        found = _plugins_in(Path(chosen.folder).expanduser().absolute())
        problems, count = [each for one in found for each in folder_problems(one)], len(found)
    else:
        problems, count = list(_problems(store, settings)), len(store.load().plugins)
    if chosen.json:
        print(plain_json({"plugins": count, "problems": problems}, indent=2))
    else:
        for problem in problems:
            print(plain(problem))
        print(f"{count_of(count, 'plugin')}, {count_of(len(problems), 'problem')}")
    return 1 if problems else 0


def _plugins_in(folder: Path) -> list[Path]:
    """The folder of a plugin, or those that a marketplace there lists."""
    market = read_marketplace(folder)
    if isinstance(market, str):
        raise HandrailError(market)
    return list(market.plugins.values()) if isinstance(market, Marketplace) else [folder]


def folder_problems(root: Path) -> Iterator[str]:
    """What is wrong with the plugin in a folder, and with each file that it brings."""
    plugin = read_plugin(root)
    if isinstance(plugin, str):
        yield plugin
        return
    try:
        tree_hash(root)
    except (OSError, HandrailError) as error:
        yield str(error)
    if not (plugin.folders or plugin.hooks or plugin.servers or plugin.language_servers or plugin.programs):
        yield f"{root} brings nothing: there are no skills, commands, agents, output styles, hooks, servers or programs"
    yield from (f"{plugin.name}: {problem}" for problem in (*plugin.problems, *unpinned_servers(plugin)))
    folders = plugin.folders
    yield from find_skills(folders, HeadCache(None)).problems
    yield from find_commands(folders).problems
    yield from find_styles(folders).problems
    yield from find_agents(root, os.environ, {}, (), more=folders)[1]
    yield from _part_problems(plugin)


def _part_problems(plugin: Plugin) -> Iterator[str]:
    source = HookSource(f"plugin:{plugin.name}", ".claude", f"plugin {plugin.name}", str(plugin.root))
    yield from (str(each) for each in parse_hooks(dict(plugin.hooks), source).problems)
    for name, entry in plugin.servers.items():
        try:
            check_entry(entry)
        except HandrailError as error:
            yield f"{plugin.name}: the MCP server {name!r}: {error}"


def has_changed(known: InstalledPlugin) -> bool:
    """Whether the folder that a plugin was added from is not as it was then; one that is gone has not changed."""
    try:
        return Path(known.source).is_dir() and tree_hash(Path(known.source)) != known.digest
    except (OSError, HandrailError):
        return True


def _problems(store: PluginStore, settings: SessionSettings) -> Iterator[str]:
    installed = store.load().plugins
    for name, value in (settings.loaded.settings.get("enabledPlugins") or {}).items():
        if value is True and name not in installed:
            yield f"{name}: it is switched on in the settings, and was not added: handrail plugins add"
    for known in installed.values():
        plugin = read_plugin(Path(known.copy), known.name)
        if isinstance(plugin, str):
            yield f"{known.id}: {plugin}"
            continue
        if not store.is_intact(known):
            yield f"{known.id}: its copy is not what was trusted, so it is not used. Add it again."
        elif has_changed(known):
            diff = "\n".join(tree_diff(Path(known.copy), Path(known.source)))
            yield f"{known.id}: {known.source} has changed since it was trusted; add it again to use that:\n{diff}"
        for option in filter(lambda each: each.required, unset_options(plugin, store.options(known.id))):
            move = f"handrail plugins enable {known.id} --set {option.name}"
            yield f"{known.id}: the option {option.name!r} is not set: {move}"
        yield from (f"{known.id}: {problem}" for problem in (*plugin.problems, *unpinned_servers(plugin)))
