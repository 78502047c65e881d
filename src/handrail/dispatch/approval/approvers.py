"""Asks hooks, a classifier and a handler about a call; the first answer counts."""

import asyncio
import json
from collections import OrderedDict
from collections.abc import Awaitable, Callable
from dataclasses import replace
from functools import partial
from typing import TypeAlias

from handrail.dispatch.approval.classifier import Classification, Classifier, ask_classifier
from handrail.dispatch.approval.once import ResolveOnce
from handrail.dispatch.approval.question import ApprovalAnswer, Handler, PermissionHooks, Question
from handrail.dispatch.approval.race import Racer, race
from handrail.errors import InputError
from handrail.permissions.case import Case
from handrail.permissions.facts import Evidence
from handrail.permissions.layers import UNDECLARED, winner
from handrail.records import record
from handrail.tools.permission import Allow, Decision, Deny, Strength
from handrail.tools.request import CallRequest

AnswerOrDecision: TypeAlias = ApprovalAnswer | Decision
"""An answer, or the decision of rules that changed meanwhile."""

ANSWERERS = {
    "person": "the user",
    "hooks": "a hook",
    "callback": "the program that runs this agent",
}
"""Those who answer, as messages name them."""
NO_ANSWERER = "nobody"
QUESTIONS = "AskUserQuestion"
AUTOMATIC = frozenset(("hooks", "classifier"))
MAX_CLASSIFICATIONS = 256


@record
class PendingApproval:
    """A call that waits for an answer."""

    request: CallRequest
    evidence: Evidence
    case: Case
    decision: Decision
    question: Question
    once: ResolveOnce[AnswerOrDecision]
    rules: Callable[[], Awaitable[Decision]]
    """Returns as soon as a policy change decides the call."""


class Approvers:
    """The hooks, the classifier and the handler that can approve a call."""

    def __init__(
        self,
        handler: Handler | None,
        hooks: PermissionHooks | None,
        classifier: Classifier | None,
        agent_patience: float | None = None,
        question_patience: float | None = None,
    ) -> None:
        """
        `agent_patience`: seconds after which a sub-agent's question without an answer is a no.

        `question_patience`: seconds after which the model's own question counts as not answered.
        """
        self._handler = handler
        self._agent_patience = agent_patience
        self._question_patience = question_patience
        self._hooks = hooks
        self._classifier = classifier
        self._classifications: OrderedDict[str, Classification] = OrderedDict()

    async def ask(self, pending: PendingApproval) -> None:
        """Ask all until one answers; without an answer, `once` stays open."""
        handler = self._handler
        racers = self._automatic(pending)
        if handler is None:
            await race(pending.once, racers, watcher=pending.rules, on_failure=_no_answer)
            return
        if pending.question.agent.background:  # no dialog opens for what automatic checks can decide
            await race(pending.once, racers, watcher=pending.rules, on_failure=_no_answer)
            if pending.once.is_resolved:
                return
            racers = {}
        racers[handler.who] = partial(self._ask_handler, handler, pending)
        on_failure = partial(_refuse_for, handler.who)
        await race(pending.once, racers, watcher=pending.rules, on_failure=on_failure)

    async def _ask_handler(self, handler: Handler, pending: PendingApproval) -> ApprovalAnswer | None:
        await pending.request.before_question()
        if self._hooks is not None:
            self._hooks.about_to_ask(pending.request, pending.decision.reason)
        if pending.request.tool.name == QUESTIONS and self._question_patience is not None:
            try:
                async with asyncio.timeout(self._question_patience):
                    return await handler.ask(pending.question)
            except TimeoutError:
                return Allow()  # without answers: the model is told that there was none
        if pending.question.agent.is_main or self._agent_patience is None:
            return await handler.ask(pending.question)
        try:
            async with asyncio.timeout(self._agent_patience):
                return await handler.ask(pending.question)
        except TimeoutError:
            return Deny(f"no answer came within {self._agent_patience:g} seconds")

    def _automatic(self, pending: PendingApproval) -> dict[str, Racer[AnswerOrDecision]]:
        racers: dict[str, Racer[AnswerOrDecision]] = {}
        if self._hooks is not None:
            racers["hooks"] = partial(self._ask_hooks, self._hooks, pending)
        is_left_open = winner(pending.decision).strength < Strength.CLASSIFIER  # no stronger layer has an opinion
        if self._classifier is None or pending.case.policy.mode != "auto" or not is_left_open:
            return racers
        if text := classifier_text(pending.request):
            racers["classifier"] = partial(self._ask_classifier, self._classifier, text, pending.question)
        return racers

    async def _ask_hooks(self, hooks: PermissionHooks, pending: PendingApproval) -> ApprovalAnswer | None:
        answer = await hooks.permission_request(pending.request, pending.question.suggestions)
        is_yes = isinstance(answer, Allow) and needs_person(pending.request, pending.decision, answer)
        return None if is_yes else answer

    async def _ask_classifier(self, classifier: Classifier, text: str, question: Question) -> ApprovalAnswer | None:
        found = self._classifications.get(text) or await ask_classifier(classifier, text)
        if found is not None:
            self._classifications[text] = found
            if len(self._classifications) > MAX_CLASSIFICATIONS:
                self._classifications.popitem(last=False)
            if found.safe:
                return Allow()
        note = f"the classifier did not allow it: {found.reason}" if found else "the classifier had no answer"
        if self._handler is not None:
            self._handler.update(replace(question, note=note))
        return None

    def classification_of(self, request: CallRequest) -> tuple[str, str]:
        """Why the classifier allowed a call, and the classifier's name."""
        classification = self._classifications.get(classifier_text(request))
        return classification.reason if classification else "", self._classifier.name if self._classifier else ""


def _no_answer(_who: str, _error: BaseException) -> None:
    """The failure of a hook or a classifier leaves the question open."""


def _refuse_for(handler: str, who: str, error: BaseException) -> Deny | None:
    """A handler that fails has not said yes, so its failure is a no; that of others leaves the question open."""
    if who != handler:
        return None
    return Deny(f"{ANSWERERS.get(who, who)} was asked and failed ({type(error).__name__}: {error})")


def classifier_text(request: CallRequest) -> str:
    """The text for a classifier: JSON in one line, so that nothing in it can pass for our instructions."""
    text = request.tool.classifier_text(request.args)
    return json.dumps({"tool": request.tool.name, "call": text, "folder": str(request.ctx.cwd)}) if text else ""


def brings_answers(request: CallRequest, answer: Allow) -> bool:
    """Whether the input that comes with a yes holds the answers that the tool asks a person for."""
    if answer.updated_input is None:
        return False
    try:
        return request.tool.is_answered(request.tool.parse(answer.updated_input))
    except InputError:
        return False


def needs_person(request: CallRequest, decision: Decision, yes: Allow) -> bool:
    """
    Whether a hook may not say this yes.

    A critical path, file rules and no declaration, or a tool that needs the user's answers, which do not come with it.
    """
    return (
        (request.tool.requires_user_interaction and not brings_answers(request, yes))
        or winner(decision).strength is Strength.CRITICAL_PATH
        or any(opinion.layer == UNDECLARED for opinion in decision.opinions)
    )
