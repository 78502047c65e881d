"""
What a hook answered: exit code and output, read strictly and as a pure function.

An answer that is not understood is a problem, never "no opinion": a guard that says no in the wrong words has not said
yes. What a problem leads to depends on the event and on who wrote the hook (`handrail.hooks.fold`).
"""

import json
from collections.abc import Iterator, Mapping
from dataclasses import replace
from difflib import get_close_matches
from typing import Any, TypeAlias

from pydantic_core import from_json

from handrail.conversation.blocks import Json
from handrail.errors import HandrailError
from handrail.hooks.events import EVENTS, HookEvent
from handrail.records import record
from handrail.tools.permission import Allow, Deny, Verdict

BLOCKED = 2
NOT_STARTED = frozenset((126, 127))
"""What a shell answers for a program that it cannot run or find."""

COMMON = frozenset(
    (
        "async", "asyncTimeout", "continue", "decision", "hookSpecificOutput", "reason", "stopReason", "suppressOutput",
        "systemMessage", "terminalSequence",
    )
)  # fmt: skip
Kind: TypeAlias = type | tuple[type, ...]
NAMES: Mapping[Kind, str] = {str: "text", bool: "true or false", dict: "object", list: "list", (int, float): "number"}
MAX_UNKNOWN = 100
EVERY_KEY = sorted(COMMON.union({"hookEventName"}, *(event.says for event in EVENTS.values())))


@record
class HookOutput:
    """
    What came back from a hook, whatever its form.

    `cut`: there was more text than is read. `garbled`: some of it is not UTF-8.
    """

    code: int = 0
    text: str = ""
    errors: str = ""
    cut: bool = False
    garbled: bool = False


def output_from_bytes(data: bytes, *, code: int = 0, errors: str = "", cut: bool = False) -> HookOutput:
    """What came back, from its bytes."""
    try:
        return HookOutput(code, data.decode(), errors, cut)
    except UnicodeDecodeError:
        return HookOutput(code, data.decode("utf-8", "replace"), errors, cut, garbled=True)


@record
class HookResult:
    """
    What one hook, or all hooks of an event together, have to say.

    `block` and `stop` are the reasons, None = neither. `fatal` marks a problem for which the hook did not do its work.
    """

    verdict: Verdict | None = None
    reason: str = ""
    updated_input: Json | None = None
    updated_output: Any = None
    block: str | None = None
    stop: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    permission: Allow | Deny | None = None
    """An answer in the place of a person's."""
    defers: bool = False
    """It asks, but would rather have the call put off until the session is resumed."""
    title: str = ""
    """What the session shall be called."""
    first: str = ""
    """Words to begin a session with, as if the user had said them."""
    problem: str = ""
    fatal: bool = False
    curt: bool = False
    """It says no by its exit code alone: whoever passes that on says who said it."""
    source: str = ""
    """Where the hook that decided is written."""


NOTHING = HookResult()


class _InvalidError(HandrailError):
    """Output that does not keep to the contract."""


def failure(problem: str) -> HookResult:
    """A hook that could not do its work."""
    return HookResult(problem=problem, fatal=True)


def result_of(event: HookEvent, reply: HookOutput) -> HookResult:
    """The meaning of a reply."""
    text = reply.text.strip("\ufeff \t\r\n")
    try:
        answer = _read_text(event, text, reply)
    except _InvalidError as error:
        if reply.code == BLOCKED:
            return _block(event, NOTHING, reply.errors)
        return failure(f"gave an output that is not valid: {error}")
    if reply.code == BLOCKED:
        return _block(event, answer, reply.errors)
    if reply.code == 0:
        return answer
    errors = reply.errors.strip()
    what = f"was killed by signal {-reply.code}" if reply.code < 0 else f"ended with exit code {reply.code}"
    if reply.code in NOT_STARTED:
        what = f"could not be started ({what})"
    problem = f"{what}: {errors}" if errors else what
    lost = answer == NOTHING and (reply.code < 0 or reply.code in NOT_STARTED)
    return replace(answer, problem=problem, fatal=lost)


def _read_text(event: HookEvent, text: str, reply: HookOutput) -> HookResult:
    if event.has_say or text.startswith("{"):
        if reply.cut:
            raise _InvalidError("it is too long to be read")
        if reply.garbled:
            raise _InvalidError("it is not UTF-8")  # a no in another encoding must not pass for noise
    if text.startswith("{"):
        return read_output(event, _parse_object(text))
    if event.has_say and any(f'"{key}"' in text for key in ("permissionDecision", "decision", "continue")):
        raise _InvalidError("there is text before its JSON")
    return HookResult(context=(text,)) if event.talks and text else NOTHING


def value_of(data: str | bytes) -> object:
    """
    The value that JSON stands for. All of it can be written as JSON again.

    Raises:
        ValueError: it is not JSON, or too deep, or has numbers that JSON has no words for.
    """
    value: object = from_json(data, allow_inf_nan=False)
    json.dumps(value, allow_nan=False)  # 1e999 was a number until somebody read it
    return value


def _parse_object(text: str) -> Json:
    try:
        value = value_of(text)
    except ValueError as error:
        raise _InvalidError(f"it is not JSON ({error})") from None
    assert isinstance(value, dict)
    return value


def _block(event: HookEvent, answer: HookResult, errors: str) -> HookResult:
    """Exit code 2 blocks, whatever the output says; its reason counts if it blocks as well."""
    said = answer.reason if answer.verdict is Verdict.DENY else answer.block
    text, curt = said or errors.strip() or "it gave no reason", not said
    if event.has_say:
        return replace(answer, verdict=Verdict.DENY, reason=text, updated_input=None, curt=curt)
    if event.blocks:
        return replace(answer, block=text, curt=curt)
    return replace(answer, permission=None, problem=f"ended with exit code {BLOCKED}: {text}")


