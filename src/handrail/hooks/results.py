"""
Turns the exit code and output of a hook into its result, by pure functions.

Output that is not understood is a problem, never "no opinion": a guard that refuses in the wrong words has not agreed.
What a problem leads to depends on the event and on the family of the hook (`handrail.hooks.fold`).
"""

import json
from collections.abc import Mapping
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
"""The exit codes of a shell for a program that it cannot run or find."""

COMMON = frozenset(
    (
        "async", "asyncTimeout", "continue", "decision", "hookSpecificOutput", "reason", "stopReason", "suppressOutput",
        "systemMessage", "terminalSequence",
    )
)  # fmt: skip
Kind: TypeAlias = type | tuple[type, ...]
NAMES: Mapping[Kind, str] = {str: "text", bool: "true or false", dict: "object", list: "list", (int, float): "number"}
MAX_UNKNOWN = 100
EVERY_KEY = sorted(COMMON.union({"hookEventName"}, *(event.output_keys for event in EVENTS.values())))


@record
class HookOutput:
    """What a hook sent back. `cut`: there was more text than is read; `garbled`: some of it is not UTF-8."""

    code: int = 0
    text: str = ""
    errors: str = ""
    cut: bool = False
    garbled: bool = False


def output_from_bytes(data: bytes, *, code: int = 0, errors: str = "", cut: bool = False) -> HookOutput:
    """The output that these bytes hold."""
    try:
        return HookOutput(code, data.decode(), errors, cut)
    except UnicodeDecodeError:
        return HookOutput(code, data.decode("utf-8", "replace"), errors, cut, garbled=True)


@record
class HookResult:
    """The result of one hook or of all of an event. `block` and `stop` are reasons; `fatal`: it did not do its work."""

    verdict: Verdict | None = None
    reason: str = ""
    updated_input: Json | None = None
    updated_output: Any = None
    block: str | None = None
    stop: str | None = None
    context: tuple[str, ...] = ()
    messages: tuple[str, ...] = ()
    permission: Allow | Deny | None = None
    """An answer to the permission question, in place of the user."""
    defers: bool = False
    """It asks, and would defer the call until the session is resumed."""
    title: str = ""
    """A title for the session."""
    first: str = ""
    """The first prompt of the session, as if the user had written it."""
    problem: str = ""
    fatal: bool = False
    unattributed: bool = False
    """It refuses by its exit code alone, so that the reason does not name the hook yet."""
    source: str = ""
    """Where the deciding hook is configured."""


NOTHING = HookResult()


class _InvalidError(HandrailError):
    """Output that breaks the contract."""


def failure(problem: str) -> HookResult:
    """The result of a hook that could not do its work."""
    return HookResult(problem=problem, fatal=True)


def result_of(event: HookEvent, output: HookOutput) -> HookResult:
    """The result that an output means."""
    text = output.text.strip("\ufeff \t\r\n")
    try:
        result = _read_text(event, text, output)
    except _InvalidError as error:
        if output.code == BLOCKED:
            return _block(event, NOTHING, output.errors)
        return failure(f"gave an output that is not valid: {error}")
    if output.code == BLOCKED:
        return _block(event, result, output.errors)
    if output.code == 0:
        return result
    errors = output.errors.strip()
    what = f"was killed by signal {-output.code}" if output.code < 0 else f"ended with exit code {output.code}"
    if output.code in NOT_STARTED:
        what = f"could not be started ({what})"
    problem = f"{what}: {errors}" if errors else what
    lost = result == NOTHING and (output.code < 0 or output.code in NOT_STARTED)
    return replace(result, problem=problem, fatal=lost)


def _read_text(event: HookEvent, text: str, output: HookOutput) -> HookResult:
    if event.decides or text.startswith("{"):
        if output.cut:
            raise _InvalidError("it is too long to be read")
        if output.garbled:
            raise _InvalidError("it is not UTF-8")  # a refusal in another encoding must not pass for noise
    if text.startswith("{"):
        try:
            value = value_of(text)
        except ValueError as error:
            raise _InvalidError(f"it is not JSON ({error})") from None
        assert isinstance(value, dict)
        return read_output(event, value)
    if event.decides and any(f'"{key}"' in text for key in ("permissionDecision", "decision", "continue")):
        raise _InvalidError("there is text before its JSON")
    return HookResult(context=(text,)) if event.speaks_to_model and text else NOTHING


def value_of(data: str | bytes) -> object:
    """The value of a JSON text; ValueError if it is not JSON, too deep, or has numbers that JSON cannot express."""
    value: object = from_json(data, allow_inf_nan=False)
    json.dumps(value, allow_nan=False)  # 1e999 becomes infinity when it is read
    return value


def _block(event: HookEvent, result: HookResult, errors: str) -> HookResult:
    """The result of exit code 2, which blocks whatever the output says; a reason to block in the output counts."""
    reason = result.reason if result.verdict is Verdict.DENY else result.block
    text, unattributed = reason or errors.strip() or "it gave no reason", not reason
    if event.decides:
        return replace(result, verdict=Verdict.DENY, reason=text, updated_input=None, unattributed=unattributed)
    if event.blocks:
        return replace(result, block=text, unattributed=unattributed)
    return replace(result, permission=None, problem=f"ended with exit code {BLOCKED}: {text}")


