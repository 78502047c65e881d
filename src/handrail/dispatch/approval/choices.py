"""The ways to answer a question about a call, the same wherever a person is asked, and what each of them means."""

import json
from collections.abc import Mapping
from typing import Any

from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.permissions.update import rule_update
from handrail.records import record
from handrail.tools.permission import Allow, Deny

ALLOW, AGENT, SESSION, ALWAYS, STOP, DENY, EDIT = "allow", "agent", "session", "always", "stop", "deny", "edit"


@record
class AnswerChoice:
    """One way to answer. With `edit`, the person may change this text, and the answer brings what became of it."""

    value: str
    label: str
    detail: str = ""
    edit: str | None = None


def answer_choices(question: Question) -> tuple[AnswerChoice, ...]:
    """Every way to answer."""
    mode = question.next_mode
    choices = [AnswerChoice(ALLOW, f"Yes, and go on in mode {mode}" if mode else "Yes, this once")]
    if question.proposals:
        rules = rule_texts(question)
        shown = ", ".join(each.text for each in question.proposals)
        if question.agent.path and rules:
            choices.append(AnswerChoice(AGENT, "Yes, and for this agent", shown))
        everyone = "for all agents in this session" if question.agent.path else "for this session"
        choices.append(AnswerChoice(SESSION, f"Yes, and {everyone}", shown))
        if rules:
            choices.append(AnswerChoice(ALWAYS, "Yes, always", f"{shown} (in {question.proposals[0].where})", rules))
    no = "No, and the agent goes on" if question.agent.path else "No, and stop here"
    choices += [AnswerChoice(STOP, no), AnswerChoice(DENY, "No, and say what to do instead", edit="")]
    if question.document is None:
        choices.append(AnswerChoice(EDIT, "Edit the call first", edit=input_text(question.input)))
    return tuple(choices)


def answer_of(question: Question, value: str, text: str) -> ApprovalAnswer | str:
    """What a choice with its text means; a text says why it cannot be used."""
    match value:
        case "allow":
            return Allow()
        case "agent" | "session":
            return question.allow_for(value)
        case "always":
            return _always(question, text)
        case "deny":
            return Deny(text.strip())
        case "stop":
            return question.plain_no()
        case "edit":
            return _parse_edit(question.input, text)
        case _:
            return f"{value!r} is not an answer to this question."


def rule_texts(question: Question) -> str:
    """The rules that "always" would add, one a line."""
    return "\n".join(each.text for each in question.proposals if "rules" in each.update)


def _always(question: Question, rules: str) -> ApprovalAnswer | str:
    if rules.strip() == rule_texts(question):
        return question.always()
    texts = [line.strip() for line in rules.splitlines() if line.strip()]
    for each in texts:
        found = parse_rule(each, Behaviour.ALLOW)
        if isinstance(found, RuleProblem):
            return f"{each!r} is not a rule: {found.message}"
    destination = str(question.suggestions[0].get("destination", "localSettings"))
    return Allow(updated_permissions=(rule_update(texts, destination),)) if texts else Allow()


def input_text(given: Mapping[str, Any]) -> str:
    """The input as a person edits it: the text of its only value, or JSON."""
    name = _only_text(given)
    return str(given[name]) if name else json.dumps(given, ensure_ascii=False, indent=2, default=repr)


def _parse_edit(given: Mapping[str, Any], text: str) -> ApprovalAnswer | str:
    """The call with another input."""
    if name := _only_text(given):
        return Allow(updated_input={**given, name: text})
    try:
        value = json.loads(text)
    except (ValueError, RecursionError) as error:
        return f"That is not JSON: {error}."
    return Allow(updated_input=value) if isinstance(value, dict) else "That is not a JSON object."


def _only_text(given: Mapping[str, Any]) -> str:
    """The name of the value that is edited as it is: the only text of the input, or its command."""
    texts = [name for name, value in given.items() if isinstance(value, str)]
    return "command" if "command" in texts else texts[0] if len(texts) == len(given) == 1 else ""
