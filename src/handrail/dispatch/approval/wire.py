"""Questions and answers as lines of JSON, for agents in other processes."""

import asyncio
import json
from collections.abc import AsyncIterator, Mapping
from typing import Any

from handrail.conversation.blocks import Document, Image, ResultBlock, Text, ToolReference, ToolUse
from handrail.dispatch.approval.question import Answer, Proposal, Question, read_answer
from handrail.errors import HandrailError
from handrail.permissions.risk import Level, Risk
from handrail.tools.context import AgentIdentity
from handrail.tools.permission import Allow, Deny, Opinion, Strength, Verdict

MAX_LINE = 64_000_000
Line = dict[str, Any]


async def lines(reader: asyncio.StreamReader) -> AsyncIterator[Line]:
    """
    The messages of the other side, until it is gone.

    Raises:
        HandrailError: something came that is no message; nothing after it can be trusted.
    """
    rest = bytearray()
    while chunk := await reader.read(65_536):
        rest += chunk
        if len(rest) > MAX_LINE:
            raise HandrailError(f"the other side sent a line of more than {MAX_LINE} bytes")
        *whole, last = bytes(rest).split(b"\n")
        rest = bytearray(last)
        for line in whole:
            yield parsed(line)


def parsed(line: bytes) -> Line:
    try:
        value = json.loads(line)
    except ValueError as error:
        raise HandrailError(f"the other side sent {line[:60]!r}, which is not JSON") from error
    if not isinstance(value, dict):
        raise HandrailError(f"the other side sent {line[:60]!r}, which is no object")
    return value


def encoded(line: Mapping[str, Any]) -> bytes:
    return json.dumps(line, default=dict).encode() + b"\n"


async def send(writer: asyncio.StreamWriter, line: Mapping[str, Any]) -> None:
    writer.write(encoded(line))
    await writer.drain()


def question_json(question: Question) -> Line:
    return {
        "id": question.id,
        "use": {"id": question.use.id, "name": question.use.name, "input": question.use.input},
        "summary": question.summary,
        "name": question.name,
        "description": question.description,
        "reason": question.reason,
        "risk": {"level": question.risk.level.value, "reasons": question.risk.reasons},
        "proposals": [{"text": p.text, "update": p.update, "where": p.where} for p in question.proposals],
        "blocked_path": question.blocked_path,
        "agent": {"id": question.agent.id, "type": question.agent.type},
        "mode": question.mode,
        "cwd": question.cwd,
        "opinions": [[o.strength.name, o.verdict.value, o.layer, o.reason, o.source] for o in question.opinions],
        "note": question.note,
    }


def read_question(line: Mapping[str, Any]) -> Question:
    """
    The question in a message.

    Raises:
        HandrailError: it is none.
    """
    try:
        use, risk, agent = line["use"], line["risk"], line["agent"]
        return Question(
            id=str(line["id"]),
            use=ToolUse(str(use["id"]), str(use["name"]), dict(use["input"])),
            summary=str(line["summary"]),
            name=str(line["name"]),
            description=str(line["description"]),
            reason=str(line["reason"]),
            risk=Risk(Level(risk["level"]), tuple(map(str, risk["reasons"]))),
            proposals=tuple(Proposal(str(p["text"]), dict(p["update"]), str(p["where"])) for p in line["proposals"]),
            blocked_path=str(line["blocked_path"]),
            agent=AgentIdentity(str(agent["id"]), str(agent["type"])),
            mode=str(line["mode"]),
            cwd=str(line["cwd"]),
            opinions=tuple(
                Opinion(Strength[strength], Verdict(verdict), str(layer), str(reason), str(source))
                for strength, verdict, layer, reason, source in line["opinions"]
            ),
            note=str(line["note"]),
        )
    except (KeyError, TypeError, ValueError) as error:
        raise HandrailError(f"the other side asked a question that cannot be read: {error!r}") from error


def answer_json(answer: Answer) -> Line:
    """The answer as callbacks give it, with the blocks of a refusal."""
    match answer:
        case Allow(changed, updates):
            return {"behavior": "allow", "updatedInput": changed, "updatedPermissions": list(updates)}
        case Deny(message, interrupt, feedback):
            blocks = [block_json(block) for block in feedback]
            return {"behavior": "deny", "message": message, "interrupt": interrupt, "feedback": blocks}


def read_wire_answer(line: object) -> Answer | None:
    """
    The answer in a message; None when the other side has none.

    Raises:
        HandrailError: it is none that can be read.
    """
    if line is None:
        return None
    answer = read_answer(line)
    if isinstance(answer, str):
        raise HandrailError(f"the other side cannot be understood: {answer}")
    feedback = line.get("feedback") if isinstance(line, Mapping) else None
    if isinstance(answer, Deny) and isinstance(feedback, list):
        return Deny(answer.message, answer.interrupt, tuple(read_block(block) for block in feedback))
    return answer


def block_json(block: ResultBlock) -> Line:
    match block:
        case Text(text):
            return {"type": "text", "text": text}
        case Image(data, media_type):
            return {"type": "image", "data": data, "media_type": media_type}
        case Document(data, media_type, title):
            return {"type": "document", "data": data, "media_type": media_type, "title": title}
        case ToolReference(name):
            return {"type": "text", "text": name}


def read_block(block: Any) -> ResultBlock:
    match block:
        case {"type": "text", "text": str() as text}:
            return Text(text)
        case {"type": "image", "data": str() as data, "media_type": str() as media_type}:
            return Image(data, media_type)
        case {"type": "document", "data": str() as data, "media_type": str() as media_type, "title": str() as title}:
            return Document(data, media_type, title)
        case _:
            raise HandrailError(f"the other side sent a block that cannot be read: {str(block)[:60]!r}")
