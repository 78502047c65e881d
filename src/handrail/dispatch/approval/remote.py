"""
Questions between processes: a worker hands its questions to a coordinator, which puts them to its own person.

    worker        WorkerHandler: one connection for each question; closing it takes the question back
    coordinator   Coordinator: listens at a Unix socket of its owner, and asks its handler

One JSON object a line, in both directions. The rules of the worker decide first, and its deny rules win over every
answer. Without a coordinator there is no one to ask.
"""

import asyncio
import json
import os
import socket
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from handrail.conversation.blocks import Json, ToolUse
from handrail.conversation.logger import get_logger
from handrail.dispatch.approval.question import ApprovalAnswer, Handler, Proposal, Question, read_answer
from handrail.errors import HandrailError
from handrail.permissions.risk import Level, Risk
from handrail.processes.peers import is_trusted_peer, peer_of
from handrail.tools.cards import Card, FormChoice, FormField
from handrail.tools.context import AgentIdentity
from handrail.tools.permission import Allow, Deny

log = get_logger(__name__)

VERSION = 1
MAX_LINE = 4_000_000


class WorkerHandler:
    """Hands each question to the coordinator that listens at a path."""

    who = "coordinator"

    def __init__(self, path: Path) -> None:
        self._path = path

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        """The coordinator's answer; None if there is no coordinator, or it is gone."""
        try:
            owner = self._path.stat()
            if not stat.S_ISSOCK(owner.st_mode) or owner.st_uid != os.geteuid():
                log.warning("questions cannot be put at %s: it is not a socket of yours", self._path)
                return None
            reader, writer = await asyncio.open_unix_connection(self._path, limit=MAX_LINE)
        except OSError as error:
            log.warning("questions cannot be put at %s: %s", self._path, error.strerror or error)
            return None
        try:
            if not is_trusted_peer(writer.get_extra_info("socket"), also_own=True):
                log.warning("questions cannot be put at %s: a process that this one started listens there", self._path)
                return None
            writer.write(json.dumps(question_json(question), default=str).encode() + b"\n")
            await writer.drain()
            line = await reader.readline()
        except (OSError, ValueError):
            return None
        finally:
            writer.close()
        return None if not line else _answer(line)

    def update(self, question: Question) -> None:
        """What automatic checks say later is not sent."""


def _answer(line: bytes) -> ApprovalAnswer | None:
    try:
        value = json.loads(line)
    except ValueError:
        return Deny("the coordinator gave no valid answer")
    if value is None:
        return None
    answer = read_answer(value)
    return Deny(f"the coordinator gave no valid answer: {answer}") if isinstance(answer, str) else answer


