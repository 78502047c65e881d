"""A folder, a model on loopback, and the SDK's options that bring handrail to both."""

import os
import sys
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, TypeVar

import anyio
from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKClient,
    Message,
    PermissionResultAllow,
    PermissionResultDeny,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolPermissionContext,
    ToolResultBlock,
    UserMessage,
    query,
)

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.forked import program

HANDRAIL = Path(sys.executable).with_name("handrail")
PATIENCE = 60.0
FOREIGN = ("ANTHROPIC_", "OPENAI_", "CLAUDE_", "HANDRAIL_")

os.environ["CLAUDE_AGENT_SDK_SKIP_VERSION_CHECK"] = "1"  # it would start one more process each time, and warn

Kind = TypeVar("Kind")


class World:
    """Where a test plays. `errors` is what handrail said on standard error."""

    def __init__(self, folder: Path, server: ModelServer) -> None:
        self.folder = folder
        self.server = server
        self.errors: list[str] = []
        self.cwd = folder / "work"
        self.home = folder / "home"
        self.state = folder / "state"
        for each in (self.cwd, self.home):
            each.mkdir(exist_ok=True)

    @property
    def env(self) -> dict[str, str]:
        away = {name: "" for name in os.environ if name.startswith(FOREIGN)}
        return {
            **away,
            "HOME": str(self.home),
            "HANDRAIL_STATE_DIR": str(self.state),
            "ANTHROPIC_BASE_URL": self.server.url,
            "ANTHROPIC_API_KEY": "test-key",
        }

    def options(self, **more: Any) -> ClaudeAgentOptions:
        env = {**self.env, **more.pop("env", {})}
        return ClaudeAgentOptions(
            **{"cli_path": program(), "cwd": self.cwd, "env": env, "stderr": self.errors.append, **more}
        )

    async def ask(self, prompt: Any, **more: Any) -> list[Message]:
        """All messages of one `query`."""
        with anyio.fail_after(PATIENCE):
            return [message async for message in query(prompt=prompt, options=self.options(**more))]

    @asynccontextmanager
    async def client(self, **more: Any) -> AsyncIterator[ClaudeSDKClient]:
        with anyio.fail_after(PATIENCE):
            async with ClaudeSDKClient(self.options(**more)) as client:
                yield client

    def said(self, number: int = -1) -> str:
        """A request of the model, as text."""
        return self.server.requests[number].raw.decode()


@asynccontextmanager
async def world(folder: Path, *replies: Reply, strict: bool = True) -> AsyncIterator[World]:
    async with ModelServer(replies, strict=strict) as server:
        yield World(folder, server)


def say(text: str, **more: Any) -> Reply:
    return Reply((Text(text),), **more)


def call(number: int, name: str, **given: Any) -> ToolUse:
    return ToolUse(f"toolu_{number}", name, given)


def calls(*uses: ToolUse) -> Reply:
    return Reply(uses)


async def turn(client: ClaudeSDKClient, prompt: Any) -> list[Message]:
    """One prompt to its result."""
    await client.query(prompt)
    return [message async for message in client.receive_response()]


def only(messages: Iterable[object], kind: type[Kind]) -> list[Kind]:
    return [message for message in messages if isinstance(message, kind)]


def end(messages: Iterable[object]) -> ResultMessage:
    """The one result."""
    [result] = only(messages, ResultMessage)
    return result


def texts(messages: Iterable[object]) -> list[str]:
    """What the model said."""
    return [b.text for m in only(messages, AssistantMessage) for b in m.content if isinstance(b, TextBlock)]


def results(messages: Iterable[object]) -> dict[str, tuple[str, bool]]:
    """By call, what came back and whether it is an error."""
    blocks = [b for m in only(messages, UserMessage) for b in m.content if isinstance(b, ToolResultBlock)]
    return {block.tool_use_id: (shown(block.content), block.is_error is True) for block in blocks}


def shown(content: str | list[dict[str, Any]] | None) -> str:
    return content if isinstance(content, str) else "\n".join(part.get("text", "") for part in content or ())


def system(messages: Iterable[object], subtype: str) -> list[dict[str, Any]]:
    return [m.data for m in only(messages, SystemMessage) if m.subtype == subtype]


class Asked:
    """A permission callback that keeps the questions and answers by rule."""

    def __init__(self, answer: Callable[[str, dict[str, Any]], PermissionResultAllow | PermissionResultDeny]) -> None:
        self.answer = answer
        self.questions: list[tuple[str, dict[str, Any], ToolPermissionContext]] = []

    async def __call__(
        self, name: str, given: dict[str, Any], context: ToolPermissionContext
    ) -> PermissionResultAllow | PermissionResultDeny:
        self.questions.append((name, given, context))
        return self.answer(name, given)
