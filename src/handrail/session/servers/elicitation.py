"""Questions of MCP servers to the person: hooks may answer, then those who answer questions about calls."""

from collections.abc import Callable, Mapping
from typing import Any

from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.question import PERSON, Handler, Question
from handrail.errors import HandrailError
from handrail.hooks.runner import Hooks
from handrail.mcp.host import CANCELLED, Elicitation, ElicitationAnswer
from handrail.permissions.risk import Level, Risk
from handrail.session.servers.elicitation_form import form_fields, label, read_form, secret_fields
from handrail.tools.cards import FormField
from handrail.tools.context import RunContext
from handrail.tools.mcp_names import server_name
from handrail.tools.permission import Allow, Deny

GOES_TO_SERVER = "the answer goes to the server"
MAX_TRIES = 3
"""How often a person is asked to correct a form."""


class Elicitor:
    """
    Answers the questions of servers.

    With no hook and no one to ask, the answer is that the question was cancelled. After a yes, a person fills in the
    form. For a program a yes means the values that the form has by itself, unless it gives others as `content` of the
    changed input.
    """

    def __init__(self, hooks: Hooks, handler: Handler | None, run: Callable[[], RunContext]) -> None:
        self._hooks = hooks
        self._handler = handler
        self._run = run
        self._number = 0

    async def elicit(self, question: Elicitation) -> ElicitationAnswer:
        """The answer to a question of a server."""
        fields = _fields(question)
        answer = await self._ask_hooks("Elicitation", fields)
        if answer is None:
            try:
                answer = await self._ask_person(question, fields)
            except HandrailError:
                answer = CANCELLED
        said = {"action": answer.action, "content": answer.content}
        return await self._ask_hooks("ElicitationResult", {**fields, **said}) or answer

    async def _ask_hooks(self, event: str, fields: Mapping[str, Any]) -> ElicitationAnswer | None:
        if not self._hooks.wants(event):
            return None
        result = await self._hooks.fire(event, dict(fields), self._run())
        if result.block is not None or result.stop is not None:
            return ElicitationAnswer("decline")
        match result.updated_output:
            case {"action": "accept" | "decline" | "cancel" as action, "content": content}:
                return ElicitationAnswer(action, content)
            case _:
                return None

    async def _ask_person(self, question: Elicitation, fields: Mapping[str, Any]) -> ElicitationAnswer:
        if self._handler is None:
            return CANCELLED
        self._number += 1
        number = f"mcp-elicitation-{self._number}"
        match await self._handler.ask(_question(question, number, fields)):
            case Allow(updated_input=changed):
                content = changed.get("content") if isinstance(changed, Mapping) else None
                if isinstance(content, Mapping):
                    return ElicitationAnswer("accept", content)
                if question.fields and self._handler.who == PERSON:
                    return await self._fill_in(self._handler, question, number)
                return ElicitationAnswer("accept", {})
            case Deny():
                return ElicitationAnswer("decline")
            case _:
                return CANCELLED

    async def _fill_in(self, handler: Handler, question: Elicitation, number: str) -> ElicitationAnswer:
        """What a person writes into a form; what does not fit is asked for again."""
        values: dict[str, Any] = {}
        problems: Mapping[str, str] = {}
        for _ in range(MAX_TRIES):
            fields = form_fields(question, problems)
            answer = await handler.ask(_question(question, number, _fields(question), tuple(fields.values())))
            match answer:
                case Allow(updated_input={"answers": Mapping() as typed}):
                    filled = read_form(question, fields, typed)
                case _:
                    return ElicitationAnswer("decline")
            values.update(filled.values)
            problems = filled.problems
            if not problems:
                return ElicitationAnswer("accept", values)
        return CANCELLED


def _fields(question: Elicitation) -> dict[str, Any]:
    """What hooks are told."""
    beside = {"url": question.url} if question.mode == "url" else {"requested_schema": question.schema}
    number = {"elicitation_id": question.id} if question.id else {}
    return {
        "mcp_server_name": question.server,
        "message": question.message,
        "mode": question.mode,
        **beside,
        **number,
    }


def _question(
    question: Elicitation, number: str, fields: Mapping[str, Any], form: tuple[FormField, ...] = ()
) -> Question:
    names = ", ".join(label(name, field) for name, field in question.fields.items())
    wanted = f"visit {question.url}" if question.mode == "url" else f"answer: {names or 'yes or no'}"
    return Question(
        number,
        ToolUse(number, f"mcp__{server_name(question.server)}__elicitation", dict(fields)),
        summary=f"The MCP server {question.server} asks you to {wanted}",
        reason=question.message,
        risk=_risk(question),
        name=f"The MCP server {question.server!r}, which has a question,",
        description=question.message,
        form=form,
    )


def _risk(question: Elicitation) -> Risk:
    if secrets := secret_fields(question):
        asked = f"it seems to ask for a secret ({', '.join(secrets)}), which no server may do in a form"
        return Risk(Level.HIGH, (GOES_TO_SERVER, asked))
    return Risk(Level.MEDIUM, (GOES_TO_SERVER,))
