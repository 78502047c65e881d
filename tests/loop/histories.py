"""Random histories that keep to the rules, for properties."""

import base64

from hypothesis import strategies as st

from handrail.conversation.blocks import Image, ResultBlock, Text, Thinking, ToolReference, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.conversation.request import History

SIZES = st.sampled_from([0, 5, 100, 3_000, 30_000])


@st.composite
def results(draw: st.DrawFn, call_id: str) -> ToolResult:
    kind = draw(st.integers(0, 9))
    parts: tuple[ResultBlock, ...] = (Text(f"{call_id} " + "r" * draw(SIZES)),)
    if kind == 0:
        parts = (ToolReference(draw(st.sampled_from(["A", "B", "C"]))),)
    elif kind == 1:
        parts = (*parts, Image(base64.b64encode(b"picture").decode(), "image/png"))
    elif kind == 2:
        text = f"<persisted-output>\nThe whole text is in /state/{call_id}.txt.\n{'p' * 2_500}\n</persisted-output>"
        parts = (Text(text),)
    return ToolResult(call_id, parts, is_error=draw(st.booleans()))


@st.composite
def histories(draw: st.DrawFn, *, closed: bool = False) -> list[Message]:
    """A conversation up to the moment of a request; `closed`: up to an answer without calls."""
    messages: list[Message] = []
    if draw(st.booleans()):
        messages.append(Attachment("context", (Text("<environment>\nhere\n</environment>"),)))
    number = 0
    for turn in range(draw(st.integers(1, 4))):
        messages.append(UserMessage((Text(f"Prompt {turn} " + "u" * draw(SIZES)),)))
        for _ in range(draw(st.integers(0, 4))):
            ids = [f"call-{number + n}" for n in range(draw(st.integers(1, 3)))]
            number += len(ids)
            calls = (ToolUse(each, "Read", {"p": each}) for each in ids)
            messages.append(AssistantMessage((Thinking("hm"), Text("I look."), *calls)))
            messages.append(UserMessage(tuple(draw(results(each)) for each in ids)))
            if draw(st.integers(0, 3)) == 0:
                messages.append(Attachment(draw(st.sampled_from(["memory", "reminder"])), (Text(f"note {number}"),)))
            if draw(st.integers(0, 5)) == 0:
                messages.append(SystemNote("for people"))
        messages.append(AssistantMessage((Text(f"Answer {turn} " + "a" * draw(SIZES)),)))
    if not closed:
        messages.append(UserMessage((Text("Go on."),)))
    return messages


def is_valid(messages: list[Message] | tuple[Message, ...]) -> bool:
    """History refuses what breaks the pairing of calls and results."""
    return len(History(messages).messages) == len(messages)
