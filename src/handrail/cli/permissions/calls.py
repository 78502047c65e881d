"""Calls as users write them on the command line, decided like real ones."""

import argparse
import os
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from handrail.cli.call import parse_input
from handrail.cli.permission_flags import warn
from handrail.conversation.blocks import Json, ToolUse
from handrail.errors import HandrailError
from handrail.hooks.specs import Hook
from handrail.mcp.known_places import NOWHERE, named_access
from handrail.permissions.rules import ALIASES, MCP, Rule
from handrail.session.preview import CallPreview
from handrail.tools.access import Access
from handrail.tools.context import RunContext
from handrail.tools.flags import input_problems
from handrail.tools.pool import SEARCH_TOOL, AnyTool
from handrail.tools.raw import RawTool
from handrail.tools.request import CallRequest
from handrail.tools.stub import load_tool
from handrail.tools.tool import WARNINGS, McpInfo
from handrail.tools.wording import did_you_mean

NOTHING_RECORDED: Json = {}


class AbsentTool(RawTool):
    """A tool that is not installed here: it says what a log recorded of it, and else declares nothing."""

    def __init__(self, name: str, recorded: Json = NOTHING_RECORDED) -> None:
        super().__init__(re.sub(r"[^A-Za-z0-9_-]", "_", name)[:128] or "_", {"type": "object"})
        self._recorded = recorded
        self.subject = "subject" if recorded.get("subject") else ""
        self.mcp = McpInfo(*recorded["mcp"]) if "mcp" in recorded else None
        self.requires_user_interaction = recorded.get("needs_person", False)
        for flag in WARNINGS:
            answer = bool(recorded.get(flag.removeprefix("is_")))
            setattr(self, flag, lambda _args, answer=answer: answer)

    def access(self, args: Json, run: RunContext) -> Access:
        """What the input of a call names is known without its server."""
        undeclared = super().access(args, run)
        is_of_server = self.mcp is not None or self.name.startswith(MCP)
        return named_access(args, {}, NOWHERE, str(run.cwd), undeclared) if is_of_server else undeclared

    def subject_text(self, args: Json) -> str | None:
        return self._recorded.get("subject")

    def permission_matcher(self, args: Json) -> Callable[[str], bool | None]:
        """Without a subject it cannot say; the fields of the input are taken for its parameters."""
        if self.subject:
            return super().permission_matcher(args)
        return lambda content: False if content.partition(":")[0] in args else None


class KnownTools:
    """The tools that calls can be written for: those of a session here, and of MCP servers."""

    def __init__(self, loaders: Mapping[str, Callable[[], Any]]) -> None:
        self._loaders = {name: load for name, load in loaders.items() if name != SEARCH_TOOL}

    @property
    def names(self) -> frozenset[str]:
        """The built-in tools."""
        return frozenset(self._loaders)

    def find(self, name: str) -> AnyTool | None:
        """The tool of that name; None if there is none."""
        plain = ALIASES.get(name, name)
        if load := self._loaders.get(plain):
            return load_tool(load())
        return AbsentTool(plain) if plain.startswith(MCP) else None

    def get(self, name: str) -> AnyTool:
        """The tool of that name; HandrailError with the nearest name if there is none."""
        tool = self.find(name)
        if tool is None:
            names = sorted(self._loaders)
            exact = next((each for each in names if each.lower() == name.lower()), "")
            hint = f" Names keep their case: {exact}." if exact else did_you_mean(name, names)
            raise HandrailError(f"there is no tool {name!r}.{hint or ' `handrail tools` lists them.'}")
        return tool

    def read_call(self, tool: str, text: str | None) -> ToolUse:
        """A call from `TOOL JSON`, or from the form of a rule, `Bash(git push)`; HandrailError if it is neither."""
        if text is not None:
            return ToolUse("call-1", self.get(tool).name, self._read_input(tool, text))
        name, bracket, rest = tool.partition("(")
        if not bracket:
            return ToolUse("call-1", tool, {})
        if not rest.endswith(")"):
            raise HandrailError(
                f"{tool!r}: the bracket is not closed. Write 'Bash(git push)', or the tool and its JSON."
            )
        field = self.get(name).subject
        if not field:
            raise HandrailError(f"{name} takes nothing in brackets. Give its input as JSON.")
        subject = rest[:-1]
        if field == "url" and subject.startswith("domain:"):
            subject = f"https://{subject.removeprefix('domain:')}/"
        return ToolUse("call-1", name, {field: subject})

    def _read_input(self, tool: str, text: str) -> Json:
        try:
            return parse_input(text)
        except HandrailError as error:
            short = (
                f" Or write the call as a rule: '{tool}({text})'." if self.get(tool).subject and "{" not in text else ""
            )
            raise HandrailError(f"{error}{short}") from error

    def request(self, use: ToolUse, cwd: str) -> CallRequest:
        """The call as its tool would see it from this folder; HandrailError if a real call would be turned away."""
        tool = self.get(use.name)
        if problems := input_problems(tool, use.input):
            need = "" if use.input else f" Give its input as JSON{_example(tool)}."
            raise HandrailError(f"this is not a valid call of {tool.name}: {' '.join(problems)}{need}")
        return CallRequest.hypothetical(use, tool, RunContext(Path(cwd)))


def _example(tool: AnyTool) -> str:
    required = tool.input_schema.get("required", ())
    field = tool.subject or next(iter(required), "")
    short = f", or write '{tool.name}(...)'" if tool.subject in required else ""
    return f": '{{\"{field}\": ...}}'{short}" if field else ""


def open_preview(
    chosen: argparse.Namespace, on_warning: Callable[[str], None] = warn, *, trust: bool = False
) -> CallPreview:
    """What the flags ask for; HandrailError if settings, mode or folder cannot be used."""
    cwd = Path(chosen.cwd or ".")
    if not cwd.is_dir():
        raise HandrailError(f"--cwd: {chosen.cwd!r} is not a folder. Give one that exists.")
    return CallPreview(
        cwd,
        os.environ,
        mode=chosen.mode,
        settings=chosen.settings,
        add_dirs=chosen.add_dir,
        trust=trust or getattr(chosen, "trust", False),
        run_hooks=getattr(chosen, "run_hooks", False),
        on_warning=on_warning,
    )


def rule_json(rule: Rule) -> dict[str, str]:
    return {"rule": rule.text, "kind": rule.behaviour.value, "source": str(rule.source)}


def hook_json(hook: Hook) -> dict[str, str]:
    return {"event": hook.event, "hook": hook.name, "source": hook.place}
