"""
Plugins: folders that bring skills, commands, agents, output styles, hooks and servers under a name of their own.

    .claude-plugin/plugin.json, .codex-plugin/plugin.json or gemini-extension.json     its manifest; may be missing
    skills/  commands/  agents/  output-styles/  hooks/hooks.json  .mcp.json  .lsp.json  bin/  settings.json

Reading a plugin runs nothing. All that it brings is called `plugin:name`. Whether it counts is decided elsewhere.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from dataclasses import field
from pathlib import Path
from typing import Any

from handrail.extensions.places import ConfigFolder
from handrail.lazy import lazy_pattern
from handrail.records import record
from handrail.tools.wording import brief_repr, with_hints

NAME = lazy_pattern(r"[a-z0-9](?:[a-z0-9-]{0,62}[a-z0-9])?")
MANIFESTS = (".claude-plugin/plugin.json", ".codex-plugin/plugin.json", "gemini-extension.json")
MARKETPLACES = (".claude-plugin/marketplace.json", "marketplace.json")
MAX_MANIFEST = 1_000_000
KINDS = {"skills": "skills", "commands": "commands", "agents": "agents", "output-styles": "outputStyles"}
"""The folders of a plugin, and the keys of a manifest that name others."""
ADDS = ("skills",)
"""Folders of these kinds that a manifest names are read beside the usual one; others take its place."""
FILES = {"hooks": "hooks/hooks.json", "mcpServers": ".mcp.json", "lspServers": ".lsp.json"}
KNOWN = frozenset(
    (
        *("name", "version", "description", "author", "homepage", "repository", "license", "keywords", "displayName"),
        *("defaultEnabled", "skills", "commands", "agents", "outputStyles", "hooks", "mcpServers", "lspServers"),
        *("userConfig", "$schema", "interface", "category", "tags"),
    )
)
UNPINNED = lazy_pattern(r"(?:^|/)(?:npx|bunx|uvx|pnpx)$")


@record
class PluginOption:
    """A value that a plugin asks its user for. What is `sensitive` is never shown."""

    name: str
    title: str = ""
    description: str = ""
    required: bool = False
    sensitive: bool = False
    default: str = ""


@record
class Plugin:
    """What a plugin brings. `folders` are read as those of a project are; `problems` name what has no effect."""

    name: str
    root: Path
    version: str = ""
    description: str = ""
    folders: tuple[ConfigFolder, ...] = ()
    hooks: Mapping[str, Any] = field(default_factory=dict)
    servers: Mapping[str, Any] = field(default_factory=dict)
    language_servers: Mapping[str, Any] = field(default_factory=dict)
    options: tuple[PluginOption, ...] = ()
    programs: str = ""
    """The folder of its programs; empty = it brings none."""
    agent: str = ""
    """The agent of it that leads the session, by its full name, unless something else is asked for."""
    problems: tuple[str, ...] = ()


@record
class Marketplace:
    """A folder that lists plugins: each name with its folder, and those that come from elsewhere."""

    name: str
    root: Path
    plugins: Mapping[str, Path]
    elsewhere: tuple[str, ...] = ()


def read_plugin(root: Path, usual_name: str = "") -> Plugin | str:
    """The plugin in a folder, or why there is none. Without a name in its manifest it has the usual or the folder's."""
    if not root.is_dir():
        return f"{root} is not a folder"
    manifest, file, problem = _manifest(root)
    if problem:
        return f"{file}: {problem}"
    name = manifest.get("name", usual_name or root.name)
    if not isinstance(name, str) or not NAME.fullmatch(name):
        return f"{file or root}: {name!r} cannot be the name of a plugin. Use lower-case letters, digits and dashes."
    reader = _PluginReader(name, root, manifest)
    if file.endswith("gemini-extension.json") and any((root / "commands").rglob("*.toml")):
        reader.problems.append("commands/*.toml: commands are read from Markdown files")
    sections = {key: reader.section(key) for key in FILES}
    servers, wanted = sections["mcpServers"], reader.settings().get("agent")
    return Plugin(
        name,
        root,
        str(manifest.get("version") or ""),
        str(manifest.get("description") or ""),
        tuple(reader.folders()),
        _inner(sections["hooks"], "hooks"),
        {each: entry for each, entry in _inner(servers, "mcpServers").items() if isinstance(entry, Mapping)},
        _inner(sections["lspServers"], "lspServers"),
        tuple(reader.options()),
        reader.programs(),
        f"{name}:{wanted}" if isinstance(wanted, str) and wanted else "",
        (*reader.problems, *reader.notes()),
    )


