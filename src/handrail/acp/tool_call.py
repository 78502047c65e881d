"""A tool call as editors show it: kind, places, content, and diffs of files."""

import os
import re
from collections.abc import Iterator
from dataclasses import replace

from handrail.acp.prompt import fenced
from handrail.conversation.blocks import Image, Json, ToolUse
from handrail.conversation.plain import plain_json
from handrail.session.session import Session
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.cards import Card
from handrail.tools.flags import ask_tool, declaration, parse
from handrail.tools.outcome import Outcome, Status
from handrail.tools.wording import cut

MAX_TITLE, MAX_TEXT, MAX_INPUT = 300, 100_000, 100_000
MAX_IMAGE = 600_000
"""Characters of a picture that still fits into a line."""
HUNK = re.compile(r"@@ -(\d+),(\d+) \+(\d+),\d+ @@\Z")


def declared_access(session: Session, use: ToolUse) -> Access:
    """What the tool declares that the call touches; unknown if there is no such tool, or the input does not fit."""
    tool = session.conversation.tools.find(use.name)
    args, problem = parse(tool, use.input) if tool else (None, None)
    if tool is None or problem is not None:
        return EXCLUSIVE
    return declaration(tool, args, session.conversation.state.context)


def drawn_call(session: Session, use: ToolUse) -> Card:
    """The call as its tool draws it."""
    tool, plain = session.conversation.tools.find(use.name), Card(use.name)
    return ask_tool(tool.name, "use_card", lambda: tool.use_card(use.input), plain) if tool else plain


def call_fields(use: ToolUse, card: Card, access: Access, cwd: str) -> Json:
    """What is known of a call before it runs."""
    places = file_places(access, cwd)
    given = dict(use.input)
    return {
        "toolCallId": use.id,
        "title": cut(card.line.replace(f"{cwd}/", ""), MAX_TITLE) or use.name,
        "kind": kind_of(access),
        "content": card_content(card, places[0]["path"] if places else ""),
        "locations": places,
        **({"rawInput": given} if len(plain_json(given)) <= MAX_INPUT else {}),
    }


def end_fields(outcome: Outcome, card: Card, cwd: str) -> Json:
    """How a call ended."""
    places = file_places(outcome.access, cwd)
    content = card_content(card, places[0]["path"] if places else "")
    content += [
        {"type": "content", "content": {"type": "image", "data": block.data, "mimeType": block.media_type}}
        for block in outcome.result.content
        if isinstance(block, Image) and len(block.data) <= MAX_IMAGE
    ]
    if not content:
        content = card_content(replace(card, body=card.detail or card.title, body_kind="markdown"), "")
    at = HUNK.match(card.body.partition("\n")[0]) if card.body_kind == "diff" else None
    lines = {"locations": [{**places[0], "line": max(int(at[3]), 1)}]} if at and places else {}
    return {"status": "completed" if outcome.status is Status.OK else "failed", "content": content, **lines}


def kind_of(access: Access) -> str:
    """The kind by which editors choose a sign for a call."""
    match access:
        case Access(own=True):
            return "think"
        case Access(runs=str()):
            return "execute"
        case Access(removes=(_, *_)):
            return "delete"
        case Access(writes=(_, *_)):
            return "edit"
        case Access(reaches=(_, *_)) | Access(consults=(_, *_)):
            return "fetch"
        case Access(walks=(_, *_)):
            return "search"
        case Access(reads=(_, *_)):
            return "read"
        case _:
            return "other"


def file_places(access: Access, cwd: str) -> list[Json]:
    """The single files that a call touches, as absolute paths."""
    return [{"path": os.path.abspath(os.path.join(cwd, os.path.expanduser(each)))} for each in access.files]  # noqa: PTH100, PTH111, PTH118  # not resolved


def card_content(card: Card, path: str) -> list[Json]:
    """The body of a card: a diff as such if it is of a file, text in a frame."""
    if card.body_kind == "diff" and path:
        return [*diffs(card.body, path)]
    if not card.body.strip():
        return []
    return [text_content(card.body if card.body_kind == "markdown" else fenced(cut(card.body, MAX_TEXT)))]


def text_content(text: str) -> Json:
    """A text, in Markdown, as content of a call."""
    return {"type": "content", "content": {"type": "text", "text": cut(text, MAX_TEXT)}}


def diffs(body: str, path: str) -> Iterator[Json]:
    """One diff for each region of a unified diff."""
    old: list[str] = []
    new: list[str] = []
    begun = is_new = False
    for line in [*body[:MAX_TEXT].split("\n"), "@@ -1,1 +1,1 @@"]:
        if head := HUNK.match(line):
            if begun:
                yield {"type": "diff", "path": path, "oldText": None if is_new else _lines(old), "newText": _lines(new)}
            old, new, begun, is_new = [], [], True, head[1] == head[2] == "0"
        elif line.startswith(("-", " ", "+")):
            old += [line[1:]] if line[0] != "+" else []
            new += [line[1:]] if line[0] != "-" else []


def _lines(lines: list[str]) -> str:
    return "".join(f"{line}\n" for line in lines)
