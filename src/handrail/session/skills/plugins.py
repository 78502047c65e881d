"""
The plugins of a session: those that `enabledPlugins` switches on and a person has trusted, and those of `--plugin-dir`.

A plugin that was added counts as it was trusted, from its copy. One that settings name and no one has added does
nothing. Naming a folder with `--plugin-dir` trusts it for the run.
"""

from collections.abc import Collection, Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.config.plugin_store import PluginStore
from handrail.errors import HandrailError
from handrail.extensions.places import ConfigFolder
from handrail.extensions.plugin_tree import tree_hash
from handrail.extensions.plugins import Plugin, fill_variables, read_plugin, unset_options
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookSource
from handrail.records import record
from handrail.session.settings.session_settings import SessionSettings

INLINE = "inline"
PROJECT = "CLAUDE_PROJECT_DIR"


@record
class SessionPlugin:
    """A plugin that counts in a session."""

    plugin: Plugin
    id: str
    variables: Mapping[str, str]
    """What its hooks and servers are told: its folders and options."""
    secrets: tuple[str, ...] = ()
    """Values of options that must not be shown."""

    @property
    def hook_source(self) -> HookSource:
        """Where its hooks come from."""
        name, root = self.plugin.name, str(self.plugin.root)
        return HookSource(f"plugin:{name}", ".claude", f"plugin {name}", root, variables=tuple(self.variables.items()))

    @property
    def row(self) -> dict[str, str]:
        """It as programs know it."""
        plugin = self.plugin
        return {"name": plugin.name, "path": str(plugin.root), "source": self.id, "version": plugin.version}


@record
class SessionPlugins:
    """All that count, and what a person should know about them and about others."""

    plugins: tuple[SessionPlugin, ...] = ()
    problems: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()
    """Those of all plugins that were added: one that is off may be switched on later."""
    mark: object = None
    """What they were when they were read, by `plugins_mark`."""

    def without(self, plugins: Collection[SessionPlugin]) -> "SessionPlugins":
        """All but these."""
        return replace(self, plugins=tuple(each for each in self.plugins if each not in plugins))

    def folders(self) -> tuple[ConfigFolder, ...]:
        """The folders that they bring skills, commands, agents and output styles in."""
        return tuple(folder for each in self.plugins for folder in each.plugin.folders)

    def servers(self) -> dict[str, Any]:
        """Their MCP servers, called `plugin:name:server`."""
        found: dict[str, Any] = {}
        for each in self.plugins:
            for name, entry in each.plugin.servers.items():
                filled = fill_variables(dict(entry), each.variables)
                own = filled.get("env") if isinstance(filled.get("env"), dict) else {}
                extra = {} if "url" in filled else {"env": {**each.variables, **own}}
                found[f"plugin:{each.plugin.name}:{name}"] = {**filled, **extra}
        return found

    def programs(self) -> tuple[str, ...]:
        """The folders of their programs."""
        return tuple(each.plugin.programs for each in self.plugins if each.plugin.programs)

    def agent(self) -> str:
        """The agent of a plugin that wants to lead the session; of several, that of the first."""
        return next((each.plugin.agent for each in self.plugins if each.plugin.agent), "")

    def language_servers(self) -> dict[str, Any]:
        """Their language servers, called `plugin:name:server`."""
        return {
            f"plugin:{each.plugin.name}:{name}": fill_variables(entry, each.variables)
            for each in self.plugins
            for name, entry in each.plugin.language_servers.items()
        }

    def add_hooks(self, hooks: Hooks, settings: SessionSettings) -> None:
        """Add their hooks, unless the settings switch hooks off."""
        found = settings.loaded.settings
        if found.get("disableAllHooks") or found.get_managed("allowManagedHooksOnly"):
            return
        for each in self.plugins:
            if each.plugin.hooks:
                hooks.add(each.hook_source, fill_hooks(dict(each.plugin.hooks), each.variables))

    def remove_hooks(self, hooks: Hooks) -> None:
        """Take their hooks back."""
        for each in self.plugins:
            if each.plugin.hooks:
                hooks.remove(each.hook_source)


def fill_hooks(value: Any, variables: Mapping[str, str]) -> Any:
    """Hooks with their variables filled in. In a line for a shell the project's path stays a variable, never code."""
    match value:
        case {"command": str(), **rest} if rest.get("args") is None:
            own = {name: text for name, text in variables.items() if name != PROJECT}
            return fill_variables(value, own)
        case dict():
            return {name: fill_hooks(each, variables) for name, each in value.items()}
        case list():
            return [fill_hooks(each, variables) for each in value]
        case _:
            return fill_variables(value, variables)