def read_output(event: HookEvent, value: Json) -> HookResult:
    """
    The output object of a hook, as a command prints it and a callback returns it.

    Raises:
        HandrailError: it does not keep to the contract.
    """
    specific = _get(value, "hookSpecificOutput", dict, {})
    _refuse_slips(value, COMMON, event)
    if specific:
        named = specific.get("hookEventName")
        if named != event.name:
            raise _InvalidError(f"hookEventName is {named!r}, and the event is {event.name!r}")
        _refuse_slips(specific, event.says | {"hookEventName"}, event)
    _get(value, "async", bool, False)  # "I say nothing now" is an answer; what is decided beside it counts
    _get(value, "asyncTimeout", (int, float), 0)
    reason = _get(value, "reason", str, "")
    decision = value.get("decision")
    if decision not in (None, "approve", "block"):
        raise _InvalidError(f"decision is {decision!r}, not 'approve' or 'block'")
    message, context = _get(value, "systemMessage", str, ""), _get(specific, "additionalContext", str, "")
    answer = HookResult(
        stop=None if _get(value, "continue", bool, True) else _get(value, "stopReason", str, ""),
        messages=(*((message,) if message else ()), *_idle(specific)),
        context=(context,) if context else (),
        block=(reason or "it gave no reason") if event.blocks and decision == "block" else None,
    )
    return _of_event(event, answer, decision, reason, specific)


def _of_event(event: HookEvent, answer: HookResult, decision: str | None, reason: str, specific: Json) -> HookResult:
    match event.name:
        case "PreToolUse":
            verdict, why = _verdict(decision, reason, specific)
            changed = _get(specific, "updatedInput", dict, None)
            defers = specific.get("permissionDecision") == "defer"
            return replace(answer, verdict=verdict, reason=why, updated_input=changed, defers=defers)
        case "PostToolUse":
            changed = specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput"))
            return replace(answer, updated_output=changed)
        case "PermissionRequest":
            asked = _get(specific, "decision", dict, None)
            return replace(answer, permission=None if asked is None else _permission(asked))
        case "SessionStart" | "UserPromptSubmit":
            first = _get(specific, "initialUserMessage", str, "")
            return replace(answer, title=_get(specific, "sessionTitle", str, ""), first=first)
        case "PermissionDenied" if _get(specific, "retry", bool, False):
            return replace(answer, context=(*answer.context, RETRY))
        case _:
            return answer


RETRY = "A hook says that the call that was refused may be tried again."
IDLE = ("watchPaths", "reloadSkills")


def _idle(specific: Json) -> Iterator[str]:
    """What is understood and has no effect here is said, not passed over."""
    for name in IDLE:
        if specific.get(name):
            yield f"a hook's {name!r} has no effect here"


CARE = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
DECISIONS = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY, "defer": Verdict.ASK}
LEGACY = {"approve": Verdict.ALLOW, "block": Verdict.DENY}


def _verdict(legacy: str | None, reason: str, specific: Json) -> tuple[Verdict | None, str]:
    """The older and the newer way to decide; if both are used, the careful one counts."""
    decision = specific.get("permissionDecision")
    why = _get(specific, "permissionDecisionReason", str, "")
    said: list[tuple[Verdict, str]] = []
    if decision is not None:
        if decision not in DECISIONS:
            raise _InvalidError(f"permissionDecision is {decision!r}, not one of {', '.join(DECISIONS)}")
        if decision == "defer":
            why = f"a hook would defer it ({why})" if why else "a hook would defer it"
        said.append((DECISIONS[decision], why or reason))
    if legacy is not None:
        said.append((LEGACY[legacy], reason or why))
    return max(said, key=lambda each: CARE[each[0]], default=(None, ""))


def _permission(asked: Json) -> Allow | Deny:
    behaviour = asked.get("behavior")
    if behaviour not in ("allow", "deny"):
        raise _InvalidError(f"behavior is {behaviour!r}, not 'allow' or 'deny'")
    updates = _get(asked, "updatedPermissions", list, [])
    if not all(isinstance(update, dict) for update in updates):
        raise _InvalidError("updatedPermissions is not a list of objects")
    if behaviour == "allow":
        return Allow(_get(asked, "updatedInput", dict, None), tuple(updates))
    return Deny(_get(asked, "message", str, ""), _get(asked, "interrupt", bool, False))


def _get(value: Mapping[str, Any], name: str, kind: Kind, default: Any) -> Any:
    found = value.get(name)
    if found is None:
        return default
    if not isinstance(found, kind):
        raise _InvalidError(f"{name} is {found!r:.60}, and a {NAMES[kind]} is due")
    return found


def _refuse_slips(value: Json, known: frozenset[str], event: HookEvent) -> None:
    """
    Unknown keys are left to the future, unless they look like a known one in the wrong place or spelling.

    `{"permissionDecison": "deny"}` must not count as no opinion.
    """
    unknown = [name for name in value if name not in known]
    if len(unknown) > MAX_UNKNOWN:
        raise _InvalidError(f"it has {len(unknown)} unknown words (event {event.name})")
    for name in unknown:
        near = get_close_matches(name, EVERY_KEY, n=1, cutoff=0.8)
        if near:
            hint = "is in the wrong place" if near[0] == name else f"is not known; did you mean {near[0]!r}?"
            raise _InvalidError(f"{name!r} {hint} (event {event.name})")
