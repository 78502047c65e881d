"""
A run as plain data: what was said, every call with its stages and its decision, every request with its cost.

Everything is made of JSON values. Times are seconds since 1970, durations are seconds, sizes are characters. None
stands for what is not known: sessions of older versions and of other programs tell less.
"""

from dataclasses import field
from html import escape
from typing import Any, Literal, TypeAlias

from typing_extensions import TypedDict

from handrail.records import record

FORMAT = "handrail run"
VERSION = 1

EntryKind: TypeAlias = Literal[
    "prompt", "text", "thinking", "call", "note", "attachment", "file", "compacted", "discarded", "ended"
]


class TokenCounts(TypedDict):
    """Tokens of a request and its answer. `input` came from no cache and went into none."""

    input: int
    output: int
    cache_read: int
    cache_write: int


class TurnData(TypedDict):
    """One request to a model and its answer."""

    agent: str
    turn: int
    attempt: int
    why: str
    """Why the model was asked: the prompt, results of tools, and so on."""
    model: str
    at: float
    """When the request was sent."""
    first: float | None
    """When the first block of the answer was complete."""
    answered: float | None
    """When the answer was complete. Its calls may have begun before."""
    ended: float | None
    """When all its calls were over."""
    usage: TokenCounts | None
    dollars: float | None
    prefix: dict[str, str]
    """Digests of the system prompt and the tools."""
    broke: str
    """Why the cached prefix of the request before could not be used again; empty if it could."""
    discarded: bool
    """The answer broke off and was asked for again."""


class StageSeconds(TypedDict):
    """How long a call was in each stage; `waited` for an answer is a part of `decided`."""

    queued: float
    validated: float
    decided: float
    waited: float
    ran: float
    fitted: float


class OpinionData(TypedDict):
    """What one layer thought of a call. `rule` has the rule with its file and line, if it was one."""

    layer: str
    says: str
    strength: str
    reason: str
    rule: str


class DecisionData(TypedDict):
    """Whether a call was allowed, who decided, and why."""

    at: float
    verdict: str
    by: str
    asked: bool
    reason: str
    rule: str
    """The rule that decided, or because of which it was asked, with its place."""
    mode: str
    judging: float
    waiting: float
    opinions: list[OpinionData]
    remedy: list[str]
    """The rules and modes that would have allowed it."""
    learned: list[str]
    """The rules that came with the answer "always"."""


class CallData(TypedDict):
    """One call of a tool."""

    id: str
    agent: str
    turn: int | None
    """The place of its turn in `turns`."""
    tool: str
    subject: str
    """What it is about, in a line."""
    input: dict[str, Any]
    queued: float
    started: float | None
    ended: float | None
    status: str
    """running, ok, error, denied, cancelled, discarded, deferred, or unknown if the program ended before it did."""
    cause: str
    early: bool
    """It started before the answer that asked for it was complete."""
    stages: StageSeconds | None
    result: str
    size: int
    """The length of the whole result."""
    decision: DecisionData | None
    starts_agent: str
    """The sub-agent that it started; empty if it started none."""


class EntryData(TypedDict):
    """One piece of the conversation, in the order of the session file."""

    kind: EntryKind
    agent: str
    at: float
    turn: int | None
    call: int | None
    """The place of the call in `calls`, of entries of that kind."""
    text: str
    size: int
    """The length of the whole text; `text` may be the beginning of it."""
    line: int
    """The line of the file that it comes from; the first is 1."""


class AgentData(TypedDict):
    """An agent of the run: `main`, and each sub-agent."""

    id: str
    type: str
    description: str
    parent: str
    status: str
    began: float | None
    ended: float | None
    turns: int
    calls: int
    dollars: float | None
    model: str


class ChangeData(TypedDict):
    """A change of a file, as the undo journal counts it."""

    number: int
    at: float
    tool: str
    call: str
    path: str
    kind: str
    """made, changed, removed or folder."""
    undone: bool


class RunTotals(TypedDict):
    """Sums over the whole session."""

    prompts: int
    turns: int
    calls: int
    failed: int
    denied: int
    asked: int
    seconds: float
    tokens: TokenCounts
    dollars: float | None


NO_TOKENS = TokenCounts(input=0, output=0, cache_read=0, cache_write=0)


@record
class RunRecord:
    """A session and everything that happened in it. Lists refer to each other by position."""

    id: str
    title: str
    cwd: str
    model: str
    parent: str
    """The session that this one was forked from; empty if none."""
    began: float | None
    ended: float | None
    outcome: str
    """How the last prompt ended, in a word; `unfinished` if the program ended before it did."""
    problem: str
    totals: RunTotals
    agents: list[AgentData] = field(default_factory=list)
    turns: list[TurnData] = field(default_factory=list)
    calls: list[CallData] = field(default_factory=list)
    entries: list[EntryData] = field(default_factory=list)
    changes: list[ChangeData] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    """What in the files was not understood."""

    def as_json(self) -> dict[str, Any]:
        """The record for other programs; docs/run.schema.json describes it."""
        fields = {name: getattr(self, name) for name in RunRecord.__annotations__}
        return {"format": FORMAT, "version": VERSION, **fields}

    def _repr_html_(self) -> str:
        """The run as a notebook shows it: its sums, and a row for each call."""
        totals = self.totals
        cost = "" if totals["dollars"] is None else f", ${totals['dollars']:.4f}"
        head = f"{self.outcome}: {totals['turns']} turns, {totals['calls']} calls, {totals['denied']} denied{cost}"
        rows = "".join(
            f"<tr><td>{escape(call['tool'])}</td><td>{escape(call['subject'][:120])}</td>"
            f"<td>{escape(call['status'])}</td><td>{seconds_text(call)}</td>"
            f"<td>{escape(call['decision']['reason'][:200] if call['decision'] else '')}</td></tr>"
            for call in self.calls[:MAX_ROWS]
        )
        more = len(self.calls) - MAX_ROWS
        rest = f"<p>and {more} more calls</p>" if more > 0 else ""
        columns = "".join(f"<th>{name}</th>" for name in ("tool", "call", "end", "ran", "decision"))
        table = f"<table><thead><tr>{columns}</tr></thead><tbody>{rows}</tbody></table>" if rows else ""
        return f"<div><b>{escape(self.title or self.id)}</b><p>{escape(head)}</p>{table}{rest}</div>"


MAX_ROWS = 200


def seconds_text(call: CallData) -> str:
    """How long a call ran; empty if that is not known."""
    stages = call["stages"]
    if stages is not None:
        return f"{stages['ran']:.3f} s"
    started, ended = call["started"], call["ended"]
    return "" if started is None or ended is None else f"{ended - started:.3f} s"
