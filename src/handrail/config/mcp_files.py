"""
The files that MCP servers are written in, the highest scope first.

    policy   managed-mcp.json in a policy folder: then no other server is used
    local    ~/.handrail/mcp.json and ~/.claude.json, below `projects` and the path of the project
    project  .mcp.json, in each folder from the working folder up to the root of its repository
    user     ~/.handrail/mcp.json and ~/.claude.json

All hold `{"mcpServers": {"name": {...}}}`. Of one name the whole entry of the highest scope counts, nothing is merged.
handrail writes `.mcp.json` and its own file, never `~/.claude.json`.
"""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from handrail.config.document import decode_text, parse_object, read_bytes
from handrail.config.json_paths import line_of
from handrail.config.places import MANAGED_SERVERS, SettingsPlaces
from handrail.config.problems import Problem
from handrail.errors import SettingsError, SettingsFileError
from handrail.records import record

MAX_STATE = 100_000_000
"""Bytes of `~/.claude.json`, which holds much besides servers."""
SCOPES = ("policy", "local", "project", "user")


@record
class WrittenServer:
    """One entry of a file, whether it counts or not. `folder` is the one whose trust a project's server needs."""

    name: str
    entry: Any
    scope: str
    file: Path
    shown: str
    folder: str = ""


def read_servers(places: SettingsPlaces, sources: Iterable[str], problems: list[Problem]) -> tuple[WrittenServer, ...]:
    """
    Every server of the chosen sources, the highest scope first; with managed servers only these.

    Raises:
        SettingsError: the managed servers cannot be read.
    """
    if managed := _managed_servers(places):
        return managed
    chosen = set(sources)
    found: list[WrittenServer] = []
    if chosen & {"local", "user"}:
        found += _personal(places, problems)
    if "project" in chosen:
        for folder in places.folders:
            found += _project(places, folder, problems)
    return tuple(sorted((each for each in found if each.scope in chosen), key=lambda each: SCOPES.index(each.scope)))


def _managed_servers(places: SettingsPlaces) -> tuple[WrittenServer, ...]:
    for folder in places.policy:
        file = folder / MANAGED_SERVERS
        try:
            servers = _servers_of(file)
        except SettingsFileError as error:
            raise SettingsError(
                f"the policy in {file} cannot be read: {error.message.rstrip('.')}. No server is known to be allowed; "
                "ask your administrator."
            ) from error
        if servers is not None:
            return tuple(WrittenServer(name, entry, "policy", file, str(file)) for name, entry in servers.items())
    return ()


def _project(places: SettingsPlaces, folder: str, problems: list[Problem]) -> Iterator[WrittenServer]:
    file = Path(folder, ".mcp.json")
    shown = ".mcp.json" if folder == places.cwd else f"{os.path.relpath(folder, places.cwd)}/.mcp.json"
    text = ""
    try:
        data = read_bytes(file)
        if data is None:
            return
        text = decode_text(data)
        content = parse_object(text)
        servers = _named_servers(content)
        if content and "mcpServers" not in content:
            raise SettingsFileError('it has no "mcpServers". Write {"mcpServers": {"name": {"command": "program"}}}')
    except SettingsFileError as error:
        line = 0 if error.offset is None else line_of(text, error.offset)
        why = f"{error.message.rstrip('.')}. None of its servers are used. Repair it."
        problems.append(Problem("project", shown, line, why))
        return
    yield from (WrittenServer(name, entry, "project", file, shown, folder) for name, entry in servers.items())


def _personal(places: SettingsPlaces, problems: list[Problem]) -> Iterator[WrittenServer]:
    for file, most in ((places.own_servers, None), (places.claude_state, MAX_STATE)):
        shown = _short_path(file, places)
        try:
            content = _content(file, most)
            if content is None:
                continue
            projects = content.get("projects", {})
            entries = [projects.get(folder) for folder in places.folders] if isinstance(projects, dict) else []
            for entry in entries:
                for name, server in _named_servers(entry if isinstance(entry, dict) else {}).items():
                    yield WrittenServer(name, server, "local", file, shown)
            for name, server in _named_servers(content).items():
                yield WrittenServer(name, server, "user", file, shown)
        except SettingsFileError as error:
            why = f"{error.message.rstrip('.')}. None of its servers are used. Repair it."
            problems.append(Problem("user", shown, 0, why))


def _servers_of(file: Path) -> Mapping[str, Any] | None:
    content = _content(file)
    return None if content is None else _named_servers(content)


def _content(file: Path, most: int | None = None) -> dict[str, Any] | None:
    """The object in a file; None if there is no file. `most`: for a large file of another program."""
    if most is None:
        data = read_bytes(file)
        return None if data is None else parse_object(decode_text(data))
    try:
        with file.open("rb") as opened:
            data = opened.read(most)
        value = json.loads(data) if b'"mcpServers"' in data else {}
    except FileNotFoundError:
        return None
    except OSError as error:
        raise SettingsFileError(f"it cannot be read: {error.strerror}") from error
    except ValueError as error:
        raise SettingsFileError(f"it is not JSON: {error}") from error
    return value if isinstance(value, dict) else {}


def _named_servers(content: Mapping[str, Any]) -> Mapping[str, Any]:
    named = content.get("mcpServers", {})
    if not isinstance(named, dict):
        raise SettingsFileError("mcpServers must be an object")
    return named


def _short_path(file: Path, places: SettingsPlaces) -> str:
    return f"~/{file.relative_to(places.home)}" if file.is_relative_to(places.home) else str(file)
