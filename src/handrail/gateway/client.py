"""
The client of the call that runs: a tool, a prompt or a resource may ask it, and tell it something.

    @tool
    async def book(day: str) -> str:
        answer = await current_client().elicit("How many seats?", {"seats": {"type": "integer"}}, key="seats")

A client of 2026-07-28 is asked by interrupting the call: it gets the questions, and repeats the call with the answers.
The function goes on where it was, so that nothing is done twice.
"""

from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from typing import Any, Literal, Protocol, TypeAlias

from handrail.errors import HandrailError, MissingCapabilityError, ToolError
from handrail.gateway.protocol import LEVELS
from handrail.mcp.host import CANCELLED, ElicitationAnswer
from handrail.records import record

CAPABILITY_OF = {"elicitation/create": "elicitation", "sampling/createMessage": "sampling", "roots/list": "roots"}
Level: TypeAlias = Literal["debug", "info", "notice", "warning", "error", "critical", "alert", "emergency"]


@record
class ClientQuestion:
    """What a client is asked: a method of the client, and its parameters."""

    method: str
    params: Mapping[str, Any]


def elicitation(message: str, fields: Mapping[str, Any], required: Sequence[str] | None = None) -> ClientQuestion:
    """A question to the person: a form with these fields, each a flat JSON Schema. All are required unless named."""
    schema = {"type": "object", "properties": dict(fields), "required": list(fields if required is None else required)}
    return ClientQuestion("elicitation/create", {"message": message, "requestedSchema": schema})


def sampling(prompt: str, *, max_tokens: int = 1000, system_prompt: str = "") -> ClientQuestion:
    """A request to the client's model."""
    message = {"role": "user", "content": {"type": "text", "text": prompt}}
    extra = {"systemPrompt": system_prompt} if system_prompt else {}
    return ClientQuestion("sampling/createMessage", {"messages": [message], "maxTokens": max_tokens, **extra})


ROOTS = ClientQuestion("roots/list", {})


class ClientLink(Protocol):
    """The way back to a client while one of its requests is worked on."""

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client says that it can do."""
        ...

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something about the request."""
        ...

    async def ask(self, questions: Mapping[str, ClientQuestion]) -> Mapping[str, Mapping[str, Any]]:
        """Its answers, each under the key of its question; ToolError if there are none."""
        ...


class McpClient:
    """The client of the call that runs."""

    def __init__(self, link: ClientLink, name: str = "", level: str = "") -> None:
        self._link = link
        self._level = level
        self._number = 0
        self.name = name
        """Its name by its token; empty if there are no tokens."""
        self.lacks = ""
        """A capability that was needed and that it does not have."""

    def offers(self, method: str) -> bool:
        """Whether it can be asked: `elicitation/create`, `sampling/createMessage` or `roots/list`."""
        return isinstance(self._link.capabilities.get(CAPABILITY_OF.get(method, "")), Mapping)

    @property
    def has_forms(self) -> bool:
        """Whether it can put a form to a person; some can only send people to an address."""
        offered = self._link.capabilities.get("elicitation")
        return isinstance(offered, Mapping) and (not offered or "form" in offered)

    async def ask(self, questions: Mapping[str, ClientQuestion]) -> Mapping[str, Mapping[str, Any]]:
        """
        Ask several questions at once; the answers have the keys of their questions.

        Raises:
            MissingCapabilityError: the client cannot be asked one of them.
            ToolError: it gave no answer.
        """
        for question in questions.values():
            if not self.offers(question.method):
                self.lacks = CAPABILITY_OF.get(question.method, question.method)
                raise MissingCapabilityError(
                    f"The client does not offer {self.lacks!r}, which this call needs. Use a client that does."
                )
        return await self._link.ask(questions)

    async def elicit(self, message: str, fields: Mapping[str, Any], *, key: str = "") -> ElicitationAnswer:
        """Ask the person to fill in a form."""
        return elicitation_answer(await self._ask_one(elicitation(message, fields), key))

    async def sample(self, prompt: str, *, max_tokens: int = 1000, system_prompt: str = "", key: str = "") -> str:
        """Ask the client's model; the text of its answer."""
        answer = await self._ask_one(sampling(prompt, max_tokens=max_tokens, system_prompt=system_prompt), key)
        return sampled_text(answer)

    async def roots(self, *, key: str = "") -> tuple[Mapping[str, Any], ...]:
        """The folders that the client works in, each with its `uri`."""
        listed = (await self._ask_one(ROOTS, key)).get("roots")
        return tuple(each for each in (listed if isinstance(listed, list) else ()) if isinstance(each, Mapping))

    def log(self, level: Level, data: Any, *, logger: str = "") -> None:
        """Tell the client what happens, if it wants to know of this level."""
        if self._level and LEVELS.index(level) >= LEVELS.index(self._level):
            named = {"logger": logger} if logger else {}
            self._link.notify("notifications/message", {"level": level, "data": data, **named})

    def notify(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification that belongs to the running request."""
        self._link.notify(method, params)

    async def _ask_one(self, question: ClientQuestion, key: str) -> Mapping[str, Any]:
        self._number += 1
        key = key or f"question_{self._number}"
        return (await self.ask({key: question}))[key]


def elicitation_answer(answer: Mapping[str, Any]) -> ElicitationAnswer:
    """What the person did with a form."""
    match answer:
        case {"action": "accept", "content": Mapping() as content}:
            return ElicitationAnswer("accept", content)
        case {"action": "accept" | "decline" | "cancel" as action}:
            return ElicitationAnswer(action, {} if action == "accept" else None)
        case _:
            return CANCELLED


def sampled_text(answer: Mapping[str, Any]) -> str:
    """The text of a model's answer."""
    content = answer.get("content")
    parts = content if isinstance(content, list) else [content]
    return "\n".join(part["text"] for part in parts if isinstance(part, Mapping) and isinstance(part.get("text"), str))


def is_answer(question: ClientQuestion, value: object) -> bool:
    """Whether a value can be the answer to a question."""
    match question.method, value:
        case "elicitation/create", {"action": "accept" | "decline" | "cancel", **rest}:
            return isinstance(rest.get("content", {}), Mapping)
        case "sampling/createMessage", {"content": Mapping() | list()}:
            return True
        case "roots/list", {"roots": list()}:
            return True
        case _:
            return False


_current: ContextVar[McpClient | None] = ContextVar("handrail_mcp_client", default=None)


def current_client() -> McpClient:
    """The client whose call is running; HandrailError outside a call of a client."""
    found = _current.get()
    if found is None:
        raise HandrailError("There is no MCP client here. Call it in a tool, prompt or resource of an McpServer.")
    return found


def use_client(client: McpClient) -> None:
    """Make it the current client of this task, and of those that it starts."""
    _current.set(client)


def no_answer(why: str) -> ToolError:
    """The error for a question without an answer."""
    return ToolError(f"The client gave no answer: {why}.")
