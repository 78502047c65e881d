"""Calls as people write them, judged as real ones are."""

import argparse
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from handrail.app.policy import current_policy
from handrail.app.state import plain_outfit
from handrail.builtin.table import base_tools
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.judging import judge
from handrail.dispatch.flags import flag, parse
from handrail.errors import HandrailError
from handrail.permissions.case import Case, Facts
from handrail.permissions.policy import Flags, Policy
from handrail.permissions.rules import ALIASES, READERS, SHELLS, WRITERS, Rule
from handrail.tools.catalog import Catalog
from handrail.tools.permission import Decision
from handrail.tools.stand_in import loaded

EVERY_MODE = Flags(bypass_available=True, auto_available=True)
BY_NAME = READERS | WRITERS | SHELLS
MAIN_FIELD = {
    "Bash": "command", "Monitor": "command", "PowerShell": "command", "Read": "file_path", "Edit": "file_path",
    "Write": "file_path", "LSP": "file_path", "NotebookEdit": "notebook_path", "Grep": "path", "Glob": "path",
    "WebFetch": "url", "WebSearch": "query", "Agent": "subagent_type", "Skill": "skill",
}  # fmt: skip


def policy_of(chosen: argparse.Namespace) -> Policy:
    """
    The policy that the flags ask for.

    Raises:
        HandrailError: the settings cannot be read, or there is no such mode or folder.
    """
    cwd = Path(chosen.cwd or ".")
    if not cwd.is_dir():
        raise HandrailError(f"--cwd: {chosen.cwd!r} is not a folder.")
    return current_policy(
        cwd, os.environ, mode=chosen.mode, settings=chosen.settings, add_dirs=chosen.add_dir, flags=EVERY_MODE
    )


def read_call(tool: str, text: str | None) -> ToolUse:
    """
    A call from `TOOL JSON`, or from the form of a rule: `Bash(git push)`.

    Raises:
        HandrailError: it is no call.
    """
    if text is not None:
        try:
            values = json.loads(text)
        except json.JSONDecodeError as error:
            raise HandrailError(f"the input is not JSON: {error}. Give an object, for example '{{}}'.") from error
        if not isinstance(values, dict):
            raise HandrailError(f"the input is {values!r}, and an object is needed, for example '{{}}'.")
        return ToolUse("call-1", tool, values)
    name, bracket, rest = tool.partition("(")
    if not bracket:
        return ToolUse("call-1", tool, {})
    if not rest.endswith(")"):
        raise HandrailError(f"{tool!r}: the bracket is not closed. Write 'Bash(git push)', or the tool and its JSON.")
    field = MAIN_FIELD.get(ALIASES.get(name, name))
    if field is None:
        raise HandrailError(f"what stands in the brackets of {name} is not known. Give its input as JSON.")
    return ToolUse("call-1", name, {field: rest[:-1]})


def judged(use: ToolUse, policy: Policy) -> tuple[Case, Decision]:
    """The decision on a call that is not made. Conditions of a command are taken to hold."""
    return judge(use, policy, facts_of(use.name, use.input))


def facts_of(name: str, values: Mapping[str, Any]) -> Facts:
    """What an installed tool says of itself; tools that are known by name, or not installed, say nothing here."""
    made = installed().get(ALIASES.get(name, name)) if name not in BY_NAME else None
    if made is None:
        return Facts()
    tool = loaded(made())
    args, problem = parse(tool, values)
    if problem is not None:
        return Facts(needs_person=tool.requires_user_interaction)
    return Facts(
        read_only=flag(tool.is_read_only, args),
        destructive=flag(tool.is_destructive, args),
        needs_person=tool.requires_user_interaction,
    )


@cache
def installed() -> Mapping[str, Any]:
    """Name -> how to make the tool. Nothing is loaded before it is made."""
    entries = base_tools(no_catalog, lambda: plain_outfit(os.environ))
    return {entry.name: entry.load for entry in entries if entry.name != "ToolSearch"}


def no_catalog() -> Catalog:
    raise LookupError("tools are only looked at here")


def rule_json(rule: Rule) -> dict[str, str]:
    return {"rule": rule.text, "kind": rule.behaviour.value, "source": str(rule.source)}
