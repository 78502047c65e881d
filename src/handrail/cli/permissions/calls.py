"""Calls as users write them on the command line, decided like real ones."""

import argparse
import json
import os
import re
from collections.abc import Callable, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from pydantic import ConfigDict

from handrail.conversation.blocks import Json, ToolUse
from handrail.errors import HandrailError
from handrail.permissions.case import Case
from handrail.permissions.decide import case_of, decide_case
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.permissions.rules import ALIASES, Rule
from handrail.session.policy import current_policy
from handrail.session.spec import print_warning
from handrail.session.tools import builtin_loaders
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.permission import Decision
from handrail.tools.pool import AnyTool
from handrail.tools.raw import RawTool
from handrail.tools.request import CallRequest
from handrail.tools.schema import Input
from handrail.tools.stub import load_tool
from handrail.tools.tool import McpInfo, Tool

NOTHING_RECORDED: Json = {}
EVERY_MODE = ModeAvailability(bypass_available=True, auto_available=True)


class UrlInput(Input):
    """A URL and any other fields."""

    model_config = ConfigDict(extra="allow")

    url: str


class WebFetch(Tool[UrlInput]):
    """A stub for the tool of that name until it exists, so that rules about addresses can be tested."""

    name = "WebFetch"
    input_model = UrlInput
    subject = "url"

    def access(self, args: UrlInput, run: RunContext) -> Access:
        return Access.of(reaches=args.url)


class Unknown(RawTool):
    """A tool that is not installed here: it says what a log recorded of it, and else declares nothing."""

    def __init__(self, name: str, recorded: Json = NOTHING_RECORDED) -> None:
        super().__init__(re.sub(r"[^A-Za-z0-9_-]", "_", name)[:128] or "_", {"type": "object"})
        self._recorded = recorded
        self.subject = "subject" if recorded.get("subject") else ""
        self.mcp = McpInfo(*recorded["mcp"]) if "mcp" in recorded else None
        self.requires_user_interaction = recorded.get("needs_person", False)

    def is_destructive(self, args: Json) -> bool:
        return bool(self._recorded.get("destructive"))

    def subject_text(self, args: Json) -> str | None:
        return self._recorded.get("subject")

    def permission_matcher(self, args: Json) -> Callable[[str], bool | None]:
        """Without a subject it cannot say; the fields of the input are taken for its parameters."""
        if self.subject:
            return super().permission_matcher(args)
        return lambda content: False if content.partition(":")[0] in args else None


def policy_of(chosen: argparse.Namespace, on_warning: Callable[[str], None] = print_warning) -> Policy:
    """The policy that the flags ask for; HandrailError if settings, mode or folder cannot be used."""
    cwd = Path(chosen.cwd or ".")
    if not cwd.is_dir():
        raise HandrailError(f"--cwd: {chosen.cwd!r} is not a folder.")
    return current_policy(
        cwd,
        os.environ,
        mode=chosen.mode,
        settings=chosen.settings,
        add_dirs=chosen.add_dir,
        flags=EVERY_MODE,
        on_warning=on_warning,
    )


def read_call(tool: str, text: str | None) -> ToolUse:
    """A call from `TOOL JSON`, or from the form of a rule, `Bash(git push)`; HandrailError if the text is neither."""
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
    field = tool_called(name).subject
    if not field:
        raise HandrailError(f"what stands in the brackets of {name} is not known. Give its input as JSON.")
    return ToolUse("call-1", name, {field: rest[:-1]})


def decide_call(use: ToolUse, policy: Policy, evidence: Evidence = NOTHING_SAID) -> tuple[Case, Decision]:
    """The decision on a call that does not run. Conditions of a command line are assumed to hold."""
    case = case_of(request_of(use, policy.cwd), policy, evidence)
    return case, decide_case(case)


def request_of(use: ToolUse, cwd: str) -> CallRequest:
    """The call as its tool would see it if it were made from this folder."""
    return CallRequest.hypothetical(use, tool_called(use.name), RunContext(Path(cwd)))


def tool_called(name: str) -> AnyTool:
    """The installed tool of that name, or one that declares nothing."""
    plain = ALIASES.get(name, name)
    if load := tool_loaders().get(plain):
        return load_tool(load())
    return WebFetch() if plain == "WebFetch" else Unknown(plain)


@cache
def tool_loaders() -> Mapping[str, Any]:
    """Name -> how to make the tool, for all but the one that searches for tools."""
    return {name: load for name, load in builtin_loaders(os.environ).items() if name != "ToolSearch"}


def rule_json(rule: Rule) -> dict[str, str]:
    return {"rule": rule.text, "kind": rule.behaviour.value, "source": str(rule.source)}
