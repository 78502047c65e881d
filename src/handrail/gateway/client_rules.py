"""
Clients with a token and rules each, from a file.

    {"clients": {"ci": {"token": "${CI_TOKEN}", "allow": ["Read"], "deny": ["Bash"], "mode": "dontAsk"}}}
"""

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from handrail.config.flags import SettingsFlags
from handrail.errors import HandrailError
from handrail.mcp.config import VARIABLE, expand_variables
from handrail.records import record
from handrail.serve.guard import token_digest
from handrail.session.arguments import MODES, check_rules
from handrail.transcripts.writer import new_id

FORM = '{"clients": {"ci": {"token": "${CI_TOKEN}", "allow": ["Read"]}}}'
NAME = re.compile(r"[A-Za-z0-9_-]{1,40}")
KEYS = frozenset({"token", "tokenSha256", "allow", "ask", "deny", "mode"})
SHORTEST_TOKEN = 16


@record
class ClientRules:
    """What one client may do, beside the rules that all have."""

    allow: tuple[str, ...] = ()
    ask: tuple[str, ...] = ()
    deny: tuple[str, ...] = ()
    mode: str = ""

    def applied_to(self, flags: SettingsFlags) -> SettingsFlags:
        """The flags of all clients with those of this one. What one of them denies stays denied."""
        return replace(
            flags,
            allowed=(*flags.allowed, *self.allow),
            ask=(*flags.ask, *self.ask),
            disallowed=(*flags.disallowed, *self.deny),
            mode=self.mode or flags.mode,
        )


@record
class ClientList:
    """The clients of a file: their rules by name, and their names by the digests of their tokens."""

    rules: Mapping[str, ClientRules]
    tokens: Mapping[str, str]


def read_clients(file: Path, env: Mapping[str, str]) -> ClientList:
    """The clients that a file names; HandrailError if it is not understood as a whole."""
    try:
        value = json.loads(file.read_text("utf-8"))
    except OSError as error:
        raise HandrailError(f"{file} cannot be read: {error.strerror}. Give a JSON file: {FORM}.") from error
    except ValueError as error:
        raise HandrailError(f"{file} is not JSON: {error}. Write {FORM}.") from error
    clients = value.get("clients") if isinstance(value, dict) else None
    if not isinstance(clients, dict) or not clients:
        raise HandrailError(f"{file} names no clients. Write {FORM}.")
    rules: dict[str, ClientRules] = {}
    tokens: dict[str, str] = {}
    for name, entry in clients.items():
        where = f"{file}: clients.{name}"
        if not NAME.fullmatch(name):
            raise HandrailError(f"{where} is not a name. Use up to 40 of A-Z, a-z, 0-9, _ and -.")
        if not isinstance(entry, dict) or (unknown := entry.keys() - KEYS):
            what = f"has {min(unknown)!r}" if isinstance(entry, dict) else "is not an object"
            raise HandrailError(f"{where} {what}. Known are {', '.join(sorted(KEYS))}.")
        digest = _digest(entry, where, env)
        if digest in tokens:
            raise HandrailError(f"{where} has the token of {tokens[digest]!r}. Give each client one of its own.")
        tokens[digest] = name
        rules[name] = _rules(entry, where)
    return ClientList(rules, tokens)


def _digest(entry: Mapping[str, Any], where: str, env: Mapping[str, str]) -> str:
    match entry:
        case {"token": str(), "tokenSha256": _}:
            raise HandrailError(f"{where} has both token and tokenSha256. Give one of them.")
        case {"tokenSha256": str(digest)} if re.fullmatch(r"[0-9a-f]{64}", digest):
            return digest
        case {"token": str(text)}:
            unset = [found["name"] for found in VARIABLE.finditer(text) if found["name"] not in env]
            token = expand_variables(text, env)
            if unset or len(token) < SHORTEST_TOKEN:
                why = f"uses ${{{unset[0]}}}, which is not set" if unset else "is too short"
                raise HandrailError(f"{where}.token {why}. Give at least {SHORTEST_TOKEN} characters.")
            return token_digest(token)
        case _:
            raise HandrailError(f"{where} has no token. Give token, or tokenSha256 in 64 hexadecimal digits.")


def _rules(entry: Mapping[str, Any], where: str) -> ClientRules:
    mode = entry.get("mode", "")
    if mode not in ("", *MODES) or mode == "bypassPermissions":
        known = ", ".join(each for each in MODES if each != "bypassPermissions")
        raise HandrailError(f"{where}.mode is {mode!r}. Choose one of {known}.")
    lists: dict[str, tuple[str, ...]] = {}
    for kind in ("allow", "ask", "deny"):
        try:
            lists[kind] = check_rules(kind, entry.get(kind, ()))
        except HandrailError as error:
            raise HandrailError(f"{where}: {error}") from error
    return ClientRules(lists["allow"], lists["ask"], lists["deny"], mode)


def session_name(client: str) -> str:
    """A name for the session of a client, which the audit log shows."""
    return f"mcp-{client or 'client'}-{new_id()}"
