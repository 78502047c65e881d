"""An editor for the tests of `handrail acp`: the client of the protocol's own package, driving a real process."""

import asyncio
import os
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Self, cast

import anyio
from acp.client.connection import ClientSideConnection
from acp.interfaces import Client
from acp.schema import AllowedOutcome, DeniedOutcome, PermissionOption, RequestPermissionResponse, ToolCallUpdate

from acp import spawn_agent_process, text_block
from handrail.conversation.blocks import AssistantBlock, Text
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program

SECONDS = 60
Choose = Callable[[list[PermissionOption]], str | None]
"""The option that the person takes; None = the question is cancelled."""


def by_name(start: str) -> Choose:
    """The first option whose name begins like this."""
    return lambda options: next(each.option_id for each in options if each.name.startswith(start))


class Script:
    """The answers of the model, one after the other; tests add to it."""

    def __init__(self) -> None:
        self.replies: deque[Reply] = deque()

    def __iter__(self) -> Iterator[Reply]:
        return self

    def __next__(self) -> Reply:
        if not self.replies:
            raise StopIteration
        return self.replies.popleft()

    def say(self, *blocks: AssistantBlock | str) -> None:
        """One answer."""
        self.replies.append(Reply(tuple(Text(each) if isinstance(each, str) else each for each in blocks)))


class Person:
    """What the editor hears, and the person who answers its questions."""

    def __init__(self) -> None:
        self.heard: list[tuple[str, Any]] = []
        self.questions: list[tuple[ToolCallUpdate, list[PermissionOption]]] = []
        self.choose: Choose = by_name("Yes, this once")
        self.asked = asyncio.Event()
        self.may_answer = asyncio.Event()
        self.may_answer.set()

    async def session_update(self, session_id: str, update: Any, **_: Any) -> None:
        self.heard.append((session_id, update))

    async def request_permission(
        self, session_id: str, tool_call: ToolCallUpdate, options: list[PermissionOption], **_: Any
    ) -> RequestPermissionResponse:
        self.questions.append((tool_call, options))
        self.asked.set()
        await self.may_answer.wait()
        chosen = self.choose(options)
        if chosen is None:
            return RequestPermissionResponse(outcome=DeniedOutcome(outcome="cancelled"))
        return RequestPermissionResponse(outcome=AllowedOutcome(outcome="selected", option_id=chosen))


class Editor:
    """An editor with one agent, its person and its model."""

    def __init__(self, connection: ClientSideConnection, person: Person, script: Script, server: ModelServer) -> None:
        self.agent = connection
        self.person = person
        self.script = script
        self.server = server
        self.process: asyncio.subprocess.Process

    async def open(self, folder: Path, **more: Any) -> str:
        """The id of a new session."""
        return (await self.agent.new_session(cwd=str(folder), mcp_servers=[], **more)).session_id

    async def prompt(self, session: str, text: str) -> str:
        """Why the work on a prompt stopped."""
        return (await self.agent.prompt(session_id=session, prompt=[text_block(text)])).stop_reason

    def updates(self, session: str, *kinds: str) -> list[Any]:
        """What was heard of a session, of these kinds."""
        found = [update for name, update in self.person.heard if name == session]
        return [update for update in found if not kinds or update.session_update in kinds]

    def text(self, session: str) -> str:
        """All that the agent has said in a session."""
        return "".join(each.content.text for each in self.updates(session, "agent_message_chunk"))

    def fresh(self) -> Self:
        """The same editor with another person, for the next test."""
        person = self.person
        person.heard.clear()
        person.questions.clear()
        person.choose = by_name("Yes, this once")
        person.asked.clear()
        person.may_answer.set()
        self.script.replies.clear()
        return self


def variables(home: Path, server: ModelServer) -> dict[str, str]:
    own = {name: value for name, value in os.environ.items() if not name.startswith(("ANTHROPIC_", "OPENAI_"))}
    return {**own, "ANTHROPIC_BASE_URL": server.url, "HOME": str(home), "HANDRAIL_STATE_DIR": str(home / "state")}


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@asynccontextmanager
async def open_editor(home: Path, *flags: str, has_model: bool = True) -> AsyncIterator[Editor]:
    """An editor that has started `handrail acp` and greeted it."""
    script, person = Script(), Person()
    async with (
        ModelServer(script, strict=True) as server,
        spawn_agent_process(
            cast("Client", person),  # it has what handrail uses of an editor
            str(program()),
            "acp",
            *flags,
            env=variables(home, server) | ({} if has_model else {"ANTHROPIC_BASE_URL": ""}),
            cwd=home,
            transport_kwargs={"limit": 2_000_000, "stderr": None},
        ) as (connection, process),
    ):
        editor = Editor(connection, person, script, server)
        editor.process = process
        with anyio.fail_after(SECONDS):
            await connection.initialize(protocol_version=1)
        yield editor
