"""`handrail plugins`: look at plugins, trust them as they are, switch them on and off, and see what changed."""

import argparse
import getpass
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import warn
from handrail.cli.plugin_check import check_plugins, has_changed
from handrail.cli.plugin_sources import marketplace_offers, plugins_at
from handrail.cli.plugin_text import plugin_facts, plugin_lines
from handrail.cli.trust import ask
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.config.plugin_store import InstalledPlugin, PluginStore
from handrail.config.rewrite import remove_key, set_value
from handrail.config.write import edit
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.extensions.plugins import Plugin, read_plugin, unset_options
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

SCOPES = ("user", "project", "local")


def run(chosen: argparse.Namespace) -> int:
    """Do what was asked for; 1 if `check` found a problem, or a person said no."""
    settings = open_settings(Path.cwd(), os.environ, state_folder(os.environ), NO_FLAGS_GIVEN, warn)
    store = PluginStore(settings.places.state)
    match chosen.what:
        case "add":
            return _add(chosen, store, settings)
        case "remove":
            return _remove(find_installed(chosen.name, store), store, settings)
        case "enable" | "disable":
            return _switch(chosen, store, settings)
        case "check":
            return check_plugins(chosen, store, settings)
        case _:
            return _list(store, settings, as_json=chosen.json)


def plugin_rows(store: PluginStore, settings: SessionSettings) -> list[dict[str, Any]]:
    """The plugins that were added, as data: for lists, also of a terminal."""
    enabled = settings.loaded.settings.get("enabledPlugins") or {}
    rows = []
    for known in store.load().plugins.values():
        plugin = read_plugin(Path(known.copy), known.name)
        row: dict[str, Any] = {
            "name": known.id,
            "enabled": enabled.get(known.id) is True,
            "source": known.source,
            "added": known.at,
            "intact": store.is_intact(known),
            "changed": has_changed(known),
        }
        rows.append(row | (plugin_facts(plugin) if isinstance(plugin, Plugin) else {"problem": plugin}))
    return rows


def _list(store: PluginStore, settings: SessionSettings, *, as_json: bool) -> int:
    rows, offered = plugin_rows(store, settings), dict(marketplace_offers(store, settings))
    if as_json:
        print(plain_json({"plugins": rows, "marketplaces": offered}, indent=2))
        return 0
    for row in rows:
        marks = ["on" if row["enabled"] else "off"]
        marks += ["its copy is damaged"] * (not row["intact"]) + ["changed since it was added"] * row["changed"]
        print(plain(f"{row['name']} ({', '.join(marks)})\n    {row.get('description') or row['source']}"))
    for name, plugins in offered.items():
        print(plain(f"marketplace {name}: {', '.join(plugins) or 'no plugins'}"))
    if not rows and not offered:
        print("No plugins were added. `handrail plugins add FOLDER` adds one.")
    return 0


# Adding


def _add(chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings) -> int:
    wanted = plugins_at(chosen.source, chosen.names, store, settings)
    if chosen.set and len(wanted) != 1:
        raise HandrailError("--set is for one plugin. Name the one that you mean.")
    return max(_add_folder(plugin_id, root, chosen, store, settings) for plugin_id, root in wanted)


def _add_folder(
    plugin_id: str, root: Path, chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings
) -> int:
    known = store.load().plugins.get(plugin_id)
    with store.draft(root) as draft:
        plugin = read_plugin(draft.folder, plugin_id.partition("@")[0])
        if isinstance(plugin, str):
            raise HandrailError(plugin.replace(str(draft.folder), str(root)))
        facts = plugin_facts(plugin)
        if known is None or known.digest != draft.digest or not store.is_intact(known):
            lines = () if chosen.json else plugin_lines(plugin, plugin_id, known)
            for line in lines:
                print(plain(line))
            if not _is_wanted(plugin_id, root, chosen):
                return 1
            store.install(plugin_id, draft, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()))
    _set_options(plugin, plugin_id, chosen.set, store)
    _write_switch(plugin_id, settings, scope="user", on=True)
    _warn_of_unset(plugin, plugin_id, store)
    if chosen.json:
        print(plain_json({"name": plugin_id, "hash": draft.digest, **facts}))
    else:
        print(f"{plugin_id} is trusted as it is now, and on.")
    return 0


def _is_wanted(plugin_id: str, root: Path, chosen: argparse.Namespace) -> bool:
    """Whether a person says yes to what they were shown."""
    if chosen.yes:
        return True
    if chosen.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
        raise HandrailError(
            f"{plugin_id} needs a yes, and there is no terminal to ask on. Look at what is in {root}, then say so "
            f"with: handrail plugins add {chosen.source} --yes."
        )
    if ask("Trust it as it is, and switch it on? [y/N] "):
        return True
    warn("nothing was changed")
    return False


# Switching


def find_installed(name: str, store: PluginStore) -> InstalledPlugin:
    """The plugin of this name or id; HandrailError if there is none, or several."""
    plugins = store.load().plugins
    found = [each for each in plugins.values() if name in (each.id, each.name)]
    if len(found) == 1:
        return found[0]
    if found:
        raise HandrailError(f"{name!r} may be {' or '.join(each.id for each in found)}. Say which.")
    raise HandrailError(f"no plugin {name!r} was added.{did_you_mean(name, plugins)} See `handrail plugins list`.")


def _remove(known: InstalledPlugin, store: PluginStore, settings: SessionSettings) -> int:
    store.remove(known.id)
    for scope in SCOPES:
        file = settings.places.file(scope)
        if file.path.exists():
            edit(file, settings.places, lambda text: remove_key(text, ("enabledPlugins", known.id)))
    print(f"{known.id} is removed, with its options.")
    return 0


def _switch(chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings) -> int:
    known, on = find_installed(chosen.name, store), chosen.what == "enable"
    plugin = read_plugin(Path(known.copy), known.name)
    if on and isinstance(plugin, Plugin):
        _set_options(plugin, known.id, chosen.set, store)
    _write_switch(known.id, settings, scope=chosen.scope, on=on)
    if on and isinstance(plugin, Plugin):
        _warn_of_unset(plugin, known.id, store)
    print(f"{known.id} is {'on' if on else 'off'}.")
    return 0


def _warn_of_unset(plugin: Plugin, plugin_id: str, store: PluginStore) -> None:
    for option in unset_options(plugin, store.options(plugin_id)):
        need = "needs" if option.required else "may want"
        warn(f"{plugin_id} {need} its option {option.name!r}: handrail plugins enable {plugin_id} --set {option.name}")


def _write_switch(plugin_id: str, settings: SessionSettings, *, scope: str, on: bool) -> None:
    edit(settings.places.file(scope), settings.places, lambda text: set_value(text, ("enabledPlugins", plugin_id), on))


def _set_options(plugin: Plugin, plugin_id: str, given: Sequence[str], store: PluginStore) -> None:
    options = {each.name: each for each in plugin.options}
    values: dict[str, str] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name not in options:
            raise HandrailError(f"{plugin_id} has no option {name!r}.{did_you_mean(name, options)}")
        if not equals:
            is_person = sys.stdin.isatty()
            value = getpass.getpass(f"{name}: ") if is_person else sys.stdin.readline().rstrip("\n")
        values[name] = value
    if values:
        store.set_options(plugin_id, values)
