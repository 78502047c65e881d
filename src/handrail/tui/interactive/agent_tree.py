"""
Sub-agents at work as a tree: below the call that started each, the call that it makes now.

    | Agent Find the cause, 12 s
      +- Explore: Grep needle, 4 calls
         +- Plan: waiting for the model, 1 call
    & Explore: Look for others, 3 s, Read a.py, 2 calls      in the background
"""

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, field

from handrail.conversation.blocks import Text
from handrail.loop.events import BlockComplete
from handrail.tools.delegation import AgentNews, AgentReport
from handrail.tools.events import CallFinished, CallProgress, CallQueued
from handrail.tools.outcome import Status
from handrail.tui.call_lines import duration, gist, label

MAX_LOG = 200
"""How many lines of what an agent did are kept while it works."""


@dataclass(slots=True)
class AgentNode:
    """A sub-agent at work: its open calls, what it did so far, and its own sub-agents by the call that started them."""

    id: str
    kind: str
    task: str
    started: float
    calls: int = 0
    open: dict[str, str] = field(default_factory=dict)
    log: deque[str] = field(default_factory=lambda: deque(maxlen=MAX_LOG))
    inner: "dict[str, AgentNode]" = field(default_factory=dict)

    def on_event(self, event: object, now: float) -> None:
        """Take in an event of its run."""
        match event:
            case CallQueued(use):
                self.calls += 1
                self.open[use.id] = label(event.card)
            case CallProgress(use, AgentNews() as news):
                take_news(self.inner, use.id, news, now)
            case CallFinished(outcome):
                name = self.open.pop(outcome.use.id, outcome.use.name)
                self.inner.pop(outcome.use.id, None)
                self.log.append(f"{'*' if outcome.status is Status.OK else 'x'} {name}: {gist(event.card)}")
            case BlockComplete(block=Text(text)):
                self.log.extend(text.strip().split("\n"))
            case _:
                pass

    @property
    def doing(self) -> str:
        """What it does now, in a line."""
        *others, newest = self.open.values() or ("waiting for the model",)
        more = f" (+{len(others)} more)" if others else ""
        return f"{newest}{more}, {self.calls} call{'' if self.calls == 1 else 's'}"

    def lines(self, depth: int = 0) -> Iterator[str]:
        """It and its sub-agents, each in a line."""
        yield f"{'   ' * depth}  +- {self.kind}: {self.doing}"
        for node in self.inner.values():
            yield from node.lines(depth + 1)

    def walk(self) -> "Iterator[AgentNode]":
        """It, and its sub-agents."""
        yield self
        for node in self.inner.values():
            yield from node.walk()


def take_news(nodes: dict[str, AgentNode], key: str, news: AgentNews, now: float) -> None:
    """Note an event of a sub-agent; one that has reported is at work no more."""
    if isinstance(news.event, AgentReport):
        nodes.pop(key, None)
        return
    node = nodes.get(key)
    if node is None or node.id != news.agent:
        node = nodes[key] = AgentNode(news.agent, news.kind, news.message, now)
    node.on_event(news.event, now)


class AgentTree:
    """All sub-agents at work: those that a call waits for, by that call, and those in the background, by their id."""

    def __init__(self) -> None:
        self._by_call: dict[str, AgentNode] = {}
        self._background: dict[str, AgentNode] = {}

    def __bool__(self) -> bool:
        return bool(self._by_call or self._background)

    def on_call_news(self, call: str, news: AgentNews, now: float) -> None:
        """An event of a sub-agent that a call waits for."""
        take_news(self._by_call, call, news, now)

    def on_background_news(self, news: AgentNews, now: float) -> None:
        """An event of a sub-agent in the background."""
        take_news(self._background, news.agent, news, now)

    def end_call(self, call: str) -> None:
        """The call is over, so its agent is."""
        self._by_call.pop(call, None)

    def end_calls(self) -> None:
        """No call runs any more."""
        self._by_call.clear()

    def below(self, call: str) -> list[str]:
        """The lines below a call."""
        node = self._by_call.get(call)
        return list(node.lines()) if node else []

    def background_lines(self, now: float) -> list[str]:
        """The agents in the background with their own ones."""
        found: list[str] = []
        for node in self._background.values():
            found.append(f"& {node.kind}: {node.task}, {duration(now - node.started)}, {node.doing}")
            for inner in node.inner.values():
                found += inner.lines()
        return found

    def find(self, agent: str) -> AgentNode | None:
        """The agent of this id, if it is at work."""
        return next((node for node in self.all() if node.id == agent), None)

    def all(self) -> list[AgentNode]:
        """The agents at work, each before its own ones."""
        roots = (*self._by_call.values(), *self._background.values())
        return [node for root in roots for node in root.walk()]
