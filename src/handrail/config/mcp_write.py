"""Writes entries of MCP servers: into `.mcp.json` for a project, else into handrail's own file."""

import json
import stat
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail.config.document import decode_text, parse_object, read_bytes
from handrail.config.files import lock_folder, replace_file
from handrail.config.mcp_files import WrittenServer
from handrail.config.places import SettingsPlaces
from handrail.config.rewrite import remove_key, set_value
from handrail.errors import SettingsError, SettingsFileError, advice_on
from handrail.files.private_folder import make_private_folder


def place_of_scope(places: SettingsPlaces, scope: str) -> tuple[Path, tuple[str, ...]]:
    """The file that an entry of a scope is written to, and the way to the servers in it."""
    match scope:
        case "project":
            above = [Path(folder, ".mcp.json") for folder in places.folders]
            return next((file for file in above if file.exists()), above[0]), ("mcpServers",)
        case "local":
            return places.own_servers, ("projects", places.cwd, "mcpServers")
        case _:
            return places.own_servers, ("mcpServers",)


def write_entry(places: SettingsPlaces, scope: str, name: str, entry: Mapping[str, Any]) -> Path:
    """Write the entry of a server, in the place of one of the same name; SettingsError if that is not possible."""
    file, way = place_of_scope(places, scope)
    _check_place(places, scope, file)
    _edit(file, lambda text: set_value(text, (*way, name), dict(entry)), is_private=scope != "project")
    return file


def remove_entry(places: SettingsPlaces, server: WrittenServer) -> None:
    """Remove an entry from the file it is written in; SettingsError if handrail does not write that file."""
    if server.file not in (places.own_servers, *(Path(folder, ".mcp.json") for folder in places.folders)):
        raise SettingsError(f"{server.shown} belongs to another program, so it is not changed. Remove it there.")
    ways: Sequence[tuple[str, ...]] = [("mcpServers",)]
    if server.scope == "local":
        ways = [("projects", folder, "mcpServers") for folder in places.folders]

    def change(text: str) -> str:
        for way in ways:
            text = remove_key(text, (*way, server.name))
        return text

    _check_place(places, server.scope, server.file)
    _edit(server.file, change, is_private=server.scope != "project")


def _check_place(places: SettingsPlaces, scope: str, file: Path) -> None:
    """Raise SettingsError if the file of a project is a link to a file outside of it, such as one of the user's own."""
    real = file.resolve()
    if scope == "project" and not any(real.is_relative_to(Path(folder).resolve()) for folder in places.folders):
        raise SettingsError(f"{file} is a link to {real}, outside the project, so it is not changed. Remove the link.")


def _edit(file: Path, change: Callable[[str], str], *, is_private: bool) -> None:
    try:
        if is_private:
            make_private_folder(file.parent)
        with lock_folder(file.parent):
            data = read_bytes(file)
            text = "{}\n" if data is None else decode_text(data)
            content = parse_object(text)
            if not isinstance(content.get("mcpServers", {}), dict):
                raise SettingsFileError("mcpServers must be an object")
            changed = change(text)
            mode = stat.S_IMODE(file.stat().st_mode) if data is not None else 0o600 if is_private else 0o644
            replace_file(file.resolve() if file.is_symlink() else file, changed.encode(), mode=mode)
    except SettingsFileError as error:
        raise SettingsError(f"{file} is broken and was not changed: {error.message.rstrip('.')}. Repair it.") from error
    except json.JSONDecodeError as error:
        raise SettingsError(f"{file} was not changed: {error}.") from error
    except OSError as error:
        raise SettingsError(f"{file} cannot be written: {error.strerror or error}. {advice_on(error)}") from error
