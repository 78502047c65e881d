"""What a server may ask of us: the working folders, and questions to the person. It may not ask for a model."""

import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, Literal, TypeAlias

from handrail.errors import McpError
from handrail.mcp.messages import shown_line, shown_text, shown_value
from handrail.records import record

MAX_MESSAGE = 4_000
MAX_FIELDS = 50
PLAIN_ADDRESS = re.compile(r"(?i:https?)://[^\s/?#@\\\x00-\x20\x7f-\U0010ffff]+(?:[/?#][\x21-\x7e]{0,2000})?")
"""An address of the web whose host can be read: no user in front of it, no blanks, only plain characters."""

Action: TypeAlias = Literal["accept", "decline", "cancel"]


@record
class Elicitation:
    """A question of a server to the person: a form of few fields, or an address to visit."""

    server: str
    message: str
    mode: Literal["form", "url"]
    schema: Mapping[str, Any]
    """The fields of the form, as a flat JSON Schema."""
    url: str = ""
    id: str = ""

    @property
    def fields(self) -> Mapping[str, Mapping[str, Any]]:
        """The fields of the form by their names."""
        found = self.schema.get("properties")
        return (
            {name: each for name, each in found.items() if isinstance(each, Mapping)}
            if isinstance(found, Mapping)
            else {}
        )


@record
class ElicitationAnswer:
    """What the person did: answered, refused, or neither."""

    action: Action
    content: Mapping[str, Any] | None = None


CANCELLED = ElicitationAnswer("cancel")
Elicit: TypeAlias = Callable[[Elicitation], Awaitable[ElicitationAnswer]]


@record
class ClientHost:
    """What we offer to servers. Without `elicit` no question reaches a person."""

    roots: Callable[[], tuple[Path, ...]] | None = None
    elicit: Elicit | None = None

    def capabilities(self) -> dict[str, Any]:
        """Our capabilities, as servers are told."""
        offered: dict[str, Any] = {}
        if self.roots is not None:
            offered["roots"] = {}
        if self.elicit is not None:
            offered["elicitation"] = {"form": {}, "url": {}}
        return offered

    def answer(self, server: str, method: str, params: Mapping[str, Any]) -> Awaitable[Mapping[str, Any]] | None:
        """The answer to a question of a server; None if that kind of question is not offered."""
        if method == "roots/list" and self.roots is not None:
            return _roots(self.roots())
        if method == "elicitation/create" and self.elicit is not None:
            return _elicit(self.elicit, parse_elicitation(server, params))
        return None


async def _roots(folders: tuple[Path, ...]) -> Mapping[str, Any]:
    return {"roots": [{"uri": folder.as_uri(), "name": folder.name} for folder in folders]}


async def _elicit(elicit: Elicit, question: Elicitation | None) -> Mapping[str, Any]:
    if question is None:
        raise McpError("The question is not understood: it needs a message, and a form or an address.")
    answer = await elicit(question)
    if answer.action != "accept":
        return {"action": answer.action}
    if question.mode == "url":
        return {"action": "accept"}
    return {"action": "accept", "content": complete_form(question, answer.content or {})}


def parse_elicitation(server: str, params: Mapping[str, Any]) -> Elicitation | None:
    """The question in a request; None if it is not understood."""
    match params:
        case {"mode": "url", "message": str(message), "url": str(url), **rest} if PLAIN_ADDRESS.fullmatch(url):
            number = rest.get("elicitationId")
            number = shown_line(number, MAX_MESSAGE) if isinstance(number, str) else ""
            return Elicitation(server, _short_text(message), "url", {}, url, number)
        case {"message": str(message), "requestedSchema": Mapping() as schema} if params.get("mode", "form") == "form":
            question = Elicitation(server, _short_text(message), "form", shown_value(schema))
            return question if len(question.fields) <= MAX_FIELDS else None
        case _:
            return None


def _short_text(text: str) -> str:
    return shown_text(text)[:MAX_MESSAGE]


def complete_form(question: Elicitation, given: Mapping[str, Any]) -> dict[str, Any]:
    """The values of the form's fields, with its defaults; McpError if one is missing or of the wrong kind."""
    values: dict[str, Any] = {}
    for name, field in question.fields.items():
        if name in given:
            values[name] = given[name]
        elif "default" in field:
            values[name] = field["default"]
    required = question.schema.get("required")
    if missing := [name for name in (required if isinstance(required, list) else ()) if name not in values]:
        raise McpError(f"The answer lacks {', '.join(map(repr, missing))}.")
    for name, value in values.items():
        if why := field_problem(question.fields[name], value):
            raise McpError(f"The answer for {name!r} {why}.")
    return values


def choices(field: Mapping[str, Any]) -> tuple[str, ...]:
    """The values that a field may have; empty if they are not listed."""
    items = field.get("items")
    source = items if field.get("type") == "array" and isinstance(items, Mapping) else field
    match source:
        case {"enum": list(listed)}:
            return tuple(each for each in listed if isinstance(each, str))
        case {"oneOf": list(listed)} | {"anyOf": list(listed)}:
            return tuple(
                each["const"] for each in listed if isinstance(each, Mapping) and isinstance(each.get("const"), str)
            )
        case _:
            return ()


def field_problem(field: Mapping[str, Any], value: object) -> str:
    """Why a value does not fit a field; empty if it does."""
    allowed = choices(field)
    kind = field.get("type")
    fits = {
        "string": isinstance(value, str),
        "boolean": isinstance(value, bool),
        "integer": isinstance(value, int) and not isinstance(value, bool),
        "number": isinstance(value, int | float) and not isinstance(value, bool),
        "array": isinstance(value, list) and all(isinstance(each, str) for each in value),
    }
    if isinstance(kind, str) and not fits.get(kind, True):
        return f"must be of the type {kind}"
    listed = value if isinstance(value, list) else [value]
    if allowed and any(each not in allowed for each in listed):
        return f"must be one of {', '.join(map(repr, allowed[:20]))}"
    least, most = field.get("minimum"), field.get("maximum")
    if isinstance(value, int | float) and not isinstance(value, bool):
        if isinstance(least, int | float) and value < least:
            return f"must be at least {least}"
        if isinstance(most, int | float) and value > most:
            return f"must be at most {most}"
    return ""
