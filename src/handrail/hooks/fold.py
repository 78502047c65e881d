"""
Folds the results of hooks into one, by pure functions.

    deny > defer > ask > allow > no opinion        an order of care, not of configuration
    the last `updatedInput` counts         in the order of configuration, however fast the hooks were
    an allow counts only for the input it was given for, not for one that another hook rewrote
"""

from collections.abc import Sequence
from dataclasses import replace

from handrail.hooks.events import EVENTS
from handrail.hooks.results import CARE, NOTHING, HookResult
from handrail.hooks.specs import CallbackHook, Hook, short_repr
from handrail.tools.permission import Allow, Deny, Opinion, Strength, Verdict

STRENGTHS = {Verdict.DENY: Strength.DENY, Verdict.ASK: Strength.ASK, Verdict.ALLOW: Strength.ALLOW}


def weigh(hook: Hook, result: HookResult, *, strict: bool) -> HookResult:
    """One hook's result, with the consequences of its failure: see `_escalate` for hooks that decide."""
    event = EVENTS[hook.event]
    if result.unattributed:
        result = _name_hook(hook, result)
    if not result.problem:
        if not result.reason and result.verdict in (Verdict.DENY, Verdict.ASK):
            result = replace(result, reason=f"the hook {hook.name!r} says so")
        return replace(result, source=hook.place) if result.verdict is not None else result
    text = f"the {event.name} hook {hook.name!r} {result.problem}"
    result = replace(result, problem=text, messages=(*result.messages, f"{text} ({hook.place})"))
    if event.decides:
        return replace(_escalate(hook, result, strict=strict), source=hook.place)
    if event.name == "PermissionRequest" and _refuses_by_failing(hook, result):
        return replace(result, permission=Deny(text))
    guards = event.name == "UserPromptSubmit" and _refuses_by_failing(hook, result)
    if event.blocks and result.block is None and (hook.blocks_on_failure or guards):
        return replace(result, block=text)
    return result


def _refuses_by_failing(hook: Hook, result: HookResult) -> bool:
    """Whether its failure is a no: a function of the surrounding program that raises has not said yes."""
    return hook.blocks_on_failure or (result.fatal and isinstance(hook.handler, CallbackHook))


def _name_hook(hook: Hook, result: HookResult) -> HookResult:
    """Name the hook in the reason of a bare exit code 2: standard error alone does not tell users where to look."""
    who = f"the {hook.event} hook {short_repr(hook.name)} objects: "
    if result.block is not None:
        return replace(result, block=who + result.block, unattributed=False)
    return replace(result, reason=who + result.reason, unattributed=False)


def _escalate(hook: Hook, result: HookResult, *, strict: bool) -> HookResult:
    """
    A function that fails refuses; a command or endpoint that did no work asks.

    One that failed otherwise asks if it is written for handrail: others expect that to be ignored.
    """
    if _refuses_by_failing(hook, result):
        least = Verdict.DENY
    elif result.fatal or (strict and hook.source.family == ".handrail"):
        least = Verdict.ASK
    else:
        return result
    if result.verdict is not None and CARE[result.verdict] >= CARE[least]:
        return result
    return replace(result, verdict=least, reason=result.problem)


def fold_results(results: Sequence[HookResult]) -> HookResult:
    """The results of all hooks of one event as one. They are given in the order of configuration."""
    present = [result for result in results if result != NOTHING]
    if len(present) < 2:
        return next(iter((*present, *results)), NOTHING)  # NOTHING itself only if no hook ran
    rewriting = [result for result in present if result.updated_input is not None]
    last = rewriting[-1] if rewriting else None
    # an allow counts only if it is about the input that would run
    deciding = [
        result
        for result in present
        if result.verdict is not None and (result.verdict is not Verdict.ALLOW or last is None or result is last)
    ]
    winner = max(deciding, key=lambda result: (CARE[result.verdict or Verdict.ALLOW], result.defers), default=NOTHING)
    blocks = [result.block for result in present if result.block is not None]
    outputs = [result.updated_output for result in present if result.updated_output is not None]
    return HookResult(
        verdict=winner.verdict,
        reason=winner.reason,
        updated_input=last.updated_input if last else None,
        updated_output=outputs[-1] if outputs else None,
        block="\n".join(blocks) if blocks else None,
        stop=next((result.stop for result in present if result.stop is not None), None),
        context=tuple(text for result in present for text in result.context),
        messages=(*(text for result in present for text in result.messages), *_conflict_messages(rewriting)),
        permission=_permission([result.permission for result in present if result.permission]),
        title=next((result.title for result in reversed(present) if result.title), ""),
        first="\n".join(result.first for result in present if result.first),
        problem="; ".join(result.problem for result in present if result.problem),
        fatal=any(result.fatal for result in present),
        defers=winner.defers,
        source=winner.source,
    )


def _conflict_messages(rewriting: Sequence[HookResult]) -> tuple[str, ...]:
    if all(result.updated_input == rewriting[-1].updated_input for result in rewriting):
        return ()
    return (f"{len(rewriting)} hooks rewrote the input differently; the last one in the settings counts",)


def _permission(given: Sequence[Allow | Deny]) -> Allow | Deny | None:
    """A refusal wins over every allow; of several allows the last counts."""
    denied = [result for result in given if isinstance(result, Deny)]
    if denied:
        return replace(denied[0], interrupt=any(result.interrupt for result in denied))
    return given[-1] if given else None


def opinion_of(result: HookResult) -> Opinion | None:
    """The opinion of the hooks on a call."""
    if result.verdict is None:
        return None
    return Opinion(STRENGTHS[result.verdict], result.verdict, "hooks", result.reason or "a hook says so", result.source)
