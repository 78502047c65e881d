"""`handrail plugins`: look at plugins, trust them as they are, switch them on and off, and see what changed."""

import argparse
import getpass
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from handrail.cli.permission_flags import warn
from handrail.cli.terminal import count_of
from handrail.cli.trust import ask
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.config.plugin_store import LOCAL, InstalledPlugin, PluginStore
from handrail.config.rewrite import remove_key, set_value
from handrail.config.write import edit
from handrail.conversation.plain import plain, plain_json
from handrail.errors import HandrailError
from handrail.extensions.plugin_tree import tree_diff, tree_hash
from handrail.extensions.plugins import (
    Marketplace,
    Plugin,
    read_marketplace,
    read_plugin,
    unpinned_servers,
    unset_options,
)
from handrail.files.search_path import find_program, path_outside
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

SCOPES = ("user", "project", "local")
ADDRESSES = ("https://", "ssh://", "git@", "file://", "http://")
CLONE_SECONDS = 300


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
            return _check(store, settings, as_json=chosen.json)
        case _:
            return _list(store, settings, as_json=chosen.json)


def plugin_rows(store: PluginStore, settings: SessionSettings) -> list[dict[str, Any]]:
    """The plugins that were added, as data: for lists, also of a terminal."""
    enabled = settings.loaded.settings.get("enabledPlugins") or {}
    rows = []
    for known in store.load().plugins.values():
        plugin = read_plugin(Path(known.copy))
        row: dict[str, Any] = {
            "name": known.id,
            "enabled": enabled.get(known.id) is True,
            "source": known.source,
            "added": known.at,
            "intact": store.is_intact(known),
            "changed": _has_changed(known),
        }
        rows.append(row | (_about(plugin) if isinstance(plugin, Plugin) else {"problem": plugin}))
    return rows


def _about(plugin: Plugin) -> dict[str, Any]:
    """What a plugin brings, as data."""
    return {
        "version": plugin.version,
        "description": plugin.description,
        **{folder.kind: _count(folder.path, folder.kind) for folder in plugin.folders},
        "hooks": sorted(plugin.hooks),
        "mcpServers": sorted(plugin.servers),
        "lspServers": sorted(plugin.language_servers),
        "options": [each.name for each in plugin.options],
    }


def _count(folder: Path, kind: str) -> int:
    return len(list(folder.glob("*/SKILL.md"))) if kind == "skills" else len(list(folder.rglob("*.md")))


def _has_changed(known: InstalledPlugin) -> bool:
    """Whether the folder that a plugin was added from is not as it was then; one that is gone has not changed."""
    try:
        return Path(known.source).is_dir() and tree_hash(Path(known.source)) != known.digest
    except (OSError, HandrailError):
        return True


def _list(store: PluginStore, settings: SessionSettings, *, as_json: bool) -> int:
    rows, offered = plugin_rows(store, settings), dict(_list_offers(store, settings))
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


def _list_offers(store: PluginStore, settings: SessionSettings) -> Iterator[tuple[str, list[str]]]:
    named = {name: source for name, source in settings_marketplaces(settings) if not source.startswith(ADDRESSES)}
    for name, source in {**named, **store.load().marketplaces}.items():
        found = read_marketplace(Path(source))
        yield name, sorted(found.plugins) if isinstance(found, Marketplace) else []


# Adding


def _add(chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings) -> int:
    wanted = _plugins(chosen.source, chosen.names, store, settings)
    if chosen.set and len(wanted) != 1:
        raise HandrailError("--set is for one plugin. Name the one that you mean.")
    codes = [_add_one(plugin_id, root, chosen, store, settings) for plugin_id, root in wanted]
    return max(codes)


def _plugins(
    source: str, names: Sequence[str], store: PluginStore, settings: SessionSettings
) -> list[tuple[str, Path]]:
    """The plugins that a source means, each with its id and its folder."""
    name, at, market = source.partition("@")
    if at and not source.startswith(ADDRESSES) and not Path(source).exists():
        return _of_marketplace(_known_marketplace(market, store, settings), [name])
    root = _fetch(source, store, settings) if source.startswith(ADDRESSES) or _is_bare(source) else Path(source)
    root = root.expanduser().absolute()
    if not root.is_dir():
        raise HandrailError(f"{source!r} is not a folder. Give that of a plugin or a marketplace, or a git repository.")
    found = read_marketplace(root)
    if isinstance(found, str):
        raise HandrailError(found)
    if found is not None:
        store.add_marketplace(found.name, str(root))
        return _of_marketplace(found, names)
    plugin = read_plugin(root)
    if isinstance(plugin, str):
        advice = ". Give the folder of a plugin or a marketplace, or the address of a git repository."
        raise HandrailError(plugin if plugin.endswith(".") else f"{plugin}{advice}")
    return [(f"{plugin.name}@{LOCAL}", root)]


