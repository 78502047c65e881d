"""The form of a server's question, as a person fills it in: fields with choices, and what was typed as values."""

import math
import re
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from handrail.mcp.host import Elicitation, choices, field_problem
from handrail.mcp.messages import shown_line
from handrail.records import record
from handrail.tools.cards import FormChoice, FormField

MAX_LABEL, MAX_CHOICES = 200, 100
WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")
SECRET_WORDS = frozenset("password passwd passphrase passcode secret token credential cvv otp".split())  # noqa: SIM905
SECRET_PAIRS = frozenset(("api key", "private key", "access key", "card number", "credit card", "pin code"))
YES, NO = "yes", "no"

Typed = Mapping[str, str | Sequence[str]]
"""What was chosen or typed, by the text of the field."""


@record
class FilledIn:
    """The values of a form, and what is wrong with others, each by the name of its field."""

    values: Mapping[str, Any]
    problems: Mapping[str, str]


def form_fields(question: Elicitation, problems: Mapping[str, str]) -> dict[str, FormField]:
    """The fields of a form by their names, each with a text of its own; after a wrong answer only those to correct."""
    fields: dict[str, FormField] = {}
    for number, (name, field) in enumerate(question.fields.items(), 1):
        if problems and name not in problems:
            continue
        default = f" (left open: {_default(field)})" if "default" in field else ""
        about = field.get("description")
        more = f": {shown_line(about, MAX_LABEL)}" if isinstance(about, str) and about else ""
        problem = f" - it {problems[name]}" if problems else ""
        text = f"For the MCP server {question.server}, {number} of {len(question.fields)}, {label(name, field)}{more}"
        fields[name] = FormField(
            f"{text}{default}{problem}",
            choices=_form_choices(field),
            several=field.get("type") == "array",
        )
    return fields


def _default(field: Mapping[str, Any]) -> str:
    value = field["default"]
    return {True: YES, False: NO}[value] if isinstance(value, bool) else shown_line(str(value), MAX_LABEL)


def label(name: str, field: Mapping[str, Any]) -> str:
    """The name of a field for people: a title could hide what is asked for, so the name stands beside it."""
    title = field.get("title")
    shown = shown_line(name, MAX_LABEL)
    return f"{shown_line(title, MAX_LABEL)} ({shown})" if isinstance(title, str) and title else shown


def _form_choices(field: Mapping[str, Any]) -> tuple[FormChoice, ...]:
    listed = (YES, NO) if field.get("type") == "boolean" else choices(field)[:MAX_CHOICES]
    return tuple(FormChoice(shown_line(each, MAX_LABEL)) for each in listed)


def read_form(question: Elicitation, fields: Mapping[str, FormField], typed: Typed) -> FilledIn:
    """The values that were typed for fields; those left open are missing, which is a problem where they are needed."""
    values: dict[str, Any] = {}
    problems: dict[str, str] = {}
    required = question.schema.get("required")
    for name, shown in fields.items():
        field, said = question.fields[name], typed.get(shown.question)
        if said is None or said in ("", []):
            if isinstance(required, list) and name in required and "default" not in field:
                problems[name] = "is needed"
            continue
        values[name] = _value(field, said)
        if why := field_problem(field, values[name]):
            problems[name] = why
    return FilledIn({name: value for name, value in values.items() if name not in problems}, problems)


def _value(field: Mapping[str, Any], said: str | Sequence[str]) -> Any:
    """What was typed as a value of the field's type; as it is if it is none."""
    known = {shown_line(each, MAX_LABEL): each for each in choices(field)}
    if field.get("type") == "array":
        return [known.get(each, each) for each in ([said] if isinstance(said, str) else said)]
    text = said if isinstance(said, str) else ", ".join(said)
    try:
        match field.get("type"):
            case "integer":
                return int(text)
            case "number" if math.isfinite(number := float(text)):
                return number
            case "boolean":
                return {"yes": True, "y": True, "true": True, "no": False, "n": False, "false": False}[text.lower()]
    except (ValueError, KeyError):
        return text
    return known.get(text, text)


def secret_fields(question: Elicitation) -> tuple[str, ...]:
    """The fields that look as if they asked for a password or a key, which servers must not ask for in a form."""
    return tuple(label(name, field) for name, field in question.fields.items() if _is_secret(name, field))


def _is_secret(name: str, field: Mapping[str, Any]) -> bool:
    if field.get("type") not in (None, "string") or choices(field):
        return False
    texts = (name, field.get("title"), field.get("description"), field.get("format"))
    words = [word.lower() for text in texts if isinstance(text, str) for word in WORD.findall(text)]
    pairs = {" ".join(pair) for pair in pairwise(words)}
    return bool(SECRET_WORDS.intersection(word.removesuffix("s") for word in words) or SECRET_PAIRS & pairs)
