"""A model that gives every agent answers of its own, in whatever order they ask."""

from collections.abc import AsyncGenerator, Mapping, Sequence
from typing import Any

from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import UserMessage
from handrail.conversation.stream import StreamEvent, Usage, UsageUpdate
from handrail.testing.model import ScriptedModel, Step


class AgentsModel:
    """Answers by the first prompt of each conversation, `answers[prompt]`; every answer costs the same tokens."""

    def __init__(self, answers: Mapping[str, Sequence[Sequence[Step]]], *, contains: bool = False) -> None:
        """`contains`: the first line of a first prompt counts, because more was added to it."""
        self._contains = contains
        self._scripts = {prompt: ScriptedModel(steps) for prompt, steps in answers.items()}

    def stream(self, request: Any) -> AsyncGenerator[StreamEvent, None]:
        return self._stream(request)

    async def _stream(self, request: Any) -> AsyncGenerator[StreamEvent, None]:
        prompt = first_prompt(request)
        script = self._scripts[prompt.partition("\n")[0] if self._contains else prompt]
        async for event in script.stream(request):
            if type(event).__name__ == "MessageEnd":
                yield UsageUpdate(Usage(input_tokens=10, output_tokens=5))
            yield event

    def requests(self, prompt: str) -> list[Any]:
        """The requests of one agent."""
        return self._scripts[prompt].requests

    def texts(self, prompt: str, at: int = -1) -> str:
        """All that the user's side says in one request of an agent."""
        return user_text(self._scripts[prompt].requests[at])


def first_prompt(request: Any) -> str:
    """The first words of the user in a conversation."""
    said = next(each for each in request.history.messages if isinstance(each, UserMessage))
    return "".join(block.text for block in said.content if isinstance(block, Text))


def user_text(request: Any) -> str:
    """All texts and results of the user's side."""
    blocks = [block for message in request.history.messages for block in message.content]
    return "\n".join(block.text for block in blocks if isinstance(block, ToolResult | Text))
