"""Questions about calls, as the terminal asks them: the whole call, why, how risky, and every way to answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol

from handrail.cli.ask import permission_question
from handrail.conversation.plain import plain
from handrail.permissions.update import rule_update
from handrail.tools.call_report import opinion_text
from handrail.tools.cards import Card, FormField
from handrail.tools.permission import Allow, Deny, Verdict
from handrail.tui.interactive.blocks import body_lines
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip, wrap

if TYPE_CHECKING:
    from handrail.dispatch.approval.question import ApprovalAnswer, Question

UNSEEN = (0xA0, 0xAD, 0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x180E, *range(0x200B, 0x200E), 0x2028, 0x2029)
UNSEEN_TOO = (*range(0x2060, 0x2065), 0x3164, 0xFEFF, 0xFFA0, *range(0xE0000, 0xE0080))
INVISIBLE = {code: f"<U+{code:04X}>" for code in (*UNSEEN, *UNSEEN_TOO)}
OPTION, OTHER, DONE = "option ", "other", "done"
ALLOW, AGENT, SESSION, ALWAYS, DENY, EXPLAIN, EDIT = "allow", "agent", "session", "always", "deny", "explain", "edit"


class Asker(Protocol):
    """The terminal, as far as questions about calls are concerned."""

    theme: Theme

    async def ask(self, question: DialogQuestion) -> DialogReply | None: ...

    def say(self, text: str) -> None: ...


class ConversationHandler:
    """Answers questions of the gate with what the person chooses."""

    who = "person"

    def __init__(
        self,
        asker: Asker,
        card_of: Callable[[str], Card | None],
        mark: Callable[[str, bool], None],
        mode_after_plan: Callable[[], str],
    ) -> None:
        self._asker = asker
        self._card_of = card_of
        self._mark = mark
        self._mode_after_plan = mode_after_plan

    async def ask(self, question: "Question") -> "ApprovalAnswer":
        """The person's answer."""
        self._mark(question.use.id, True)
        problem = ""
        try:
            if question.form:
                return await self._fill_in(question)
            while True:
                ends_plan = question.document is not None and question.mode == "plan"
                mode = self._mode_after_plan() if ends_plan else ""
                asked = call_question(question, self._card_of(question.use.id), self._asker.theme, problem, mode)
                reply = await self._asker.ask(asked)
                answer = answer_of(question, reply)
                if not isinstance(answer, str):
                    return answer
                problem = answer
        finally:
            self._mark(question.use.id, False)

    async def _fill_in(self, question: "Question") -> "ApprovalAnswer":
        """The answers to the questions of a form; leaving one of them is a no."""
        answers: dict[str, str | list[str]] = {}
        for field in question.form:
            chosen: list[str] = []
            row = 0
            while True:
                reply = await self._asker.ask(field_question(field, chosen, self._asker.theme, row))
                if reply is None:
                    return Deny(interrupt=True)
                if reply.value == OTHER and reply.text.strip():
                    chosen.append(reply.text.strip())
                    row = len(field.choices) + 1
                elif reply.value.startswith(OPTION):
                    row = int(reply.value.removeprefix(OPTION))
                    label = field.choices[row].label
                    chosen = [each for each in chosen if each != label] if label in chosen else [*chosen, label]
                if reply.value == DONE or not field.several:
                    break
            if chosen:
                answers[field.question] = chosen if field.several else chosen[0]
        return question.filled_in(answers)

    def update(self, question: "Question") -> None:
        """What automatic checks have said since is shown above the question."""
        if question.note:
            self._asker.say(f"{question.tool}: {question.note}")


def answer_of(question: "Question", reply: DialogReply | None) -> "ApprovalAnswer | str":
    """What a choice means; a text says why the edited text cannot be used."""
    if reply is None:
        return Deny(interrupt=True)
    match reply.value:
        case "allow":
            return Allow()
        case "agent" | "session" as where:
            return Allow(updated_permissions=tuple({**update, "destination": where} for update in question.suggestions))
        case "always":
            return _always(question, reply.text)
        case "explain":
            return Deny(reply.text.strip(), interrupt=not reply.text.strip())
        case "edit":
            return _edit_input(question.input, reply.text)
        case _:
            return Deny(interrupt=True)


def _always(question: "Question", rules: str) -> "ApprovalAnswer":
    before = rule_texts(question)
    if rules.strip() == before:
        return question.always()
    texts = [line.strip() for line in rules.splitlines() if line.strip()]
    destination = str(question.suggestions[0].get("destination", "localSettings"))
    return Allow(updated_permissions=(rule_update(texts, destination),)) if texts else Allow()


def rule_texts(question: "Question") -> str:
    """The rules that "always" would add, one a line."""
    return "\n".join(each.text for each in question.proposals if "rules" in each.update)


def _edit_input(given: Mapping[str, Any], text: str) -> "ApprovalAnswer | str":
    """The call with another input: the text of its only value, or a JSON object."""
    name = _only_text(given)
    if name:
        return Allow(updated_input={**given, name: text})
    try:
        value = json.loads(text)
    except json.JSONDecodeError as error:
        return f"That is not JSON: {error}."
    return Allow(updated_input=value) if isinstance(value, dict) else "That is not a JSON object."


