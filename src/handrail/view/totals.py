"""Sums over a run."""

from collections.abc import Sequence

from handrail.view.model import NO_TOKENS, AgentData, CallData, EntryData, RunTotals, TokenCounts, TurnData


def run_totals(
    agents: Sequence[AgentData], turns: Sequence[TurnData], calls: Sequence[CallData], entries: Sequence[EntryData]
) -> RunTotals:
    """The sums of a run. The cost is not known if that of any answer is not."""
    costs = [turn["dollars"] for turn in turns if turn["usage"] is not None]
    known = [cost for cost in costs if cost is not None]
    decisions = [call["decision"] for call in calls if call["decision"] is not None]
    begins = [agent["began"] for agent in agents if agent["began"] is not None]
    ends = [agent["ended"] for agent in agents if agent["ended"] is not None]
    return RunTotals(
        prompts=sum(1 for each in entries if each["kind"] == "prompt" and each["agent"] == "main"),
        turns=len(turns),
        calls=len(calls),
        failed=sum(1 for call in calls if call["status"] == "error"),
        denied=sum(1 for call in calls if call["status"] == "denied"),
        asked=sum(1 for each in decisions if each["asked"]),
        seconds=max(ends) - min(begins) if ends and begins else 0.0,
        tokens=sum_tokens(turns),
        dollars=sum(known) if costs and len(known) == len(costs) else None,
    )


def sum_tokens(turns: Sequence[TurnData]) -> TokenCounts:
    """The tokens of all answers that were counted."""
    counted = [turn["usage"] or NO_TOKENS for turn in turns]
    return TokenCounts(
        input=sum(each["input"] for each in counted),
        output=sum(each["output"] for each in counted),
        cache_read=sum(each["cache_read"] for each in counted),
        cache_write=sum(each["cache_write"] for each in counted),
    )