def read_marketplace(root: Path) -> Marketplace | str | None:
    """The marketplace in a folder, what is wrong with it, or None if there is none."""
    file = next((root / each for each in MARKETPLACES if (root / each).is_file()), None)
    if file is None:
        return None
    value, problem = _read_json(file)
    if problem:
        return f"{file}: {problem}"
    name, listed = value.get("name"), value.get("plugins")
    if not isinstance(name, str) or not NAME.fullmatch(name) or not isinstance(listed, list):
        return f"{file}: a marketplace needs a name of lower-case letters, digits and dashes, and a list of plugins"
    about = value.get("metadata")
    base = about.get("pluginRoot", ".") if isinstance(about, dict) else "."
    found: dict[str, Path] = {}
    elsewhere: list[str] = []
    for entry in listed:
        plugin = entry.get("name") if isinstance(entry, dict) else None
        if not isinstance(plugin, str) or not NAME.fullmatch(plugin):
            return f"{file}: {plugin!r} cannot be the name of a plugin"
        source = entry.get("source")
        inside = _inside(root, f"{base}/{source}" if isinstance(source, str) and "://" not in source else "//")
        if inside is None:
            elsewhere.append(plugin)
        else:
            found[plugin] = inside
    return Marketplace(name, root, found, tuple(elsewhere))


def fill_variables(value: Any, variables: Mapping[str, str]) -> Any:
    """A value with `${NAME}` filled in, in every text of it."""
    match value:
        case str():
            for name, text in variables.items():
                value = value.replace(f"${{{name}}}", text)
            return value
        case list():
            return [fill_variables(each, variables) for each in value]
        case dict():
            return {name: fill_variables(each, variables) for name, each in value.items()}
        case _:
            return value


def unpinned_servers(plugin: Plugin) -> Iterator[str]:
    """The servers whose program is fetched anew, in whatever version there is by then."""
    for name, entry in plugin.servers.items():
        words = [str(entry.get("command", "")), *map(str, entry.get("args") or ())]
        packages = [word for word in words[1:] if not word.startswith("-")]
        if UNPINNED.search(words[0]) and packages and not re.search(r"(?<=.)@\d|==", packages[0]):
            yield f"the MCP server {name!r} runs {' '.join(words)!r}, whatever version there is: pin one"


def unset_options(plugin: Plugin, values: Mapping[str, str]) -> Iterator[PluginOption]:
    """The options that have neither a value nor a default."""
    return (option for option in plugin.options if not values.get(option.name, option.default))


