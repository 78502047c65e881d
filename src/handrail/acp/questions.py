"""Questions about calls, put to the person at the editor; their options are the answers that the terminal offers."""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeAlias

from handrail.acp.prompt import fence
from handrail.acp.tool_call import call_fields, card_content, text_content
from handrail.acp.updates import SessionUpdates, call_update
from handrail.conversation.blocks import Json
from handrail.conversation.visible import visible
from handrail.errors import ControlError
from handrail.session.live.question_json import question_json, read_live_answer
from handrail.tools.cards import Card, FormField
from handrail.tools.permission import Allow, Deny

KINDS = {
    "allow": "allow_once",
    "agent": "allow_always",
    "session": "allow_always",
    "always": "allow_always",
    "stop": "reject_once",
    "deny": "reject_once",
}
"""The answers that an editor can give, and how it draws them: there is no way to type a text with one."""
WITHOUT_WORDS = {"deny": "No, and go on without it"}
OPEN = "open"
"""The answer that leaves a question of the model open."""

Ask: TypeAlias = Callable[[str, Json], Awaitable[Json]]
Send: TypeAlias = Callable[[Json], Awaitable[None]]


class EditorQuestions:
    """
    Answers questions of the gate with what the person chooses in the editor. Without an answer, the answer is no.

    `ask` sends a request to the editor, `send` an update; `updates` is set when the session is open.
    """

    who = "person"

    def __init__(self, session_id: str, ask: Ask, send: Send) -> None:
        self._session_id = session_id
        self._ask = ask
        self._send = send
        self.updates: SessionUpdates | None = None

    async def ask(self, question: Any) -> Allow | Deny:
        """The person's answer."""
        assert self.updates is not None
        with self.updates.question(question.use):
            for update in self.updates.announce(question.use):
                await self._send(update)
            answer = await (self._fill_in(question) if question.form else self._choose(question))
        status = "in_progress" if isinstance(answer, Allow) else "failed"
        await self._send(call_update(question.use.id, {"status": status}))
        return answer

    def update(self, question: Any) -> None:
        """A question that the editor shows stays as it is."""

    async def _choose(self, question: Any) -> Allow | Deny:
        shown = question_json(question)
        choices = {each["value"]: each for each in shown["choices"] if each["value"] in KINDS}
        if question.agent.path:
            choices.pop("deny")  # the agent goes on after any no
        options = [_option(value, _label(each), KINDS[value]) for value, each in choices.items()]
        chosen = await self._request(question, {"content": [*_content(question, shown)]}, options)
        if isinstance(chosen, Deny):
            return chosen
        answer = read_live_answer(question, {"digest": shown["digest"], "choice": chosen})
        if chosen == "always":
            answer = question.always()  # the rules themselves: what is shown of them may be cut
        return Deny(answer) if isinstance(answer, str) else answer

    async def _fill_in(self, question: Any) -> Allow | Deny:
        """The answers to the questions of a form, one choice each."""
        answers: dict[str, str | Sequence[str]] = {}
        for field in question.form:
            options = [
                _option(f"option {at}", visible(each.label), "allow_once") for at, each in enumerate(field.choices)
            ]
            options.append(_option(OPEN, "Leave it open", "reject_once"))
            fields = {"title": visible(field.question), "content": [*_field_content(field)]}
            chosen = await self._request(question, fields, options)
            if isinstance(chosen, Deny):
                return chosen
            if chosen != OPEN:
                label = field.choices[int(chosen.removeprefix("option "))].label
                answers[field.question] = [label] if field.several else label
        filled: Allow = question.filled_in(answers)
        return filled

    async def _request(self, question: Any, fields: Json, options: Sequence[Json]) -> str | Deny:
        """The option that the person chooses, or the no that anything else stands for."""
        assert self.updates is not None
        call = {
            **call_fields(question.use, Card(""), question.access, question.cwd),
            "title": visible(self.updates.title(question.use)),
            "status": "pending",
            **fields,
        }
        if question.next_mode:
            call["kind"] = "switch_mode"
        try:
            answer = await self._ask(
                "session/request_permission", {"sessionId": self._session_id, "toolCall": call, "options": options}
            )
        except ControlError as error:
            return Deny(f"the permission request was not answered: {error}")
        match answer.get("outcome"):
            case {"outcome": "selected", "optionId": str(chosen)} if chosen in [each["optionId"] for each in options]:
                return chosen
            case {"outcome": "cancelled"}:
                no: Deny = question.plain_no()
                return no
            case outcome:
                return Deny(f"the editor answered {outcome!r:.200}, which is none of the options")


def _option(value: str, name: str, kind: str) -> Json:
    return {"optionId": value, "name": name, "kind": kind}


def _label(choice: Mapping[str, Any]) -> str:
    name = WITHOUT_WORDS.get(choice["value"], choice["label"])
    return visible(f"{name}: {choice['detail']}" if choice["detail"] else name)


def _content(question: Any, shown: Mapping[str, Any]) -> Iterator[Json]:
    """The whole call, and why it is asked about."""
    if question.document is not None:
        yield text_content(visible(shown["document"]))
    elif question.diff and question.access.writes:
        yield from card_content(Card("", body=visible(question.diff), body_kind="diff"), question.access, question.cwd)
    else:
        yield _fenced_content(f"{name}: {value}" for name, value in shown["input"].items())
    agent = [shown["title"]] if question.agent.path else []
    yield _fenced_content([*agent, f"risk: {shown['risk']}", f"why: {shown['reason']}", *shown["opinions"]])


def _fenced_content(lines: Iterable[str]) -> Json:
    """Lines that a model or a file may have a say in: nothing in them is Markdown, and nothing is hidden."""
    return text_content(fence(visible("\n".join(lines))))


def _field_content(field: FormField) -> Iterator[Json]:
    texts = [": ".join(filter(None, (each.label, each.description))) for each in field.choices]
    yield _fenced_content([*texts, *(f"\n{each.label}:\n{each.preview}" for each in field.choices if each.preview)])
