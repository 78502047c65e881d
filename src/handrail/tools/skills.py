"""Loading skills: what the tool for it needs of the session."""

from typing import Protocol

from handrail.conversation.messages import Message
from handrail.records import record
from handrail.tools.context import ToolContext


@record
class LoadedSkill:
    """What loading a skill gave: a text for the result, and messages that follow it."""

    text: str
    messages: tuple[Message, ...] = ()
    is_error: bool = False


class Skills(Protocol):
    """The skills of a session."""

    def refuse(self, name: str, call: str) -> str:
        """Why the call with this id cannot have this skill; empty if it can."""
        ...

    def question(self, name: str, call: str) -> str:
        """What a person should know before the skill is loaded; empty = there is nothing to ask."""
        ...

    async def load(self, name: str, words: str, ctx: ToolContext) -> LoadedSkill: ...
