"""`handrail mcp add`: write the entry of a server."""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.cli.mcp.targets import address_entry, is_address, settings_here
from handrail.cli.permission_flags import warn
from handrail.config.mcp_write import place_of_scope, write_entry
from handrail.config.needs_trust import TrustItem
from handrail.config.shown_values import show_value
from handrail.config.trust import TrustStore
from handrail.conversation.plain import plain_json
from handrail.conversation.redact import is_secret_name
from handrail.errors import HandrailError, McpError
from handrail.mcp.config import VARIABLE, resolve_server
from handrail.mcp.imitation import server_problem
from handrail.session.settings.session_settings import SessionSettings

NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")


def run(chosen: argparse.Namespace) -> int:
    """Write the entry that the arguments describe."""
    return add_entry(chosen, entry_of(chosen))


def entry_of(chosen: argparse.Namespace) -> dict[str, Any]:
    """The entry of a server as the arguments describe it; HandrailError if they do not fit together."""
    transport = chosen.transport
    if is_address(chosen.target) and transport != "stdio":
        if chosen.args or chosen.env:
            raise HandrailError("an address takes no arguments and no --env. Give headers with --header.")
        entry = address_entry(chosen.target, chosen.header, transport)
        oauth = {
            "clientId": chosen.client_id,
            "clientSecret": chosen.client_secret,
            "callbackPort": chosen.callback_port,
        }
        if given := {name: value for name, value in oauth.items() if value is not None}:
            entry["oauth"] = given
    else:
        if transport not in (None, "stdio"):
            raise HandrailError(f"{chosen.target!r} is not an address, which a server of type {transport} needs.")
        if chosen.header or chosen.client_id:
            raise HandrailError("--header and --client-id are for addresses. Give variables of a program with --env.")
        env = parse_variables(chosen.env)
        entry = {"command": chosen.target, "args": chosen.args, **({"env": env} if env else {})}
        if chosen.sandbox:
            entry["sandbox"] = True
    return entry | ({"timeout": chosen.timeout} if chosen.timeout else {})


def parse_variables(written: list[str]) -> dict[str, str]:
    """Variables of the form `NAME=value`; HandrailError if one is not."""
    found: dict[str, str] = {}
    for each in written:
        name, sign, value = each.partition("=")
        if not sign or not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name):
            raise HandrailError(f"--env: {each!r} is not a variable. Write NAME=value.")
        found[name] = value
    return found


def add_entry(chosen: argparse.Namespace, entry: Mapping[str, Any]) -> int:
    """Check an entry, write it, and say where it is and what to do next."""
    settings, name, scope = settings_here(), chosen.name, chosen.scope or "local"
    places = settings.places
    check_name(name, settings)
    try:
        resolve_server(name, entry, settings.loaded.env, places.cwd)
    except McpError as error:
        raise HandrailError(f"the entry cannot be used: {error}") from error
    file, _ = place_of_scope(places, scope)
    there = [each for each in settings.loaded.settings.written_servers if each.name == name and each.scope == scope]
    if any(each.file == file for each in there) and not chosen.force:
        raise HandrailError(
            f"there is a server {name!r} in {file} already. Replace it with --force, or remove it first."
        )
    write_entry(places, scope, name, entry)
    if scope == "project":
        for secret in written_secrets(entry):
            warn(f"{secret} is readable in {file.name} for everyone in the project. Write '${{NAME}}' instead.")
        item = TrustItem("project", ("mcpServers", name), dict(entry), str(file.parent))
        TrustStore(places.state).add(str(file.parent), [item])  # the person who adds it approves it
    if chosen.json:
        print(plain_json({"name": name, "scope": scope, "file": str(file), "entry": show_value("", dict(entry))}))
    else:
        print(f"{name} is written to {shown_file(file, Path(places.cwd))} ({scope}). Try it: handrail mcp test {name}")
    return 0


def check_name(name: str, settings: SessionSettings) -> None:
    """Raise HandrailError if a server may not have this name."""
    if not NAME.fullmatch(name):
        raise HandrailError(f"{name!r} cannot be the name of a server. Use letters, digits, - and _, at most 64.")
    others = [each.name for each in settings.loaded.settings.written_servers]
    if why := server_problem(name, others):
        raise HandrailError(f"{why}. Choose another name.")


def written_secrets(entry: Mapping[str, Any]) -> list[str]:
    """The names of variables and headers whose values look like secrets, and name no variable that holds them."""
    pairs = [pair for key in ("env", "headers") for pair in (entry.get(key) or {}).items()]
    pairs += [("clientSecret", value) for name, value in (entry.get("oauth") or {}).items() if name == "clientSecret"]
    return [name for name, value in pairs if is_secret_name(name) and not VARIABLE.search(str(value))]


def shown_file(file: Path, cwd: Path) -> str:
    """A file as people know it."""
    if file.is_relative_to(cwd):
        return str(file.relative_to(cwd))
    return f"~/{file.relative_to(home)}" if file.is_relative_to(home := Path.home()) else str(file)