NO_PLUGINS = SessionPlugins()


def plugins_mark(settings: SessionSettings) -> object:
    """What changes when plugins are added, removed or switched."""
    wanted = settings.loaded.settings.get("enabledPlugins") or {}
    return wanted, PluginStore(settings.places.state).mark() if wanted else None


def session_plugins(settings: SessionSettings, folders: tuple[Path, ...]) -> SessionPlugins:
    """The plugins of a session with these settings, and with the folders of `--plugin-dir`."""
    store = PluginStore(settings.places.state)
    found: dict[str, SessionPlugin] = {}
    problems: list[str] = []
    for plugin_id, root in (*_inline(folders, problems), *_enabled_plugins(settings, store, problems)):
        plugin = read_plugin(root, plugin_id.partition("@")[0])
        if isinstance(plugin, str):
            problems.append(plugin)
        elif plugin.name in found:
            problems.append(f"the plugin {plugin_id} is left out: {found[plugin.name].id} has the same name")
        else:
            full_id = plugin_id or f"{plugin.name}@{INLINE}"
            values = _options(plugin, full_id, store, problems)
            variables = _variables(plugin, store, settings, values)
            found[plugin.name] = SessionPlugin(plugin, full_id, variables, _secrets(plugin, values))
            problems += (f"plugin {plugin.name}: {problem}" for problem in plugin.problems)
    secrets = [secret for each in found.values() for secret in each.secrets]
    secrets += _secrets_of_others(settings, store)
    return SessionPlugins(tuple(found.values()), tuple(problems), tuple(secrets), plugins_mark(settings))


def _secrets(plugin: Plugin, values: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(values[each.name] for each in plugin.options if each.sensitive and values.get(each.name))


def _secrets_of_others(settings: SessionSettings, store: PluginStore) -> Iterator[str]:
    """The secrets of plugins that were added and are off."""
    wanted = settings.loaded.settings.get("enabledPlugins") or {}
    for name, known in store.load().plugins.items() if wanted else ():
        if wanted.get(name) is not True and isinstance(plugin := read_plugin(Path(known.copy), known.name), Plugin):
            yield from _secrets(plugin, store.options(name))


def _inline(folders: tuple[Path, ...], problems: list[str]) -> Iterator[tuple[str, Path]]:
    for folder in folders:
        if not folder.is_dir():
            problems.append(f"--plugin-dir: {str(folder)!r} is not a folder, so it is left out. Give that of a plugin.")
            continue
        try:
            tree_hash(folder)  # it holds nothing but files
        except (OSError, HandrailError) as error:
            problems.append(f"--plugin-dir {folder}: {error}")
            continue
        yield "", folder.resolve()


def _enabled_plugins(settings: SessionSettings, store: PluginStore, problems: list[str]) -> Iterator[tuple[str, Path]]:
    wanted = settings.loaded.settings.get("enabledPlugins") or {}
    installed = store.load().plugins if any(value is True for value in wanted.values()) else {}
    for name, value in wanted.items():
        if value is not True:
            continue
        if (known := installed.get(name)) is None:
            problems.append(f"the plugin {name!r} is switched on and was not added. Add it with: handrail plugins add.")
        elif not store.is_intact(known):
            problems.append(f"the plugin {name!r} is not what was trusted. See: handrail plugins check.")
        else:
            yield name, Path(known.copy)


def _options(plugin: Plugin, plugin_id: str, store: PluginStore, problems: list[str]) -> dict[str, str]:
    given = store.options(plugin_id)
    values = {each.name: given.get(each.name, each.default) for each in plugin.options}
    problems += (
        f"plugin {plugin.name}: its option {each.name!r} is not set. Set it with: handrail plugins enable {plugin_id} "
        f"--set {each.name}"
        for each in unset_options(plugin, given)
        if each.required
    )
    return {name: value for name, value in values.items() if value}


def _variables(
    plugin: Plugin, store: PluginStore, settings: SessionSettings, values: Mapping[str, str]
) -> dict[str, str]:
    root, data = str(plugin.root), str(store.data_folder(plugin.name))
    return {
        **{f"{maker}_PLUGIN_ROOT": root for maker in ("CLAUDE", "HANDRAIL")},
        **{f"{maker}_PLUGIN_DATA": data for maker in ("CLAUDE", "HANDRAIL")},
        PROJECT: settings.places.cwd,
        "PYTHONDONTWRITEBYTECODE": "1",  # the copy stays what was trusted
        "extensionPath": root,
        **{f"CLAUDE_PLUGIN_OPTION_{name.upper()}": value for name, value in values.items()},
    }