def _known_marketplace(name: str, store: PluginStore, settings: SessionSettings) -> Marketplace:
    """A marketplace that was added, or that settings name; one in a git repository is cloned now."""
    added, named = store.load().marketplaces, dict(settings_marketplaces(settings))
    if name in added:
        return _marketplace(Path(added[name]))
    if name not in named:
        hint = did_you_mean(name, {**added, **named})
        raise HandrailError(f"there is no marketplace {name!r}.{hint} Add its folder first.")
    source = named[name]
    root = _fetch(source, store, settings) if source.startswith(ADDRESSES) else Path(source)
    found = _marketplace(root)
    if found.name != name:
        raise HandrailError(f"extraKnownMarketplaces calls {source} {name!r}, and it calls itself {found.name!r}.")
    store.add_marketplace(name, str(root))
    return found


def settings_marketplaces(settings: SessionSettings) -> Iterator[tuple[str, str]]:
    """The marketplaces that `extraKnownMarketplaces` names, each with its folder or the address of its repository."""
    for name, entry in (settings.loaded.settings.get("extraKnownMarketplaces") or {}).items():
        source = entry.get("source") if isinstance(entry, dict) else None
        match source:
            case {"source": "directory", "path": str(path)}:
                yield name, str(Path(settings.places.cwd, path).expanduser())
            case {"source": "file", "path": str(path)}:
                yield name, str(_folder_of_list(Path(settings.places.cwd, path).expanduser()))
            case {"source": "github", "repo": str(repo)}:
                yield name, f"https://github.com/{repo}.git"
            case {"source": "git", "url": str(url)} if url.startswith(ADDRESSES):
                yield name, url
            case _:
                warn(
                    f"extraKnownMarketplaces: {name!r} has a source that is not understood. Write "
                    '{"source": {"source": "directory", "path": "..."}}, or github with repo, or git with url.'
                )


def _folder_of_list(file: Path) -> Path:
    return file.parent.parent if file.parent.name == ".claude-plugin" else file.parent


def _marketplace(root: Path) -> Marketplace:
    found = read_marketplace(root)
    if not isinstance(found, Marketplace):
        raise HandrailError(found or f"{root} is no marketplace any more. Add it again.")
    return found


def _of_marketplace(market: Marketplace, names: Sequence[str]) -> list[tuple[str, Path]]:
    if not names and len(market.plugins) == 1:
        names = list(market.plugins)
    if not names:
        listed = ", ".join(sorted(market.plugins)) or "none"
        raise HandrailError(
            f"the marketplace {market.name} is known now. Name the plugins that you want. There are: {listed}."
        )
    for name in names:
        if name in market.elsewhere:
            raise HandrailError(f"{name!r} of {market.name} comes from another place. Clone that, and add its folder.")
        if name not in market.plugins:
            raise HandrailError(f"{market.name} has no plugin {name!r}.{did_you_mean(name, market.plugins)}")
    return [(f"{name}@{market.name}", market.plugins[name]) for name in names]


def _is_bare(source: str) -> bool:
    folder = Path(source).expanduser()
    return (folder / "HEAD").is_file() and (folder / "objects").is_dir()


def _fetch(source: str, store: PluginStore, settings: SessionSettings) -> Path:
    """A clone of a git repository, made anew; nothing that it configures is run."""
    path = path_outside(os.environ.get("PATH", ""), settings.places.folders)
    git = find_program("git", path)
    if not git:
        raise HandrailError("there is no git program. Install git, or give a folder.")
    target = store.clone_folder("".join(char if char.isalnum() else "-" for char in source)[-80:].strip("-"))
    shutil.rmtree(target, ignore_errors=True)
    target.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    switches = ("-c", "core.hooksPath=/dev/null", "-c", "protocol.ext.allow=never", "-c", "core.fsmonitor=false")
    command = [git, *switches, "clone", "--quiet", "--depth", "1", "--no-recurse-submodules", "--", source, str(target)]
    env = {**os.environ, "PATH": path, "GIT_TERMINAL_PROMPT": "0", "GIT_LFS_SKIP_SMUDGE": "1"}
    try:
        done = subprocess.run(  # noqa: S603
            command,
            env=env,
            capture_output=True,
            text=True,
            timeout=CLONE_SECONDS,
            check=False,
            stdin=subprocess.DEVNULL,
        )
    except subprocess.TimeoutExpired:
        raise HandrailError(
            f"{source} was not cloned within {CLONE_SECONDS} s. Clone it yourself, and add its folder."
        ) from None
    if done.returncode:
        raise HandrailError(f"{source} cannot be cloned: {done.stderr.strip()[-300:]}")
    return target


