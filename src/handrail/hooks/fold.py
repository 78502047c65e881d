"""
From the answers of hooks to one answer, purely.

    deny > defer > ask > allow > no opinion        an order of care, not of configuration
    the last `updatedInput` counts         in the order of configuration, however fast the hooks were
    an allow counts for the input it was given for: another hook's rewriting takes it away
"""

from collections.abc import Sequence
from dataclasses import replace

from handrail.hooks.events import EVENTS
from handrail.hooks.results import CARE, NOTHING, HookResult
from handrail.hooks.specs import CallbackHook, Hook, short_repr
from handrail.tools.permission import Allow, Deny, Opinion, Strength, Verdict

STRENGTHS = {Verdict.DENY: Strength.DENY, Verdict.ASK: Strength.ASK, Verdict.ALLOW: Strength.ALLOW}


def weigh(hook: Hook, answer: HookResult, *, strict: bool) -> HookResult:
    """
    One hook's answer, with what its failure leads to.

    A hook that has a say and did not do its work has to be asked about. One that ran and complained (exit code 1) is
    asked about if it was written for us (`strict`); others expect to be passed over, and a message says so.
    """
    event = EVENTS[hook.event]
    if answer.curt:
        answer = _name_hook(hook, answer)
    if not answer.problem:
        if not answer.reason and answer.verdict in (Verdict.DENY, Verdict.ASK):
            answer = replace(answer, reason=f"the hook {hook.name!r} says so")
        return replace(answer, source=hook.place) if answer.verdict is not None else answer
    text = f"the {event.name} hook {hook.name!r} {answer.problem}"
    answer = replace(answer, problem=text, messages=(*answer.messages, f"{text} ({hook.place})"))
    if event.has_say:
        return replace(_raise_doubt(hook, answer, strict=strict), source=hook.place)
    guards = event.name == "UserPromptSubmit" and answer.fatal and isinstance(hook.handler, CallbackHook)
    if event.blocks and answer.block is None and (hook.blocks_on_failure or guards):
        return replace(answer, block=text)
    return answer


def _name_hook(hook: Hook, answer: HookResult) -> HookResult:
    """A bare exit code 2, with who said it: standard error alone does not tell people what to look at."""
    who = f"the {hook.event} hook {short_repr(hook.name)} objects: "
    if answer.block is not None:
        return replace(answer, block=who + answer.block, curt=False)
    return replace(answer, reason=who + answer.reason, curt=False)


def _raise_doubt(hook: Hook, answer: HookResult, *, strict: bool) -> HookResult:
    if hook.blocks_on_failure:
        least = Verdict.DENY
    elif answer.fatal or (strict and hook.source.family == ".handrail"):
        least = Verdict.ASK
    else:
        return answer
    if answer.verdict is not None and CARE[answer.verdict] >= CARE[least]:
        return answer
    return replace(answer, verdict=least, reason=answer.problem)


def fold_results(answers: Sequence[HookResult]) -> HookResult:
    """All answers to one event as one. They are given in the order of configuration."""
    spoken = [answer for answer in answers if answer != NOTHING]
    if len(spoken) < 2:
        return next(iter((*spoken, *answers)), NOTHING)  # only if nobody was asked it is NOTHING itself
    rewriting = [answer for answer in spoken if answer.updated_input is not None]
    last = rewriting[-1] if rewriting else None
    deciding = [answer for answer in spoken if _counts(answer, last)]
    winner = max(deciding, key=lambda answer: (CARE[answer.verdict or Verdict.ALLOW], answer.defers), default=NOTHING)
    blocks = [answer.block for answer in spoken if answer.block is not None]
    outputs = [answer.updated_output for answer in spoken if answer.updated_output is not None]
    return HookResult(
        verdict=winner.verdict,
        reason=winner.reason,
        updated_input=last.updated_input if last else None,
        updated_output=outputs[-1] if outputs else None,
        block="\n".join(blocks) if blocks else None,
        stop=next((answer.stop for answer in spoken if answer.stop is not None), None),
        context=tuple(text for answer in spoken for text in answer.context),
        messages=(*(text for answer in spoken for text in answer.messages), *_conflict_messages(rewriting)),
        permission=_permission([answer.permission for answer in spoken if answer.permission]),
        title=next((answer.title for answer in reversed(spoken) if answer.title), ""),
        first="\n".join(answer.first for answer in spoken if answer.first),
        problem="; ".join(answer.problem for answer in spoken if answer.problem),
        fatal=any(answer.fatal for answer in spoken),
        defers=winner.defers,
        source=winner.source,
    )


def _counts(answer: HookResult, last: HookResult | None) -> bool:
    """Whether a verdict is about the input that would run."""
    return answer.verdict is not None and (answer.verdict is not Verdict.ALLOW or last is None or answer is last)


def _conflict_messages(rewriting: Sequence[HookResult]) -> tuple[str, ...]:
    if all(answer.updated_input == rewriting[-1].updated_input for answer in rewriting):
        return ()
    return (f"{len(rewriting)} hooks rewrote the input differently; the last one in the settings counts",)


def _permission(given: Sequence[Allow | Deny]) -> Allow | Deny | None:
    """A no wins over every yes; of several yeses the last counts."""
    denied = [answer for answer in given if isinstance(answer, Deny)]
    if denied:
        return replace(denied[0], interrupt=any(answer.interrupt for answer in denied))
    return given[-1] if given else None


def opinion_of(answer: HookResult) -> Opinion | None:
    """What the hooks think of a call: the one place where an answer becomes an opinion."""
    if answer.verdict is None:
        return None
    return Opinion(STRENGTHS[answer.verdict], answer.verdict, "hooks", answer.reason or "a hook says so", answer.source)
