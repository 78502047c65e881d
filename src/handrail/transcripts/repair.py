"""Repairs, imports and exports transcripts."""

import os
from itertools import groupby
from pathlib import Path

from handrail.conversation.block_json import block_value
from handrail.conversation.blocks import Text, ToolResult
from handrail.conversation.messages import AssistantMessage, Attachment, Message, SystemNote, UserMessage
from handrail.errors import SessionError, advice_on
from handrail.transcripts.log import OWN, BrokenLine, Log, encode_line, read
from handrail.transcripts.rebuild import RebuiltTranscript, rebuild
from handrail.transcripts.store import OpenTranscript, TranscriptStore
from handrail.transcripts.writer import message_value, new_id

CONTEXT = frozenset({"context", "memory", "agents", "skills", "style", "tools", "mcp_instructions"})
"""The kinds of attachments that tell the model about its surroundings, and nothing about the work."""


def repair(path: Path) -> RebuiltTranscript:
    """
    Move broken lines to a `.broken` file beside it and record the repairs; returns the transcript as it was.

    Raises:
        SessionError: a process is writing it, or it cannot be written.
    """
    log = Log(path)
    try:
        before = rebuild(read(path))
        if not before.repairs and not before.problems:
            return before
        lines = path.read_bytes().splitlines(keepends=True)
        bad = {each.number for each in read(path) if isinstance(each, BrokenLine)}
        good = b"".join(line for number, line in enumerate(lines, 1) if number not in bad)
        repaired = {"type": OWN, "event": "repaired", "repairs": [*before.repairs], "problems": [*before.problems]}
        if bad:
            broken = b"".join(lines[number - 1] for number in sorted(bad))
            _write(path.with_suffix(".broken"), broken, os.O_APPEND)
        new = path.with_suffix(".mending")
        _write(new, good + encode_line(repaired), os.O_TRUNC)
        new.replace(path)
    except OSError as error:
        raise SessionError(f"The session {path} cannot be repaired: {error.strerror}. {advice_on(error)}") from error
    finally:
        log.close()
    return before


def _write(path: Path, data: bytes, how: int) -> None:
    file = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW | how, 0o600)
    with open(file, "wb") as opened:  # noqa: PTH123  # a descriptor, not a path
        opened.write(data)
        opened.flush()
        os.fsync(file)


def import_transcript(store: TranscriptStore, path: Path, cwd: str) -> OpenTranscript:
    """A new transcript from one of another program. Raises SessionError if that is unreadable or holds no messages."""
    rebuilt = rebuild(read(path))
    if not rebuilt.messages:
        why = f" ({rebuilt.problems[0]})" if rebuilt.problems else ""
        raise SessionError(f"{path} holds no conversation{why}. Give a transcript in JSON lines.")
    imported = store.fork(path, rebuilt.cwd or cwd)
    if rebuilt.title:
        imported.writer.set_title(rebuilt.title)
    return imported


def as_lines(rebuilt: RebuiltTranscript, session_id: str) -> bytes:
    """The conversation as JSON lines, in the format that other programs read."""
    lines, last = [], None
    if rebuilt.title:
        lines.append(encode_line({"type": "summary", "summary": rebuilt.title}))
    for message in rebuilt.messages:
        if isinstance(message, SystemNote):
            continue
        kind = "assistant" if isinstance(message, AssistantMessage) else "user"
        line: dict[str, object] = {
            "type": kind,
            "uuid": new_id(),
            "parentUuid": last,
            "sessionId": session_id,
            "cwd": rebuilt.cwd,
        }
        value = message_value(message)
        if isinstance(message, Attachment):
            line |= {"isMeta": True, "attachment": value.pop("attachment")}
        lines.append(encode_line({**line, "message": value}))
        last = line["uuid"]
    return b"".join(lines)


def as_text(rebuilt: RebuiltTranscript, *, whole: bool = True) -> str:
    """The conversation as Markdown; unless it is `whole`, what the model was told of its surroundings is only named."""
    parts = [f"# {rebuilt.title or rebuilt.session_id or 'Session'}"]
    for is_context, messages in groupby(rebuilt.messages, lambda message: bool(_context_kind(message))):
        if is_context and not whole:
            parts.append(f"(added by the program: {', '.join(map(_context_kind, messages))}; --all shows it)")
        else:
            parts += filter(None, map(_message, messages))
    return "\n\n".join(parts) + "\n"


def _context_kind(message: Message) -> str:
    return message.kind if isinstance(message, Attachment) and message.kind in CONTEXT else ""


def _message(message: Message) -> str:
    blocks = (Text(message.text),) if isinstance(message, SystemNote) else message.content
    text = "\n\n".join(_block(block_value(block)) for block in blocks)
    return f"## {_who(message)}\n\n{text}" if text else ""


def _who(message: Message) -> str:
    match message:
        case AssistantMessage(model=model):
            return f"Assistant ({model})" if model else "Assistant"
        case Attachment(kind):
            return f"Added by the program: {kind}"
        case SystemNote():
            return "Note"
        case UserMessage(content) if content and all(isinstance(block, ToolResult) for block in content):
            return "Results"
        case _:
            return "User"


def _block(value: dict[str, object]) -> str:
    match value:
        case {"type": "text", "text": str(text)}:
            return text
        case {"type": "tool_use", "name": name, "id": call_id, "input": given}:
            return f"`{name}` ({call_id})\n\n{_fence(encode_line(given).decode().strip())}"  # type: ignore[arg-type]
        case {"type": "tool_result", "tool_use_id": call_id, "content": list(content), "is_error": bad}:
            inner = "\n".join(_block(part) for part in content)
            return f"Result of {call_id}{' (error)' if bad else ''}\n\n{_fence(inner)}"
        case {"type": "thinking", "thinking": str(text)}:
            return f"> {text}".replace("\n", "\n> ")
        case _:
            return f"[{value['type']}]"


def _fence(text: str) -> str:
    fence = "```"
    while fence in text:
        fence += "`"
    return f"{fence}\n{text}\n{fence}"
