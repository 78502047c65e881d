"""
The pins of MCP tools on disk, and what becomes of tools that are not as they were approved.

    a project's servers   .handrail/mcp.lock beside the .mcp.json that names them
    the user's own        mcp.lock in the state folder
    --mcp-config          not pinned, unless the project's lock names them: they are given anew with every run

The first list of a server is approved with the server itself and pinned. From then on a tool that is new or different
is held back until a person accepts it: asked where one can be, else with `handrail mcp lock`.
"""

import os
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.config.files import lock_folder, replace_file
from handrail.conversation.blocks import ToolUse
from handrail.errors import McpError
from handrail.files.private_folder import make_private_folder
from handrail.lazy import lazy
from handrail.mcp.imitation import tool_problem
from handrail.mcp.lock import PinnedTool, ToolChange, compare, diff_lines, pin, read_lock, write_lock
from handrail.mcp.offers import INSTRUCTIONS, RemoteTool
from handrail.tools.mcp_names import server_name
from handrail.tools.permission import Allow

if TYPE_CHECKING:
    from handrail.dispatch.approval import question
    from handrail.permissions import risk
else:  # tools seldom change
    question = lazy("handrail.dispatch.approval.question")
    risk = lazy("handrail.permissions.risk")

LOCK = "mcp.lock"
MAX_LOCK = 50_000_000
MAX_NAMED = 5

ServerPins = dict[str, dict[str, PinnedTool]]
LockFile = Callable[[str], Path | None]
"""The lock that a server's tools are pinned in; None if they are not."""


class PinFile:
    """One lock file."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def read(self) -> ServerPins:
        """The pins by server; McpError if they cannot be read."""
        try:
            with os.fdopen(os.open(self.path, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC), "rb") as file:
                text = file.read(MAX_LOCK).decode("utf-8", "replace")
        except FileNotFoundError:
            return {}
        except OSError as error:
            raise McpError(f"{self.path} cannot be read: {error.strerror}.") from error
        return read_lock(text, str(self.path))

    def write(self, server: str, tools: Sequence[PinnedTool]) -> None:
        """Pin the tools of a server as they are now; McpError if that cannot be written."""
        self._change(lambda pins: {**pins, server: {tool.name: tool for tool in tools}})

    def forget(self, server: str) -> None:
        """Remove the pins of a server."""
        if server in self.read():
            self._change(lambda pins: {name: tools for name, tools in pins.items() if name != server})

    def _change(self, change: Callable[[ServerPins], ServerPins]) -> None:
        try:
            if self.path.parent.name == ".handrail":
                self.path.parent.mkdir(exist_ok=True)
            else:
                make_private_folder(self.path.parent)
            with lock_folder(self.path.parent):
                replace_file(self.path, write_lock(change(self.read())).encode("utf-8", "replace"), mode=0o644)
        except OSError as error:
            raise McpError(f"{self.path} cannot be written: {error.strerror or error}.") from error


class ToolPins:
    """Compares what servers offer with what was approved of them. With `pins_first` the first list is approved."""

    def __init__(self, lock_file: LockFile, builtin: Callable[[], frozenset[str]], *, pins_first: bool = True) -> None:
        self._pins_first = pins_first
        self._lock_file = lock_file
        self._builtin_names = builtin
        self.waiting: dict[str, tuple[tuple[PinnedTool, ...], tuple[ToolChange, ...]]] = {}
        """By server, the tools it offers now and what of them is not approved."""
        self._asked: dict[str, tuple[ToolChange, ...]] = {}
        """By server, what a person was asked about: no one is asked twice about the same."""

    @cached_property
    def _builtin(self) -> frozenset[str]:
        return self._builtin_names()

    def accept(self, server: str, offered: Sequence[RemoteTool]) -> tuple[tuple[RemoteTool, ...], tuple[str, ...]]:
        """The tools that may be used, and why the others may not."""
        problems = {tool.name: why for tool in offered if (why := tool_problem(tool.name, self._builtin))}
        fine = [tool for tool in offered if tool.name not in problems]
        notes = [f"{name!r}: {why}." for name, why in problems.items()]
        self.waiting.pop(server, None)
        now = tuple(map(pin, fine))
        try:
            path = self._lock_file(server)
            if path is None:
                return tuple(fine), tuple(notes)
            pinned = PinFile(path).read().get(server)
            if pinned is None:
                if self._pins_first:
                    PinFile(path).write(server, now)
                return tuple(fine), tuple(notes)
        except McpError as error:
            return (), (*notes, f"all of them, because what was approved is not known: {error}")
        changes = tuple(each for each in compare(pinned, now) if each.kind != "gone")
        if not changes:
            return tuple(fine), tuple(notes)
        self.waiting[server] = now, changes
        held = {each.name for each in changes}
        return tuple(tool for tool in fine if tool.name not in held), (*notes, _change_note(server, changes))

    def names(self, server: str) -> tuple[str, ...] | None:
        """The tools of a server that were approved, by the server's own names; None if nothing was."""
        with suppress(McpError):
            path = self._lock_file(server)
            pinned = PinFile(path).read().get(server) if path else None
            if pinned is not None:
                return tuple(name for name in pinned if name != INSTRUCTIONS and not tool_problem(name, self._builtin))
        return None

    def approve(self, server: str) -> None:
        """Pin what a server offers now; McpError if that cannot be written."""
        tools, _ = self.waiting.pop(server)
        path = self._lock_file(server)
        assert path is not None
        PinFile(path).write(server, tools)

    async def ask(self, handler: "question.Handler") -> tuple[str, ...]:
        """Ask a person about what waits; the servers whose tools were accepted."""
        accepted = []
        for server, (_, changes) in list(self.waiting.items()):
            if self._asked.get(server) == changes:
                continue
            self._asked[server] = changes
            answer = await handler.ask(_question(server, changes))
            if isinstance(answer, Allow):
                with suppress(McpError, KeyError):  # by now it may offer others
                    self.approve(server)
                    accepted.append(server)
        return tuple(accepted)


def _change_note(server: str, changes: Sequence[ToolChange]) -> str:
    names = ", ".join(repr(each.name) for each in changes[:MAX_NAMED])
    more = f" and {len(changes) - MAX_NAMED} more" if len(changes) > MAX_NAMED else ""
    are = "is" if len(changes) == 1 else "are"
    return (
        f"{names}{more} {are} not as approved. See what is different: handrail mcp lock --check {server}. "
        f"Accept it: handrail mcp lock {server}"
    )


def _question(server: str, changes: Sequence[ToolChange]) -> "question.Question":
    lines = "\n".join(line for each in changes for line in diff_lines(each))
    return question.Question(
        f"mcp-lock-{server}",
        ToolUse(f"mcp-lock-{server}", f"mcp__{server_name(server)}", {"changes": lines}),
        summary=f"use the changed tools of the MCP server {server}",
        reason="The server describes its tools differently than when they were approved.",
        risk=risk.Risk(risk.Level.HIGH, ("what a server says about its tools goes to the model",)),
        name=f"The MCP server {server!r}, whose tools have changed,",
    )
