"""Questions about calls, as the terminal asks them: the whole call, why, how risky, and every way to answer."""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Protocol

from handrail.cli.ask import permission_question
from handrail.conversation.visible import visible
from handrail.lazy import lazy
from handrail.tools.cards import Card, FormField
from handrail.tools.permission import Deny
from handrail.tui.interactive.blocks import body_lines
from handrail.tui.interactive.dialog import DialogChoice, DialogQuestion, DialogReply
from handrail.tui.interactive.paint import Theme, paint
from handrail.tui.text import clip, wrap

if TYPE_CHECKING:
    from handrail.dispatch.approval import choices, question_text
    from handrail.dispatch.approval.question import ApprovalAnswer, Question
    from handrail.tui.interactive import markdown
else:
    choices = lazy("handrail.dispatch.approval.choices")
    markdown = lazy("handrail.tui.interactive.markdown")
    question_text = lazy("handrail.dispatch.approval.question_text")

COMMAND = "command"
"""The name of an input that is a line of the shell."""
OPTION, OTHER, DONE = "option ", "other", "done"
NO_DRAFTS: Mapping[str, str] = {}


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
    ) -> None:
        self._asker = asker
        self._card_of = card_of
        self._mark = mark

    async def ask(self, question: "Question") -> "ApprovalAnswer":
        """The person's answer."""
        self._mark(question.use.id, True)
        problem, drafts = "", dict[str, str]()
        try:
            if question.form:
                return await self._fill_in(question)
            while True:
                asked = call_question(question, self._card_of(question.use.id), self._asker.theme, problem, drafts)
                reply = await self._asker.ask(asked)
                answer = typed_answer(question, reply)
                if not isinstance(answer, str):
                    return answer
                problem = answer
                if reply is not None:
                    drafts[reply.value] = reply.text
        finally:
            self._mark(question.use.id, False)

    async def _fill_in(self, question: "Question") -> "ApprovalAnswer":
        """The answers to the questions of a form; leaving one of them is a no."""
        answers: dict[str, str | list[str]] = {}
        for field in question.form:
            chosen = await self._choose(field)
            if chosen is None:
                return Deny(interrupt=True)
            if chosen:
                answers[field.question] = chosen if field.several else chosen[0]
        return question.filled_in(answers)

    async def _choose(self, field: FormField) -> list[str] | None:
        """What the person answers to one question; None = it was left."""
        asked = field_question(field, self._asker.theme)
        typed: list[str] = []
        while (reply := await self._asker.ask(asked)) is not None:
            if reply.value == OTHER and reply.text.strip():
                typed.append(reply.text.strip())
            if reply.value != OTHER or not field.several:
                marked = (reply.value,) if reply.value.startswith(OPTION) else reply.marked
                return [*(field.choices[int(each.removeprefix(OPTION))].label for each in marked), *typed]
            # it is on the screen already, so the next key counts at once
            asked = replace(field_question(field, self._asker.theme, typed), marked=reply.marked, hasty=True)
        return None

    def update(self, question: "Question") -> None:
        """What automatic checks have said since is shown above the question."""
        if question.note:
            self._asker.say(f"{question.tool}: {question.note}")


def typed_answer(question: "Question", reply: DialogReply | None) -> "ApprovalAnswer | str":
    """What a choice means; a text says why the edited text cannot be used. Leaving the question stops the run."""
    if reply is None or (reply.value == choices.DENY and not reply.text.strip()):
        return question.plain_no()
    return choices.answer_of(question, reply.value, reply.text)


def call_question(
    question: "Question", card: Card | None, theme: Theme, problem: str = "", drafts: Mapping[str, str] = NO_DRAFTS
) -> DialogQuestion:
    """The question about a call with all its answers; `drafts`: what was written into them before, by their values."""
    common = permission_question(question)
    offered = tuple(
        DialogChoice(
            each.value,
            ": ".join(filter(None, (each.label, each.detail))),
            edit=drafts.get(each.value, each.edit),
            edits_on_tab=each.value == choices.ALWAYS,
            takes_words=each.value == choices.DENY,
            word={choices.ALLOW: "yes", choices.STOP: "no"}.get(each.value, ""),
        )
        for each in choices.answer_choices(question)
    )

    def body(width: int, rows: int) -> Sequence[str]:
        about = [*_why(question, width, theme)]
        if problem:
            about.append(paint(clip(f"  {problem}", width), theme.bad))
        return [*_call_lines(question, card, width, max(rows - len(about), 3), theme), *about]

    return DialogQuestion(common.title, offered, body)


def field_question(field: FormField, theme: Theme, typed: Sequence[str] = ()) -> DialogQuestion:
    """One question of a form; with `several`, choices are marked, and answers in own words stand beside them."""
    offered = [
        DialogChoice(f"{OPTION}{number}", visible(each.label), visible(each.description), toggles=field.several)
        for number, each in enumerate(field.choices)
    ]
    offered.append(DialogChoice(OTHER, "Another answer", edit="", takes_words=True))
    done = "Done" if field.several else "Leave it open"
    offered.append(DialogChoice(DONE, ": ".join(filter(None, (done, visible(", ".join(typed)))))))

    def body(width: int, rows: int) -> Sequence[str]:
        shown = [each for each in field.choices if each.preview]
        texts = [f"{visible(each.label)}:\n{visible(each.preview)}" for each in shown]
        lines = [paint(clip(row, width), theme.dim) for text in texts for row in wrap(f"  {text}", width, "    ")]
        return lines[:rows]

    title = ": ".join(filter(None, (visible(field.header), visible(field.question))))
    return DialogQuestion(title, tuple(offered), body, selected=len(offered) - 1 if typed else 0)


def _visible_card(card: Card) -> Card:
    return replace(card, body=visible(card.body))


def _call_lines(question: "Question", card: Card | None, width: int, rows: int, theme: Theme) -> list[str]:
    """The whole call: a diff as such, all else value by value."""
    lines: list[str] = []
    if question.document is not None:
        lines = [clip(f"  {visible(question.document.line)}", width)]
        lines += body_lines(_visible_card(question.document), width, theme, most=max(rows - 1, 3))
    elif card is not None and card.body_kind == "diff" and card.body:
        drawn = body_lines(_visible_card(card), width, theme, most=max(rows - 1, 3), numbered=False)
        lines = [clip(f"  {visible(card.line)}", width), *drawn]
    else:
        for name, value in question.input.items():
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)
            if name == COMMAND and theme.has_colour:
                lines += _highlight(visible(text), width, theme)
                continue
            shown = wrap(visible(f"{name}: {text}"), max(width - 2, 10), "  ")
            lines += [clip(f"  {row}", width) for row in shown]
    if len(lines) > rows:
        more = f"  (+{len(lines) - rows + 1} more lines, Ctrl+O shows them)"
        lines = [*lines[: rows - 1], paint(clip(more, width), theme.warning)]
    return lines


def _highlight(command: str, width: int, theme: Theme) -> list[str]:
    """A command line in the colours of the shell, beside its name."""
    head = f"  {COMMAND}: "
    rows = markdown.code_lines(command, "bash", max(width - len(head), 10), theme)
    return [f"{head if not at else ' ' * len(head)}{row}" for at, row in enumerate(rows)]


def _why(question: "Question", width: int, theme: Theme) -> list[str]:
    rows = [f"risk: {question_text.risk_text(question)}", f"why: {question.reason}"]
    rows += [f"  {each}" for each in question_text.opinion_texts(question)]
    if question.note:
        rows.append(question.note)
    return [paint(clip(row, width), theme.dim) for text in rows for row in wrap(f"  {visible(text)}", width, "    ")]
