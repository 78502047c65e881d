"""The parts of a call as they come: its input, its decision, its stages, its result."""

from collections.abc import Sequence
from typing import Any

from handrail.view.model import CallData, DecisionData, StageSeconds

MAX_VALUE = 2_000
AGENT_MARKS = ("[agentId: ", "agentId: ")


def shorten(value: Any) -> Any:
    """A value of an input, cut if it is a long text."""
    if isinstance(value, str) and len(value) > MAX_VALUE:
        return f"{value[:MAX_VALUE]} [{len(value) - MAX_VALUE} more characters]"
    return value


def set_decision(call: CallData, decision: DecisionData, subject: str) -> None:
    """Set the decision about a call; what the log says it is about counts where its input says nothing."""
    call["decision"] = decision
    call["subject"] = call["subject"] or subject
    if (stages := call["stages"]) is not None:
        stages["waited"] = min(decision["waiting"], stages["decided"])


def set_stages(call: CallData, micros: Sequence[int]) -> None:
    """Set the stages of a call that has ended. Its end is when it was written, so the others are counted back."""
    queued, validated, decided, ran, fitted = micros
    decision = call["decision"]
    stages: StageSeconds = {
        "queued": queued / 1e6,
        "validated": validated / 1e6,
        "decided": decided / 1e6,
        "waited": min(decision["waiting"], decided / 1e6) if decision else 0.0,
        "ran": ran / 1e6,
        "fitted": fitted / 1e6,
    }
    call["stages"] = stages


def result_text(content: Any) -> str:
    """The text of a result or a message; pictures and documents are named."""
    if isinstance(content, str):
        return content
    parts = []
    for block in content or ():
        if block["type"] == "text":
            parts.append(block["text"])
        elif block["type"] == "tool_reference":
            parts.append(f"[tool {block.get('tool_name')}]")
        else:
            parts.append(f"[{(block.get('source') or {}).get('media_type') or block['type']}]")
    return "\n".join(parts)


def agent_named_in(text: str) -> str:
    """The sub-agent that the result of a call names; empty if it names none."""
    for mark in AGENT_MARKS:
        _, found, rest = text.rpartition(mark)
        if found:
            return rest.split(";")[0].split(".")[0].split("]")[0].strip()
    return ""
