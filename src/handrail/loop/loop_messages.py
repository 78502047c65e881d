"""The messages that the loop itself puts into the conversation."""

from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.loop.state import Why

INTERRUPTIONS = {
    Why.ABORTED_STREAMING: "[The user interrupted the answer.]",
    Why.ABORTED_TOOLS: "[The user interrupted while tools were running.]",
    Why.HOOK_STOPPED: "[A hook stopped the run.]",
    Why.MAX_SECONDS: "[The time for this run was over before it was finished.]",
}

RETRIES = {
    Why.CUT_ANSWER: "Your answer was cut off by the output limit. Go on exactly where it stopped; repeat nothing.",
    Why.EMPTY_ANSWER: "Your answer was empty. Say what you found or did, or go on with the task.",
    Why.UNFIT_ANSWER: "Your answer does not fit the JSON Schema that was asked for: {problem} "
    "Give it again so that it fits: as the input of StructuredOutput if you have that tool, else as nothing but JSON.",
}


def interruption_message(why: Why) -> UserMessage:
    """What the model reads about an interruption when the conversation goes on."""
    return UserMessage((Text(INTERRUPTIONS[why]),))


def retry_message(why: Why, problem: str) -> Attachment | None:
    """What the model is told when it is asked again for this reason."""
    text = RETRIES.get(why)
    return Attachment(why.value, (Text(text.format(problem=problem)),)) if text else None
