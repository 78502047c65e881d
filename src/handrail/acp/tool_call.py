"""A tool call as editors show it: kind, places, content, and diffs of files."""

import os
import re

from handrail.acp.prompt import fence, image_content
from handrail.conversation.blocks import Image, Json, ToolUse
from handrail.conversation.plain import plain_json
from handrail.session.session import Session
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.cards import Card
from handrail.tools.flags import ask_tool, declaration, parse
from handrail.tools.outcome import Outcome, Status
from handrail.tools.wording import cut

MAX_TITLE, MAX_TEXT, MAX_INPUT = 300, 30_000, 10_000
"""Some editors take no more than 64 KB in a line."""
HUNK = re.compile(r"^@@ -(\d+),(\d+) \+(\d+),\d+ @@$", re.MULTILINE)
SIGNS = ("", " ", "-", "+", "\\")


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
    given = dict(use.input)
    return {
        "toolCallId": use.id,
        "title": cut(card.line.replace(f"{cwd}/", ""), MAX_TITLE) or use.name,
        "kind": kind_of(access),
        "content": card_content(card, access, cwd),
        "locations": file_places(access, cwd),
        **({"rawInput": given} if len(plain_json(given)) <= MAX_INPUT else {}),
    }


def end_fields(outcome: Outcome, card: Card, cwd: str) -> Json:
    """How a call ended."""
    access = outcome.access
    pictures = (block for block in outcome.result.content if isinstance(block, Image))
    content = card_content(card, access, cwd)
    content += [{"type": "content", "content": each} for each in map(image_content, pictures) if each]
    short = text_content(card.detail or card.title)
    at = HUNK.match(card.body) if card.body_kind == "diff" else None
    lines = {"locations": [{**each, "line": max(int(at[3]), 1)} for each in file_places(access, cwd)]} if at else {}
    return {"status": "completed" if outcome.status is Status.OK else "failed", "content": content or [short], **lines}


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
    return [{"path": _absolute(each, cwd)} for each in access.files]


def card_content(card: Card, access: Access, cwd: str) -> list[Json]:
    """The body of a card: the diff of a file as such, other text in a frame."""
    body = cut(card.body, MAX_TEXT)
    if card.body_kind == "diff" and access.writes and not access.own:
        return diff_content(body, _absolute(access.writes[0], cwd))
    if not body.strip():
        return []
    return [text_content(body if card.body_kind == "markdown" else fence(body))]


def text_content(text: str) -> Json:
    """A text, in Markdown, as content of a call."""
    return {"type": "content", "content": {"type": "text", "text": text}}


def diff_content(body: str, path: str) -> list[Json]:
    """A diff for each region of a unified diff; what is part of none, such as a note that more follows, as text."""
    rest, *regions = HUNK.split(body)
    content: list[Json] = []
    notes = [rest]
    for start, count, text in zip(regions[::4], regions[1::4], regions[3::4], strict=True):
        lines = text[1:].removesuffix("\n").split("\n")
        old, new = (_side(lines, sign) for sign in "-+")
        is_new = start == count == "0"
        content.append({"type": "diff", "path": path, "oldText": None if is_new else old, "newText": new})
        notes += [line for line in lines if line[:1] not in SIGNS]
    left = "\n".join(filter(str.strip, notes))
    return [*content, text_content(fence(left))] if left else content


def _side(lines: list[str], sign: str) -> str:
    return "".join(f"{line[1:]}\n" for line in lines if line[:1] in ("", " ", sign))


def _absolute(path: str, cwd: str) -> str:
    return os.path.abspath(os.path.join(cwd, os.path.expanduser(path)))  # noqa: PTH100, PTH111, PTH118  # links stay
