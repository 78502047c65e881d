"""A project and a home with settings whose hooks write down what they are told; whole runs in it."""

import json
import os
from collections.abc import Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

import anyio

from handrail import Agent
from handrail.conversation.blocks import Text
from handrail.dispatch.approval.sdk import CanUseTool
from handrail.loop.events import LoopEvent
from handrail.providers.choose import ModelOptions
from handrail.session.spec import SessionHost, SessionSpec
from handrail.testing.model_server import ModelServer, Reply

DONE = Reply((Text("Done."),))


async def nothing(_agent: Agent[Any]) -> None:
    """For sessions without a pause."""


class Place:
    """A project, a home with settings, and the folder that their hooks write what they are told to."""

    def __init__(self, root: Path) -> None:
        self.project, self.home, self.heard = root / "project", root / "home", root / "heard"
        self.settings = self.home / ".handrail" / "settings.json"
        self.notes: list[str] = []
        for folder in (self.project, self.settings.parent, self.heard):
            folder.mkdir(parents=True)
        self.env = {"HOME": str(self.home), "HANDRAIL_STATE_DIR": str(root / "state"), "PATH": os.environ["PATH"]}

    def write(self, hooks: Mapping[str, str], *, where: str = "user", **more: Any) -> None:
        """Commands by event, in the settings of the user, or the project's."""
        section = {event: [{"hooks": [{"type": "command", "command": line}]}] for event, line in hooks.items()}
        path = self.settings if where == "user" else self.project / ".handrail" / "settings.json"
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps({"hooks": section, **more}))

    def note(self) -> str:
        """A command that keeps its input in a file named by the time."""
        return f"at={self.heard}/$(date +%s%N)-$$; cat > $at.part; mv $at.part $at"

    def told(self, event: str = "") -> list[dict[str, Any]]:
        """What hooks were told, or those of one event."""
        whole = sorted(path for path in self.heard.iterdir() if path.suffix != ".part")
        every = [json.loads(path.read_text()) for path in whole]
        return [each for each in every if event in ("", each["hook_event_name"])]

    async def run(
        self,
        replies: Iterable[Reply],
        *prompts: str,
        hear: Callable[[LoopEvent], None] = lambda _event: None,
        between: Callable[[Agent[Any]], Awaitable[None]] = nothing,
        can_use_tool: CanUseTool | None = None,
        **spec: Any,
    ) -> ModelServer:
        """A session with these prompts; `between` is awaited after each."""
        with anyio.fail_after(30):
            async with ModelServer(replies, strict=True) as server:
                options = ModelOptions(provider="anthropic", model="m", base_url=server.url)
                host = SessionHost(on_warning=self.notes.append, can_use_tool=can_use_tool)
                agent = Agent.from_spec(SessionSpec(self.project, options, **spec), self.env, host)
                try:
                    for prompt in prompts or ("go",):
                        async for event in agent.run(prompt):
                            hear(event)
                        await between(agent)
                finally:
                    await agent.aclose()
        return server


def results(server: ModelServer) -> list[tuple[bool, str]]:
    """The results in the last request: whether each is an error, and its text."""
    last = server.requests[-1].body["messages"][-1]["content"]
    return [(each.get("is_error", False), each["content"]) for each in last if each["type"] == "tool_result"]


def words(server: ModelServer, request: int = -1) -> str:
    """All that a request says."""
    return json.dumps(server.requests[request].body["messages"])
