"""`--ask-at` and `--answer-at`: a worker hands its questions to the coordinator, in another process."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import anyio
import pytest
from tests.transcripts.killing import ran, victim

from handrail.conversation.blocks import Text, ToolUse
from handrail.dispatch.approval.question import Question
from handrail.dispatch.approval.remote import Coordinator, WorkerHandler, question_json, read_question
from handrail.errors import HandrailError
from handrail.permissions.risk import Level, Risk
from handrail.testing.model_server import Reply
from handrail.tools.cards import Card, FormChoice, FormField
from handrail.tools.context import AgentIdentity
from handrail.tools.permission import Allow, Deny

pytestmark = pytest.mark.anyio

WRITES = [
    Reply((ToolUse("w1", "Write", {"file_path": "yes.txt", "content": "x"}),)),
    Reply((ToolUse("w2", "Write", {"file_path": "no.txt", "content": "x"}),)),
    Reply((Text("done"),)),
]
QUESTION = Question("q", ToolUse("u", "Write", {"file_path": "yes"}), "Write(yes)", "why", Risk(Level.HIGH))


class Person:
    """Says yes to files that are called so, and remembers what was asked; may take its time."""

    who = "person"

    def __init__(self) -> None:
        self.asked: list[Question] = []
        self.withdrawn: list[str] = []
        self.waits = False

    async def ask(self, question: Question) -> Any:
        self.asked.append(question)
        try:
            if self.waits:
                await asyncio.sleep(3600)
        except asyncio.CancelledError:
            self.withdrawn.append(question.summary)
            raise
        return Allow() if "yes" in str(question.input["file_path"]) else Deny("not that one")

    def update(self, question: Question) -> None:
        """Nothing changes."""


@pytest.mark.proves("G40")
async def test_a_worker_hands_its_questions_to_the_coordinator_of_another_process(tmp_path: Path) -> None:
    person, socket = Person(), tmp_path / "questions"
    coordinator = Coordinator(socket, person)
    await coordinator.start()
    try:
        done = await ran(WRITES, tmp_path, "-p", "go", "--ask-at", str(socket), "--disallowedTools", "Read")
    finally:
        await coordinator.aclose()

    assert done.code == 0, done.errors
    assert (tmp_path / "yes.txt").read_text() == "x"
    assert not (tmp_path / "no.txt").exists()
    assert "not that one" in json.dumps(done.requests[2].body["messages"])
    assert [Path(each.input["file_path"]).name for each in person.asked] == ["yes.txt", "no.txt"]
    assert all(each.agent.path[0].startswith("process ") for each in person.asked)
    assert not socket.exists()


@pytest.mark.parametrize("there", ["nothing", "a file"])
async def test_without_a_coordinator_there_is_no_one_to_ask(tmp_path: Path, there: str) -> None:
    socket = tmp_path / "questions"
    if there == "a file":
        socket.write_text("")
    done = await ran([WRITES[0], WRITES[2]], tmp_path, "-p", "go", "--ask-at", str(socket))
    assert not (tmp_path / "yes.txt").exists()
    assert "there is no one to ask" in json.dumps(done.requests[1].body["messages"])


LISTENS = """
import socket, sys
door = socket.socket(socket.AF_UNIX)
door.bind(sys.argv[1])
door.listen()
print("listens", flush=True)
peer = door.accept()[0]
if peer.recv(1_000_000):
    peer.sendall(b'{"behavior": "allow"}' + bytes([10]))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="only here a socket says who listens")
async def test_what_a_worker_has_started_cannot_answer_its_questions(tmp_path: Path) -> None:
    place = tmp_path / "questions"
    child = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTENS, str(place), stdout=asyncio.subprocess.PIPE
    )
    try:
        assert child.stdout is not None
        await child.stdout.readline()
        with anyio.fail_after(20):
            assert await WorkerHandler(place).ask(QUESTION) is None
    finally:
        if child.returncode is None:
            child.kill()
        await child.wait()


async def test_the_question_of_a_process_that_is_killed_is_taken_back(tmp_path: Path) -> None:
    person, socket = Person(), tmp_path / "questions"
    person.waits = True
    coordinator = Coordinator(socket, person)
    await coordinator.start()
    try:
        async with victim(WRITES, tmp_path, "-p", "go", "--ask-at", str(socket)) as running:
            while not person.asked:
                assert running.process.returncode is None, await running.rest()
                await asyncio.sleep(0.005)
            await running.kill()
            with anyio.fail_after(20):
                while not person.withdrawn:
                    await asyncio.sleep(0.005)
        with pytest.raises(HandrailError, match="another handrail answers there"):
            await Coordinator(socket, person).start()
    finally:
        await coordinator.aclose()
    again = Coordinator(socket, person)
    await again.start()
    await again.aclose()


async def test_a_coordinator_that_goes_leaves_its_workers_without_an_answer_and_none_hangs(tmp_path: Path) -> None:
    person, socket = Person(), tmp_path / "questions"
    person.waits = True
    coordinator = Coordinator(socket, person)
    await coordinator.start()
    with anyio.fail_after(20):
        asking = asyncio.ensure_future(WorkerHandler(socket).ask(QUESTION))
        while not person.asked:
            await asyncio.sleep(0)
        await coordinator.aclose()
        assert await asking is None


def test_a_question_arrives_as_a_person_needs_it_and_never_looks_like_a_call_of_the_receiver() -> None:
    question = Question(
        "q1",
        ToolUse("u1", "AskUserQuestion", {"a": 1}),
        "summary",
        "reason",
        Risk(Level.MEDIUM, ("a", "b")),
        agent=AgentIdentity("agent-1", "Explore", path=("Explore agent-1",)),
        document=Card(title="Plan", body="text"),
        form=(FormField("Which?", "W", (FormChoice("x", "the x", "p"),), several=True),),
        cwd="/project",
    )
    there = read_question(json.loads(json.dumps(question_json(question))), "process 7")
    assert (there.form, there.document, there.risk) == (question.form, question.document, question.risk)
    assert (there.input, there.tool, there.reason, there.cwd) == ({"a": 1}, "AskUserQuestion", "reason", "/project")
    assert there.agent.path == ("process 7", "Explore agent-1")
    assert not there.agent.is_main
    assert there.use.id != "u1"


async def test_flags_that_cannot_work_together_are_refused(tmp_path: Path) -> None:
    done = await ran([], tmp_path, "-p", "go", "--answer-at", str(tmp_path / "s"))
    assert done.code == 1
    assert "needs someone to ask" in done.errors