def read_output(event: HookEvent, value: Json) -> HookResult:
    """The result in the object that a command prints or a callback returns; HandrailError if it breaks the contract."""
    specific = _get(value, "hookSpecificOutput", dict, {})
    _refuse_misspelt(value, COMMON, event)
    if specific:
        named = specific.get("hookEventName")
        if named != event.name:
            raise _InvalidError(f"hookEventName is {named!r}, and the event is {event.name!r}")
        _refuse_misspelt(specific, event.output_keys | {"hookEventName"}, event)
    _get(value, "async", bool, False)  # it means "no opinion now"; a decision beside it counts
    _get(value, "asyncTimeout", (int, float), 0)
    reason = _get(value, "reason", str, "")
    decision = value.get("decision")
    if decision not in (None, "approve", "block"):
        raise _InvalidError(f"decision is {decision!r}, not 'approve' or 'block'")
    message, context = _get(value, "systemMessage", str, ""), _get(specific, "additionalContext", str, "")
    unused = [f"a hook's {name!r} has no effect here" for name in IDLE if specific.get(name)]
    result = HookResult(
        stop=None if _get(value, "continue", bool, True) else _get(value, "stopReason", str, ""),
        messages=(*((message,) if message else ()), *unused),
        context=tuple(filter(None, (context, _get(specific, "worktreePath", str, "")))),
        block=(reason or "it gave no reason") if event.blocks and decision == "block" else None,
    )
    return _of_event(event, result, decision, reason, specific)


def _of_event(event: HookEvent, result: HookResult, decision: str | None, reason: str, specific: Json) -> HookResult:
    match event.name:
        case "PreToolUse":
            verdict, why = _verdict(decision, reason, specific)
            changed = _get(specific, "updatedInput", dict, None)
            defers = specific.get("permissionDecision") == "defer"
            return replace(result, verdict=verdict, reason=why, updated_input=changed, defers=defers)
        case "PostToolUse":
            changed = specific.get("updatedToolOutput", specific.get("updatedMCPToolOutput"))
            return replace(result, updated_output=changed)
        case "PermissionRequest":
            asked = _get(specific, "decision", dict, None)
            return replace(result, permission=None if asked is None else _permission(asked))
        case "SessionStart" | "UserPromptSubmit":
            first = _get(specific, "initialUserMessage", str, "")
            return replace(result, title=_get(specific, "sessionTitle", str, ""), first=first)
        case "Elicitation" | "ElicitationResult" if (action := specific.get("action")) is not None:
            if action not in ("accept", "decline", "cancel"):
                raise _InvalidError(f"action is {action!r}, not 'accept', 'decline' or 'cancel'")
            return replace(result, updated_output={"action": action, "content": _get(specific, "content", dict, None)})
        case "PermissionDenied" if _get(specific, "retry", bool, False):
            return replace(result, context=(*result.context, RETRY))
        case _:
            return result


RETRY = "A hook says that the call that was refused may be tried again."
IDLE = ("watchPaths", "reloadSkills")
CARE = {Verdict.ALLOW: 0, Verdict.ASK: 1, Verdict.DENY: 2}
DECISIONS = {"allow": Verdict.ALLOW, "ask": Verdict.ASK, "deny": Verdict.DENY, "defer": Verdict.ASK}
LEGACY = {"approve": Verdict.ALLOW, "block": Verdict.DENY}


def _verdict(legacy: str | None, reason: str, specific: Json) -> tuple[Verdict | None, str]:
    """The verdict of the older and the newer key; if both are set, the more careful one counts."""
    decision = specific.get("permissionDecision")
    why = _get(specific, "permissionDecisionReason", str, "")
    verdicts: list[tuple[Verdict, str]] = []
    if decision is not None:
        if decision not in DECISIONS:
            raise _InvalidError(f"permissionDecision is {decision!r}, not one of {', '.join(DECISIONS)}")
        if decision == "defer":
            why = f"a hook would defer it ({why})" if why else "a hook would defer it"
        verdicts.append((DECISIONS[decision], why or reason))
    if legacy is not None:
        verdicts.append((LEGACY[legacy], reason or why))
    return max(verdicts, key=lambda each: CARE[each[0]], default=(None, ""))


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
        raise _InvalidError(f"{name} is {found!r:.60}, not a {NAMES[kind]}")
    return found


def _refuse_misspelt(value: Json, known: frozenset[str], event: HookEvent) -> None:
    """Refuse unknown keys that look like a known one: `{"permissionDecison": "deny"}` must not count as no opinion."""
    unknown = [name for name in value if name not in known]
    if len(unknown) > MAX_UNKNOWN:
        raise _InvalidError(f"it has {len(unknown)} unknown keys (event {event.name})")
    for name in unknown:
        near = get_close_matches(name, EVERY_KEY, n=1, cutoff=0.8)
        if near:
            hint = "is in the wrong place" if near[0] == name else f"is not known; did you mean {near[0]!r}?"
            raise _InvalidError(f"{name!r} {hint} (event {event.name})")
