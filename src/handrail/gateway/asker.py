"""Puts questions about calls, and those of servers behind us, to the client that made the call."""

import secrets
from collections.abc import Mapping
from typing import Any

from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.errors import ToolError
from handrail.gateway.client import ClientQuestion, McpClient, elicitation, elicitation_answer
from handrail.mcp.messages import shown_text
from handrail.records import record
from handrail.session.overlapping_calls import OverlappingCalls
from handrail.tools.output import json_text
from handrail.tools.permission import Allow, Deny

ALLOW, DENY = "allow", "deny"
ELICITATION = "__elicitation"
MAX_INPUT = 2_000


@record
class ClientCall:
    """A call of a client: the name of its tool, and the calls that it runs among."""

    tool: str
    client: McpClient
    calls: OverlappingCalls


class ClientAsker:
    """
    Asks the client of a call whether the call may run. Without a client that can ask a person, there is no answer.

    `calls` are those that clients wait for, by their ids.
    """

    who = "client"

    def __init__(self) -> None:
        self.calls: dict[str, ClientCall] = {}

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        """The person's answer; None if the client cannot ask one, or the question belongs to no call of a client."""
        name = question.use.name
        if name.endswith(ELICITATION) and question.use.id not in self.calls:
            return await self._pass_on(name.removesuffix(ELICITATION), question.use.input)
        call = self.calls.get(question.use.id)
        if call is None or not call.client.has_forms:
            return None
        # the key cannot be guessed, so that no answer can be there before the question
        key = f"permission_{secrets.token_hex(8)}"
        try:
            answer = elicitation_answer((await call.client.ask({key: permission_form(question)}))[key])
        except ToolError:
            return None
        if answer.action == "accept" and (answer.content or {}).get("decision") == ALLOW:
            return Allow()
        return Deny("The user did not allow it.")

    def update(self, question: Question) -> None:
        """A client that was asked is not told of changes."""

    async def _pass_on(self, server: str, fields: Mapping[str, Any]) -> ApprovalAnswer | None:
        """A question of a server goes to the client of its only running call; if there are several, to none."""
        clients = [
            call.client
            for number, call in self.calls.items()
            if call.tool.startswith(f"{server}__") and number in call.calls.in_progress
        ]
        if len(clients) != 1 or not clients[0].has_forms or fields.get("mode") != "form":
            return None
        said = "\n> ".join(str(fields.get("message")).splitlines())  # so that no line looks like one of ours
        params = {"message": f"A question of the server {server.removeprefix('mcp__')}:\n> {said}"}
        form = ClientQuestion("elicitation/create", {**params, "requestedSchema": fields.get("requested_schema")})
        key = f"server_{secrets.token_hex(8)}"
        try:
            answer = elicitation_answer((await clients[0].ask({key: form}))[key])
        except ToolError:
            return None
        if answer.action == "accept":
            return Allow({"content": dict(answer.content or {})})
        return Deny("") if answer.action == "decline" else None


def permission_form(question: Question) -> ClientQuestion:
    """The question about a call as a form: a choice whose default is no."""
    given = shown_text(json_text(question.input))
    more = f" [{len(given) - MAX_INPUT:,} more characters]" if len(given) > MAX_INPUT else ""
    lines = [
        f"May {shown_text(question.name or question.tool)} run? {shown_text(question.summary)}",
        f"Input: {given[:MAX_INPUT]}{more}",
        f"Why you are asked: {question.reason}.",
        f"Risk: {question.risk.level.name.lower()}" + "".join(f"; {why}" for why in question.risk.reasons),
    ]
    decision = {"type": "string", "title": "Decision", "enum": [DENY, ALLOW], "default": DENY}
    return elicitation("\n".join(lines), {"decision": decision})
