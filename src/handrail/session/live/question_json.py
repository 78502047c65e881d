"""A question as another program shows it to a person, and what the answer means."""

import hashlib
import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

from handrail.dispatch.approval.choices import EDIT, AnswerChoice, answer_choices, answer_of
from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.dispatch.approval.question_text import opinion_texts, question_title, risk_text

MAX_SHOWN = 300_000
CUTS = (50_000, 5_000, 500, 50)
"""How much of each text of a large question is shown, the most that fits."""


def question_json(question: Question, choices: Sequence[AnswerChoice] | None = None) -> dict[str, Any]:
    """
    What a person sees of a question, with the digest of all of it, which an answer has to carry.

    `choices` are the ways to answer, if not all are offered. A call that is too large to be shown is cut, and cannot be
    edited.
    """
    shown: dict[str, Any] = {
        "id": question.id,
        "title": question_title(question),
        "tool": question.tool,
        "input": dict(question.input),
        "summary": question.summary,
        "diff": question.diff,
        "reason": question.reason,
        "opinions": opinion_texts(question),
        "risk": risk_text(question),
        "risk_level": question.risk.level.value,
        "document": question.document.body if question.document else "",
        "note": question.note,
        "cwd": question.cwd,
        "form": [asdict(field) for field in question.form],
        "choices": [asdict(each) for each in (answer_choices(question) if choices is None else choices)],
    }
    text = json.dumps(shown, sort_keys=True, default=str)
    digest = hashlib.sha256(text.encode("utf-8", "surrogatepass")).hexdigest()
    return {**(json.loads(text) if len(text) <= MAX_SHOWN else _cut(shown)), "digest": digest}


def _cut(shown: dict[str, Any]) -> dict[str, Any]:
    shown = {**shown, "choices": [each for each in shown["choices"] if each["value"] != EDIT]}
    for most in CUTS:
        text = json.dumps(_cut_texts(shown, most), default=str)
        if len(text) <= MAX_SHOWN:
            break
    else:
        text = json.dumps({**_cut_texts(shown, most), "input": {"": "too large to be shown"}, "form": []}, default=str)
    found: dict[str, Any] = json.loads(text)
    return found


def _cut_texts(value: Any, most: int) -> Any:
    match value:
        case str() if len(value) > most:
            return f"{value[:most]} [{len(value) - most:,} more characters are not shown]"
        case Mapping():
            return {str(name)[:most]: _cut_texts(each, most) for name, each in value.items()}
        case list() | tuple():
            return [_cut_texts(each, most) for each in value]
        case _:
            return value


def read_live_answer(
    question: Question, said: Mapping[str, Any], choices: Sequence[AnswerChoice] | None = None
) -> ApprovalAnswer | str:
    """What an answer means; a text says why it does not count."""
    shown = question_json(question, choices)
    if said.get("digest") != shown["digest"]:
        return "The question has changed since it was shown. Look at it again."
    value, person = said.get("choice"), str(said.get("person") or "")[:100]
    if question.form and value == "form":
        answer = _filled_in(question, said.get("answers"))
    elif value == "deny" or (not question.form and value in [each["value"] for each in shown["choices"]]):
        answer = answer_of(question, str(value), str(said.get("text") or ""))
    else:
        answer = f"{value!r} is not an answer to this question."
    return answer if isinstance(answer, str) else replace(answer, by=person)


def _filled_in(question: Question, answers: Any) -> ApprovalAnswer | str:
    known = {field.question for field in question.form}
    if not isinstance(answers, dict) or not answers.keys() <= known:
        return "The answers are not those to the questions of the form."
    if not all(isinstance(each, str | list) for each in answers.values()):
        return "An answer is a text, or a list of texts."
    return question.filled_in(answers)
