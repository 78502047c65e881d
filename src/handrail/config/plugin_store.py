"""
The plugins that a person has added: where each came from, the copy that was trusted, and its options.

    STATE/plugins/installed.json         plugins by `name@marketplace`, and the marketplaces, each a folder
    STATE/plugins/store/NAME-HASH/       what was trusted, byte by byte; this is what runs
    STATE/plugins/options/ID.json        values that a plugin asked for, also secrets
    STATE/plugins/data/NAME/             what a plugin keeps

All of it is its owner's alone. A copy whose content is not what its hash says does not count.
"""

import json
import os
import shutil
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import field
from pathlib import Path
from typing import Any

from handrail.config.files import lock_folder, own_bytes, replace_file
from handrail.errors import HandrailError, SettingsError
from handrail.extensions.plugin_tree import copy_tree, remove_left_out, tree_hash
from handrail.files.private_folder import make_private_folder
from handrail.records import record

VERSION = 1
MAX_BYTES = 10_000_000
LOCAL = "local"
"""The marketplace of plugins that were added by their folders."""


@record
class InstalledPlugin:
    """A plugin as it was trusted."""

    id: str
    source: str
    digest: str
    copy: str
    at: str = ""

    @property
    def name(self) -> str:
        """Its name without that of its marketplace."""
        return self.id.partition("@")[0]


@record
class PluginDraft:
    """A plugin as it was when it was copied to be looked at."""

    source: Path
    folder: Path
    digest: str


@record
class InstalledPlugins:
    """All that was added."""

    plugins: Mapping[str, InstalledPlugin] = field(default_factory=dict)
    marketplaces: Mapping[str, str] = field(default_factory=dict)


class PluginStore:
    """The plugins of one user."""

    def __init__(self, state: Path) -> None:
        self._folder = state / "plugins"

    def load(self) -> InstalledPlugins:
        """What was added; SettingsError if the record cannot be read, for then it is not known what was trusted."""
        file = self._folder / "installed.json"
        try:
            value = json.loads(own_bytes(file, MAX_BYTES))
            if value["version"] > VERSION:
                raise SettingsError(f"{file} was written by a newer handrail. Update this one.")
            plugins = {name: InstalledPlugin(name, **entry) for name, entry in value["plugins"].items()}
            return InstalledPlugins(plugins, dict(value["marketplaces"]))
        except FileNotFoundError:
            return InstalledPlugins()
        except (OSError, ValueError, LookupError, TypeError) as error:
            raise SettingsError(f"{file} cannot be read: {error}. Remove it, and add the plugins again.") from error

    def mark(self) -> object:
        """What changes when a plugin is added or removed; None if none ever was."""
        try:
            status = (self._folder / "installed.json").stat()
        except OSError:
            return None
        return status.st_mtime_ns, status.st_size, status.st_ino

    @contextmanager
    def draft(self, source: Path) -> Iterator[PluginDraft]:
        """A copy of a plugin to look at: whatever becomes of its source meanwhile, this is what `install` keeps."""
        folder = self._folder / "store" / f".draft-{os.getpid()}"
        try:
            yield PluginDraft(source, folder, copy_tree(source, folder))
        finally:
            shutil.rmtree(folder, ignore_errors=True)

    def install(self, plugin_id: str, draft: PluginDraft, at: str) -> InstalledPlugin:
        """Keep a plugin as it was looked at."""
        name, digest = plugin_id.partition("@")[0], draft.digest
        target = self._folder / "store" / f"{name}-{digest[:16]}"
        if target.exists():
            shutil.rmtree(target)
        draft.folder.rename(target)
        made = InstalledPlugin(plugin_id, str(draft.source), digest, str(target), at)
        before = self.load()
        self._write(InstalledPlugins({**before.plugins, plugin_id: made}, before.marketplaces))
        old = before.plugins.get(plugin_id)
        if old is not None and old.copy != made.copy:
            shutil.rmtree(old.copy, ignore_errors=True)
        return made

    def remove(self, plugin_id: str) -> None:
        """Forget a plugin with its copy and its options."""
        before = self.load()
        gone = before.plugins.get(plugin_id)
        self._write(InstalledPlugins({k: v for k, v in before.plugins.items() if k != plugin_id}, before.marketplaces))
        if gone is not None and Path(gone.copy).parent == self._folder / "store":
            shutil.rmtree(gone.copy, ignore_errors=True)
        self._options_file(plugin_id).unlink(missing_ok=True)

    def add_marketplace(self, name: str, source: str) -> None:
        """Remember where a marketplace is."""
        before = self.load()
        self._write(InstalledPlugins(before.plugins, {**before.marketplaces, name: source}))

    def clone_folder(self, name: str) -> Path:
        """Where the clone of a git repository lies."""
        return self._folder / "marketplaces" / name

    def is_intact(self, plugin: InstalledPlugin) -> bool:
        """Whether the copy is still what was trusted; what its hash does not cover is removed from it."""
        try:
            if not Path(plugin.copy).resolve().is_relative_to((self._folder / "store").resolve()):
                return False
            remove_left_out(Path(plugin.copy))
            return tree_hash(Path(plugin.copy)) == plugin.digest
        except (OSError, HandrailError):
            return False

    def options(self, plugin_id: str) -> dict[str, str]:
        """The values that a person gave a plugin."""
        try:
            value = json.loads(own_bytes(self._options_file(plugin_id), MAX_BYTES))
        except (OSError, ValueError):
            return {}
        return {str(name): str(each) for name, each in value.items()} if isinstance(value, dict) else {}

    def set_options(self, plugin_id: str, values: Mapping[str, str]) -> None:
        """Keep values for a plugin, beside those that it has."""
        file = self._options_file(plugin_id)
        make_private_folder(file.parent)
        content = json.dumps({**self.options(plugin_id), **values}, indent=2).encode()
        replace_file(file, content, mode=0o600)

    def data_folder(self, name: str) -> Path:
        """The folder in which a plugin may keep files."""
        return self._folder / "data" / name

    def _options_file(self, plugin_id: str) -> Path:
        return self._folder / "options" / f"{plugin_id}.json"

    def _write(self, installed: InstalledPlugins) -> None:
        make_private_folder(self._folder)
        plugins: dict[str, Any] = {
            name: {"source": each.source, "digest": each.digest, "copy": each.copy, "at": each.at}
            for name, each in installed.plugins.items()
        }
        value = {"version": VERSION, "plugins": plugins, "marketplaces": dict(installed.marketplaces)}
        with lock_folder(self._folder):
            replace_file(self._folder / "installed.json", json.dumps(value, indent=2).encode(), mode=0o600)
