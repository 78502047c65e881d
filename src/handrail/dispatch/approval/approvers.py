"""Asking about a call: hooks, a classifier and a handler race."""

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
from handrail.dispatch.gate import CallRequest, Evidence
from handrail.permissions.case import Case
from handrail.permissions.layers import winner
from handrail.records import record
from handrail.tools.permission import Allow, Decision, Strength

AnswerOrDecision: TypeAlias = ApprovalAnswer | Decision
"""An answer, or what the rules say after they were changed."""

AUTOMATIC = frozenset(("hooks", "classifier"))
MAX_CLASSIFICATIONS = 256


@record
class PendingApproval:
    """A call that waits for an answer: what it is, what was decided, what is asked, and the one answer it gets."""

    request: CallRequest
    evidence: Evidence
    case: Case
    decision: Decision
    question: Question
    once: ResolveOnce[AnswerOrDecision]
    rules: Callable[[], Awaitable[Decision]]
    """The policy's own answer, as soon as a change of it gives one."""


class Approvers:
    """Those who can be asked."""

    def __init__(self, handler: Handler | None, hooks: PermissionHooks | None, classifier: Classifier | None) -> None:
        self._handler = handler
        self._hooks = hooks
        self._classifier = classifier
        self._classifications: OrderedDict[str, Classification] = OrderedDict()

    async def ask(self, pending: PendingApproval) -> None:
        """Ask until there is an answer; without one, nobody had any."""
        handler = self._handler
        racers = self._automatic(pending)
        if handler is None:
            await race(pending.once, racers, watcher=pending.rules)
            return
        if self._hooks is not None:
            self._hooks.about_to_ask(pending.request, pending.decision.reason)
        racers[handler.who] = partial(handler.ask, pending.question)
        await race(pending.once, racers, watcher=pending.rules, must_answer=handler.who)

    def _automatic(self, pending: PendingApproval) -> dict[str, Racer[AnswerOrDecision]]:
        racers: dict[str, Racer[AnswerOrDecision]] = {}
        if self._hooks is not None:
            racers["hooks"] = partial(self._ask_hooks, self._hooks, pending)
        if self._classifier is None or pending.case.policy.mode != "auto" or not is_left_open(pending.decision):
            return racers
        if text := classifier_text(pending.request):
            racers["classifier"] = partial(self._ask_classifier, self._classifier, text, pending.question)
        return racers

    async def _ask_hooks(self, hooks: PermissionHooks, pending: PendingApproval) -> ApprovalAnswer | None:
        answer = await hooks.permission_request(pending.request, pending.question.suggestions)
        return None if isinstance(answer, Allow) and needs_person(pending.request, pending.decision) else answer

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
        """Why the classifier said yes to a call, and which classifier that was."""
        classification = self._classifications.get(classifier_text(request))
        return classification.reason if classification else "", self._classifier.name if self._classifier else ""


def classifier_text(request: CallRequest) -> str:
    """What a classifier judges: data in one line, so that nothing in it can pass for words of ours."""
    text = request.tool.classifier_text(request.args)
    return json.dumps({"tool": request.tool.name, "call": text, "folder": str(request.ctx.cwd)}) if text else ""


def needs_person(request: CallRequest, decision: Decision) -> bool:
    """What no automatic yes may answer: a critical path, and a tool whose answer comes from a person."""
    return request.tool.requires_user_interaction or winner(decision).strength is Strength.CRITICAL_PATH


def is_left_open(decision: Decision) -> bool:
    """Nobody but a person has been named yet: all that a classifier may turn into a yes."""
    return winner(decision).strength < Strength.CLASSIFIER
