"""One prompt of a sub-agent to its report, within its limits."""

from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import replace
from typing import TypeAlias, get_args

from handrail.conversation.blocks import Text
from handrail.conversation.messages import UserMessage
from handrail.conversation.request import Effort
from handrail.conversation.stream import MessageStart, Usage, UsageUpdate
from handrail.loop.events import MessageComplete, RunEnded
from handrail.loop.limits import Limits
from handrail.loop.state import Move
from handrail.session.conversation import Conversation
from handrail.session.drive import drive
from handrail.tools.context import Budget
from handrail.tools.delegation import AgentReport
from handrail.tools.events import CallQueued

Emit: TypeAlias = Callable[[object], None]
Spend: TypeAlias = Callable[[str, Usage], None]
MoreWork: TypeAlias = Callable[[], Awaitable[str]]
"""Asked when an agent is done: what it has to look at before it may end; empty = nothing."""


async def run_prompts(
    conversation: Conversation, prompt: str, emit: Emit, spend: Spend, more: MoreWork | None = None
) -> AgentReport:
    """Work on the prompt, and on what comes meanwhile; the report is the last one, with what all of it took."""
    report = await run_prompt(conversation, prompt, emit, spend)
    while more is not None and report.status == "completed" and (words := await more()):
        before, report = report, await run_prompt(conversation, words, emit, spend)
        report = _add_reports(before, report)
    return report


def _add_reports(before: AgentReport, last: AgentReport) -> AgentReport:
    return replace(
        last,
        calls=before.calls + last.calls,
        tokens=before.tokens + last.tokens,
        seconds=before.seconds + last.seconds,
        usage={name: number + last.usage.get(name, 0) for name, number in before.usage.items()},
        dollars=None if before.dollars is None or last.dollars is None else before.dollars + last.dollars,
    )


async def run_prompt(conversation: Conversation, prompt: str, emit: Emit, spend: Spend) -> AgentReport:
    """Work on the prompt to its end; what it uses is spent at once, also if it is stopped."""
    calls, ended, model, unpaid = 0, None, conversation.config.model_name, Usage()
    try:
        async with aclosing(drive(conversation, UserMessage((Text(prompt),)))) as events:
            async for event in events:
                emit(event)
                match event:
                    case CallQueued():
                        calls += 1
                    case MessageStart():
                        model, unpaid = event.model or model, Usage()
                    case UsageUpdate(usage):
                        unpaid = usage
                    case MessageComplete(message=message, usage=usage):
                        spend(message.model, usage)
                        unpaid = Usage()
                    case RunEnded():
                        ended = event
                    case _:
                        pass
    finally:
        if unpaid != Usage():  # it was stopped in the middle of an answer
            spend(model, unpaid)
    assert ended is not None
    problem = (ended.problem or ended.why.value.replace("_", " ")) if ended.is_error else ""
    agent = conversation.state.context.agent
    return AgentReport(
        agent.id,
        ended.text,
        calls,
        sum(spent.input_tokens + spent.output_tokens for spent in ended.spent.values()),
        ended.seconds,
        problem,
        "killed" if ended.move is Move.ABORTED else "failed" if problem and not ended.text else "completed",
        agent.type,
        model,
        _usage(ended),
        ended.dollars,
    )


def least_limits(usual: Limits, turns: int | None, left: Budget, *, timed: bool) -> Limits:
    """Of what the settings, the definition and the rest of the caller's own budget allow, the least."""
    seconds = left.seconds if timed else None
    return Limits(
        _fewest(usual.turns, turns),
        _least(usual.dollars, left.dollars),
        _fewest(usual.tokens, left.tokens),
        _least(usual.seconds, seconds),
    )


def _fewest(*limits: int | None) -> int | None:
    known = [limit for limit in limits if limit is not None]
    return max(1, min(known)) if known else None


def _least(*limits: float | None) -> float | None:
    """The smallest limit; one that is used up lets a single answer through, which then ends the run."""
    known = [limit for limit in limits if limit is not None]
    return max(1e-9, min(known)) if known else None


def read_effort(text: str) -> Effort | None:
    """How hard the model thinks; None = as it does by itself."""
    return next((each for each in get_args(Effort) if each == text), None)


def _usage(ended: RunEnded) -> dict[str, int]:
    """The tokens of a run under the names that programs know."""
    spent = ended.spent.values()
    return {
        "input_tokens": sum(each.input_tokens for each in spent),
        "output_tokens": sum(each.output_tokens for each in spent),
        "cache_read_input_tokens": sum(each.cache_read_tokens for each in spent),
        "cache_creation_input_tokens": sum(each.cache_write_tokens for each in spent),
    }