class _PluginReader:
    """Reads the parts of one plugin, and notes what cannot be read."""

    def __init__(self, name: str, root: Path, manifest: Mapping[str, Any]) -> None:
        self.name = name
        self.root = root
        self.manifest = manifest
        self.problems: list[str] = []

    def folders(self) -> Iterator[ConfigFolder]:
        for kind, key in KINDS.items():
            named = self._paths(key)
            usual = [self.root / kind] if kind in ADDS or not named else []
            for path in dict.fromkeys((*usual, *named)):
                is_one = (path / "SKILL.md").is_file() if kind == "skills" else path.is_file()
                if is_one or path.is_dir():
                    yield self._folder(kind, path.parent if is_one else path, path.name if is_one else "")
                elif path in named:
                    what = "is a file, and skills are folders" if path.is_file() else "is not there"
                    self.problems.append(f"{key}: {os.path.relpath(path, self.root)} {what}")

    def _folder(self, kind: str, path: Path, only: str) -> ConfigFolder:
        shown = f"plugin {self.name}: {os.path.relpath(path, self.root)}"
        return ConfigFolder(path, "plugin", shown, self.root, self.name, kind, str(self.root), only)

    def section(self, key: str) -> Any:
        """The value of hooks or servers: inline, or in the files that the manifest names, or in the usual file."""
        value = self.manifest.get(key)
        if isinstance(value, dict):
            return value
        files = self._paths(key) or ([path] if (path := self.root / FILES[key]).is_file() else [])
        found: dict[str, Any] = {}
        for file in files:
            inner, problem = _read_json(file)
            if problem:
                self.problems.append(f"{os.path.relpath(file, self.root)}: {problem}")
            found |= _inner(inner, key)
        return found

    def _paths(self, key: str) -> list[Path]:
        value = self.manifest.get(key)
        texts = [value] if isinstance(value, str) else value if isinstance(value, list) else []
        if value is not None and not isinstance(value, str | list):
            self.problems.append(f"{key} is {brief_repr(value)}. Give a path inside of the plugin, or a list of them.")
        found = []
        for text in texts:
            path = _inside(self.root, text) if isinstance(text, str) else None
            if path is None:
                self.problems.append(f"{key}: {text!r} is not a path inside the plugin")
            else:
                found.append(path)
        return found

    def options(self) -> Iterator[PluginOption]:
        given = self.manifest.get("userConfig")
        for name, about in given.items() if isinstance(given, dict) else ():
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) or not isinstance(about, dict):
                self.problems.append(f"userConfig: {name!r} cannot be an option")
                continue
            texts = [str(about.get(key) or "") for key in ("title", "description")]
            required, sensitive = about.get("required") is True, about.get("sensitive") is True
            default = about.get("default")
            yield PluginOption(name, texts[0], texts[1], required, sensitive, "" if default is None else str(default))

    def notes(self) -> Iterator[str]:
        if unused := [key for key in self.manifest if key not in KNOWN]:
            yield f"no effect: {with_hints(unused, KNOWN)}"
        if (self.root / "CLAUDE.md").exists():
            yield "CLAUDE.md has no effect"

    def programs(self) -> str:
        """The folder of programs that commands of the session find."""
        folder = self.root / "bin"
        return str(folder) if folder.is_dir() and os.pathsep not in str(folder) else ""

    def settings(self) -> dict[str, Any]:
        """What the plugin wants of a session: the agent that leads it."""
        file = self.root / "settings.json"
        values, problem = _read_json(file) if file.is_file() else ({}, "")
        if problem:
            self.problems.append(f"settings.json: {problem}")
        if unused := [key for key in values if key != "agent"]:
            self.problems.append(f"settings.json: no effect: {', '.join(unused)}")
        return values


def _manifest(root: Path) -> tuple[dict[str, Any], str, str]:
    for name in MANIFESTS:
        if (root / name).is_file():
            value, problem = _read_json(root / name)
            return value, str(root / name), problem
    return {}, "", ""


def _inner(value: Any, key: str) -> dict[str, Any]:
    """A section, which may stand under its own name in a file of its own."""
    if not isinstance(value, dict):
        return {}
    inner = value.get(key)
    return inner if isinstance(inner, dict) else value


def _inside(root: Path, text: str) -> Path | None:
    """The path that a text names inside of a folder; None if it leads out of it."""
    if text.startswith("/") or "\0" in text:
        return None
    path = root / text
    try:
        return path if path.resolve().is_relative_to(root.resolve()) else None
    except (OSError, RuntimeError):
        return None


def _read_json(file: Path) -> tuple[dict[str, Any], str]:
    try:
        fd = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(fd, "rb") as stream:
            value = json.loads(stream.read(MAX_MANIFEST))
    except OSError as error:
        return {}, f"it cannot be read: {error.strerror}"
    except (ValueError, RecursionError) as error:
        return {}, f"it is not JSON: {error}"
    return (value, "") if isinstance(value, dict) else ({}, "it is not a JSON object")
