"""Where plugins come from: a folder, a marketplace that is known or that settings name, or a git repository."""

import os
import shutil
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

from handrail.cli.permission_flags import warn
from handrail.config.plugin_store import LOCAL, PluginStore
from handrail.errors import HandrailError
from handrail.extensions.plugins import Marketplace, read_marketplace, read_plugin
from handrail.files.search_path import find_program, path_outside
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.wording import did_you_mean

ADDRESSES = ("https://", "ssh://", "git@", "file://", "http://")
CLONE_SECONDS = 300


def marketplace_offers(store: PluginStore, settings: SessionSettings) -> Iterator[tuple[str, list[str]]]:
    """The plugins that each known marketplace offers."""
    named = {name: source for name, source in settings_marketplaces(settings) if not source.startswith(ADDRESSES)}
    for name, source in {**named, **store.load().marketplaces}.items():
        found = read_marketplace(Path(source))
        yield name, sorted(found.plugins) if isinstance(found, Marketplace) else []


def plugins_at(
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
        raise HandrailError(found or f"{root} is no longer a marketplace. Add it again.")
    return found


def _of_marketplace(market: Marketplace, names: Sequence[str]) -> list[tuple[str, Path]]:
    if not names and len(market.plugins) == 1:
        names = list(market.plugins)
    if not names:
        listed = ", ".join(sorted(market.plugins)) or "none"
        raise HandrailError(
            f"the marketplace {market.name} is known now. Name the plugins that you want. It has: {listed}."
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