class Coordinator:
    """Listens at a Unix socket and puts the questions of other processes of the same user to a handler."""

    def __init__(self, path: Path, handler: Handler) -> None:
        self._path = path
        self._handler = handler
        self._server: asyncio.Server | None = None
        self._open: set[asyncio.Task[None]] = set()

    async def start(self) -> None:
        """Listen; HandrailError if the path cannot be used."""
        try:
            _remove_stale(self._path)
            before = os.umask(0o177)
            try:
                self._server = await asyncio.start_unix_server(self._serve, self._path, limit=MAX_LINE)
            finally:
                os.umask(before)
        except OSError as error:
            where, why = str(self._path), error.strerror or str(error)
            raise HandrailError(f"Questions cannot be answered at {where!r}: {why}. Name another path.") from error

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._open.add(task)
        try:
            await self._answer_one(reader, writer)
        except (OSError, ValueError, LookupError, TypeError) as error:
            log.warning("a question of another process could not be answered: %s", error)
        except asyncio.CancelledError:  # the program ends; Python 3.11 would report that as a failure
            pass
        finally:
            self._open.discard(task)
            writer.close()

    async def _answer_one(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if (process := _process_of(writer)) is None:
            return
        question = read_question(json.loads(await reader.readline()), process)
        asking = asyncio.ensure_future(self._handler.ask(question))
        leaving = asyncio.ensure_future(reader.read(1))  # a worker says nothing more: this ends when it is gone
        try:
            await asyncio.wait((asking, leaving), return_when=asyncio.FIRST_COMPLETED)
            if asking.done():
                writer.write(json.dumps(answer_json(asking.result())).encode() + b"\n")
                await writer.drain()
        finally:
            for each in (asking, leaving):
                each.cancel()
            await asyncio.gather(asking, leaving, return_exceptions=True)

    async def aclose(self) -> None:
        """Answer nothing more; open questions are refused by their own processes."""
        if self._server is None:
            return
        self._server.close()
        for task in tuple(self._open):
            task.cancel()
        await asyncio.gather(*self._open, return_exceptions=True)
        self._path.unlink(missing_ok=True)


def _remove_stale(path: Path) -> None:
    """Remove the socket of a coordinator that is gone; another one that listens, or a file, stays."""
    if not path.is_socket():
        return
    with socket.socket(socket.AF_UNIX) as probe:
        try:
            probe.connect(str(path))
        except ConnectionRefusedError:
            path.unlink()
            return
    raise OSError(0, "another handrail answers there")


def _process_of(writer: asyncio.StreamWriter) -> str | None:
    """The process at the other end, if it belongs to the same user; else None."""
    found = peer_of(writer.get_extra_info("socket"))
    if found is None:
        return "another process"  # the socket is for its owner only
    number, user = found
    return f"process {number}" if user == os.geteuid() else None


# What is sent

PLAIN = ("id", "summary", "reason", "name", "description", "blocked_path", "mode", "cwd", "note", "diff", "next_mode")


def question_json(question: Question) -> Json:
    """A question as a person needs it, without what only its own process can use."""
    return {
        "version": VERSION,
        **{name: getattr(question, name) for name in PLAIN},
        "use": {"id": question.use.id, "name": question.use.name, "input": dict(question.use.input)},
        "risk": {"level": question.risk.level.value, "reasons": list(question.risk.reasons)},
        "proposals": [
            {"text": each.text, "update": dict(each.update), "where": each.where} for each in question.proposals
        ],
        "agent": {"id": question.agent.id, "type": question.agent.type, "path": list(question.agent.path)},
        "read_only": question.read_only,
        "document": question.document and {"title": question.document.title, "body": question.document.body},
        "form": [
            {
                "question": field.question,
                "header": field.header,
                "several": field.several,
                "choices": [[each.label, each.description, each.preview] for each in field.choices],
            }
            for field in question.form
        ],
    }


def read_question(value: Mapping[str, Any], process: str) -> Question:
    """The question of another process, which its agent path names first; raises if it is not one."""
    if value["version"] > VERSION:
        raise ValueError("it was asked by a newer handrail")
    use, about, document = value["use"], value["agent"], value["document"]
    path = (process, *map(str, about["path"]))
    texts: dict[str, Any] = {name: str(value.get(name, "")) for name in PLAIN}
    return Question(
        use=ToolUse(f"{process}: {use['id']}", str(use["name"]), dict(use["input"])),  # never the id of a call here
        risk=Risk(Level(value["risk"]["level"]), tuple(map(str, value["risk"]["reasons"]))),
        proposals=tuple(Proposal(str(each["text"]), each["update"], str(each["where"])) for each in value["proposals"]),
        agent=AgentIdentity(f"{process} {about['id']}", str(about["type"]), path=path),
        read_only=value["read_only"] is True,
        document=Card(title=str(document["title"]), body=str(document["body"])) if document else None,
        form=tuple(
            FormField(
                str(each["question"]),
                str(each["header"]),
                tuple(FormChoice(*map(str, choice)) for choice in each["choices"]),
                each["several"] is True,
            )
            for each in value["form"]
        ),
        **texts,
    )


def answer_json(answer: ApprovalAnswer | None) -> Json | None:
    """An answer in the form that callbacks use too; None = there was no one to ask."""
    match answer:
        case None:
            return None
        case Allow():
            updates = [dict(each) for each in answer.updated_permissions]
            changed = None if answer.updated_input is None else dict(answer.updated_input)
            return {"behavior": "allow", "updatedInput": changed, "updatedPermissions": updates}
        case Deny():
            return {"behavior": "deny", "message": answer.message, "interrupt": answer.interrupt}