def _only_text(given: Mapping[str, Any]) -> str:
    """The name of the value that is edited as it is: the only text of the input, or its command."""
    texts = [name for name, value in given.items() if isinstance(value, str)]
    return "command" if "command" in texts else texts[0] if len(texts) == len(given) == 1 else ""


def call_question(
    question: "Question", card: Card | None, theme: Theme, problem: str = "", next_mode: str = ""
) -> DialogQuestion:
    """The question about a call with all its answers; `next_mode` is the mode that a yes to a plan leads to."""
    common = permission_question(question)
    name = _only_text(question.input)
    text = str(question.input[name]) if name else json.dumps(question.input, ensure_ascii=False, indent=2, default=repr)
    choices = [DialogChoice(ALLOW, f"Yes, and go on in mode {next_mode}" if next_mode else "Yes, this once")]
    if question.proposals:
        rules = rule_texts(question)
        shown = ", ".join(each.text for each in question.proposals)
        if question.agent.path and rules:
            choices.append(DialogChoice(AGENT, f"Yes, and for this agent: {shown}"))
        everyone = "for all agents in this session" if question.agent.path else "for this session"
        choices.append(DialogChoice(SESSION, f"Yes, and {everyone}: {shown}"))
        if rules:
            where = question.proposals[0].where
            choices.append(DialogChoice(ALWAYS, f"Yes, always: {shown} (in {where})", edit=rules, edits_on_tab=True))
    choices += [
        DialogChoice(DENY, "No, and stop here"),
        DialogChoice(EXPLAIN, "No, and say what to do instead", edit=""),
    ]
    if question.document is None:
        choices.append(DialogChoice(EDIT, "Edit the call first", edit=text))

    def body(width: int, rows: int) -> Sequence[str]:
        about = [*_why(question, width, theme)]
        if problem:
            about.append(paint(clip(f"  {problem}", width), theme.bad))
        return [*_call_lines(question, card, width, max(rows - len(about), 3), theme), *about]

    return DialogQuestion(common.title, tuple(choices), body)


def field_question(field: FormField, chosen: Sequence[str], theme: Theme, selected: int = 0) -> DialogQuestion:
    """One question of a form; with `several`, it is asked again, with the cursor where it was, until it is done."""
    choices = []
    for number, each in enumerate(field.choices):
        mark = f"[{'x' if each.label in chosen else ' '}] " if field.several else ""
        choices.append(DialogChoice(f"{OPTION}{number}", mark + visible(each.label), visible(each.description)))
    choices.append(DialogChoice(OTHER, "Another answer", edit=""))
    typed = ", ".join(each for each in chosen if each not in {choice.label for choice in field.choices})
    done = ": ".join(filter(None, ("Done", visible(typed))))
    choices.append(DialogChoice(DONE, done if chosen else "Leave it open"))

    def body(width: int, rows: int) -> Sequence[str]:
        shown = [each for each in field.choices if each.preview]
        texts = [f"{visible(each.label)}:\n{visible(each.preview)}" for each in shown]
        lines = [paint(clip(row, width), theme.dim) for text in texts for row in wrap(f"  {text}", width, "    ")]
        return lines[:rows]

    title = ": ".join(filter(None, (visible(field.header), visible(field.question))))
    return DialogQuestion(title, tuple(choices), body, selected=selected)


def visible(text: str) -> str:
    """The text with characters that cannot be seen made visible."""
    return plain(text.translate(INVISIBLE))


def _call_lines(question: "Question", card: Card | None, width: int, rows: int, theme: Theme) -> list[str]:
    """The whole call: a diff as such, all else value by value."""
    lines: list[str] = []
    if question.document is not None:
        lines = [clip(f"  {visible(question.document.line)}", width)]
        lines += body_lines(question.document, width, theme, most=max(rows - 1, 3))
    elif card is not None and card.body_kind == "diff" and card.body:
        lines = [clip(f"  {visible(card.line)}", width), *body_lines(card, width, theme, most=max(rows - 1, 3))]
    else:
        for name, value in question.input.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
            shown = wrap(visible(f"{name}: {text}"), max(width - 2, 10), "  ")
            lines += [clip(f"  {row}", width) for row in shown]
    if len(lines) > rows:
        more = f"  (+{len(lines) - rows + 1} more lines; choose to edit the call to see them all)"
        lines = [*lines[: rows - 1], paint(clip(more, width), theme.warning)]
    return lines


def _why(question: "Question", width: int, theme: Theme) -> list[str]:
    risk = ": ".join(filter(None, (question.risk.level.value, "; ".join(question.risk.reasons))))
    rows = [f"risk: {risk}", f"why: {question.reason}"]
    others = [each for each in question.opinions if each.source or each.reason != question.reason]
    rows += [f"  {opinion_text(each)}" for each in others if each.verdict is not Verdict.ALLOW]
    if question.note:
        rows.append(question.note)
    return [paint(clip(row, width), theme.dim) for text in rows for row in wrap(f"  {visible(text)}", width, "    ")]