def _add_one(
    plugin_id: str, root: Path, chosen: argparse.Namespace, store: PluginStore, settings: SessionSettings
) -> int:
    plugin = read_plugin(root)
    if isinstance(plugin, str):
        raise HandrailError(plugin)
    digest = tree_hash(root)
    known = store.load().plugins.get(plugin_id)
    is_new = known is None or known.digest != digest or not store.is_intact(known)
    for line in _description(plugin, plugin_id, known) if is_new and not chosen.json else ():
        print(plain(line))
    if is_new and not chosen.yes:
        if chosen.json or not (sys.stdin.isatty() and sys.stderr.isatty()):
            raise HandrailError(
                f"{plugin_id} needs a yes, and there is no terminal to ask on. Look at what is in {root}, then say so "
                f"with: handrail plugins add {chosen.source} --yes."
            )
        if not ask("Trust it as it is, and switch it on? [y/N] "):
            warn("nothing was changed")
            return 1
    if is_new:
        store.install(plugin_id, root, time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()), digest)
    _set_options(plugin, plugin_id, chosen.set, store)
    _write_switch(plugin_id, settings, scope="user", on=True)
    _warn_of_unset(plugin, plugin_id, store)
    if chosen.json:
        print(plain_json({"name": plugin_id, "hash": digest, **_about(plugin)}))
    else:
        print(f"{plugin_id} is trusted as it is now, and on.")
    return 0


def _description(plugin: Plugin, plugin_id: str, known: InstalledPlugin | None) -> Iterator[str]:
    """What a person has to know before they trust a plugin: what it runs, and how it differs from what they trusted."""
    yield f"{plugin_id} {plugin.version}  {plugin.description}".rstrip()
    for folder in plugin.folders:
        yield f"  {folder.kind}: {_count(folder.path, folder.kind)}"
    for event, groups in plugin.hooks.items():
        for hook in _hooks_in(groups):
            yield f"  hook {event}: {hook.get('command') or hook.get('url') or hook.get('type')}"
    for name, entry in plugin.servers.items():
        words = [entry.get("command") or entry.get("url"), *(entry.get("args") or ())]
        yield f"  MCP server {name}: {' '.join(map(str, filter(None, words)))}"
    for name in plugin.language_servers:
        yield f"  language server {name}"
    for option in plugin.options:
        yield f"  option {option.name}{' (required)' if option.required else ''}: {option.description or option.title}"
    yield from (f"  note: {problem}" for problem in (*plugin.problems, *unpinned_servers(plugin)))
    if known is not None and Path(known.copy).is_dir():
        yield "what changed since it was trusted:"
        yield from tree_diff(Path(known.copy), plugin.root)


def _hooks_in(groups: Any) -> Iterator[dict[str, Any]]:
    for group in groups if isinstance(groups, list) else ():
        for hook in group.get("hooks") or () if isinstance(group, dict) else ():
            if isinstance(hook, dict):
                yield hook


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
    plugin = read_plugin(Path(known.copy))
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


# Checking


def _check(store: PluginStore, settings: SessionSettings, *, as_json: bool) -> int:
    problems = list(_problems(store, settings))
    count = len(store.load().plugins)
    if as_json:
        print(plain_json({"plugins": count, "problems": problems}, indent=2))
    else:
        for problem in problems:
            print(plain(problem))
        print(f"{count_of(count, 'plugin')}, {count_of(len(problems), 'problem')}")
    return 1 if problems else 0


def _problems(store: PluginStore, settings: SessionSettings) -> Iterator[str]:
    installed = store.load().plugins
    for name, value in (settings.loaded.settings.get("enabledPlugins") or {}).items():
        if value is True and name not in installed:
            yield f"{name}: it is switched on in the settings, and was not added: handrail plugins add"
    for known in installed.values():
        plugin = read_plugin(Path(known.copy))
        if isinstance(plugin, str):
            yield f"{known.id}: {plugin}"
            continue
        if not store.is_intact(known):
            yield f"{known.id}: its copy is not what was trusted, so that it does not count. Add it again."
        elif _has_changed(known):
            diff = "\n".join(tree_diff(Path(known.copy), Path(known.source)))
            yield f"{known.id}: {known.source} has changed since it was trusted; add it again to use that:\n{diff}"
        for option in filter(lambda each: each.required, unset_options(plugin, store.options(known.id))):
            move = f"handrail plugins enable {known.id} --set {option.name}"
            yield f"{known.id}: the option {option.name!r} is not set: {move}"
        yield from (f"{known.id}: {problem}" for problem in (*plugin.problems, *unpinned_servers(plugin)))
