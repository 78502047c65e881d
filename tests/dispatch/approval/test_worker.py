"""Workers and their coordinator, in one process and in two."""

import asyncio
import os
import signal
import socket
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Image, Text
from handrail.dispatch.approval.coordinator import Coordinator, by_policy
from handrail.dispatch.approval.question import Answer, Question
from handrail.dispatch.approval.wire import question_json, read_question
from handrail.dispatch.approval.worker import Worker, serve
from handrail.errors import HandrailError
from handrail.permissions.policy import Policy
from handrail.permissions.rules import Behaviour, Source
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.permission import Allow, Deny, Verdict
from tests.dispatch.approval.desk import Desk, Someone

pytestmark = pytest.mark.anyio

ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"  # processes take real time


@asynccontextmanager
async def wire() -> AsyncIterator[tuple[tuple[Any, Any], tuple[Any, Any]]]:
    """Both ends of a connection."""
    ours, theirs = socket.socketpair()
    near = await asyncio.open_connection(sock=ours)
    far = await asyncio.open_connection(sock=theirs)
    try:
        yield near, far
    finally:
        for _, writer in (near, far):
            writer.close()
            await asyncio.gather(writer.wait_closed(), return_exceptions=True)


@pytest.mark.proves("G40")
async def test_a_worker_hands_its_questions_to_the_coordinator(tmp_path: Path) -> None:
    picture = Image("aGk=", "image/png")
    person = Someone().now(Deny("no", interrupt=True, feedback=(Text("see"), picture)))
    async with wire() as (near, far):
        serving = asyncio.create_task(serve(Coordinator(escalate=person), *far))
        async with Worker(*near) as worker:
            decision = await asyncio.wait_for(Desk(tmp_path, handler=worker).bash("npm publish"), 5)
        await serving

    assert (decision.verdict, decision.reason, decision.interrupt) == (Verdict.DENY, "no", True)
    assert decision.feedback == (Text("see"), picture)
    assert person.asked[0].input == {"command": "npm publish"}
    assert person.asked[0].proposals[0].text == "Bash(npm publish *)"


@pytest.mark.proves("G39")
async def test_a_coordinator_lets_checks_decide_first_and_passes_on_the_rest(tmp_path: Path) -> None:
    here = str(Path(os.path.realpath(tmp_path)))
    rules = Policy.empty(here, "/home/dev")
    rules = rules.adding(Behaviour.ALLOW, ["Bash(npm test)", "Bash(git push)"], Source("policy"))
    rules = rules.adding(Behaviour.DENY, ["Bash(npm publish)"], Source("policy"))
    person = Someone().now(Allow({"command": "npm ci"}))
    desk = Desk(tmp_path, ask=["Bash(git push)"], handler=Coordinator([by_policy(lambda: rules)], escalate=person))

    assert (await desk.bash("npm test")).verdict is Verdict.ALLOW
    assert (await desk.bash("npm publish")).verdict is Verdict.DENY
    assert person.asked == []
    assert (await desk.bash("npm install")).updated_input == {"command": "npm ci"}
    assert (await desk.bash("git push")).verdict is Verdict.ALLOW
    assert len(person.asked) == 2
    assert (await Desk(tmp_path, handler=Coordinator()).bash("npm test")).verdict is Verdict.DENY


async def test_questions_stand_side_by_side_and_a_moot_one_is_taken_back(tmp_path: Path) -> None:
    person, stop = Someone(), AbortSignal()
    async with wire() as (near, far):
        serving = asyncio.create_task(serve(person, *far))
        async with Worker(*near) as worker:
            desk = Desk(tmp_path, handler=worker)
            stopped = asyncio.create_task(desk.bash("npm one", abort=stop))
            kept = asyncio.create_task(desk.bash("npm two"))
            await arrived(person, 2)
            worker.update(person.asked[1])
            stop.abort(AbortReason.USER)
            assert "stopped before anybody answered" in (await stopped).reason
            while person.taken_back == 0 or not person.updates:
                await asyncio.sleep(0.001)
            person.now(Allow())
            assert (await asyncio.wait_for(kept, 5)).verdict is Verdict.ALLOW
        await serving


async def arrived(person: Someone, count: int) -> None:
    async with asyncio.timeout(5):
        while len(person.asked) < count:
            await asyncio.sleep(0.001)


@pytest.mark.proves("R2")
@pytest.mark.parametrize(
    "said",
    [
        b"",
        b"hello\n",
        b"[]\n",
        b'{"type": "answer", "id": "call-1#1", "answer": {"behavior": "maybe"}}\n',
        b'{"type": "answer", "id": "call-1#1", "answer": {"behavior": "allow", "updatedInput": 3}}\n',
        b'{"type": "answer", "id": "call-1#1", "answer": {"behavior": "deny", "feedback": [7]}}\n',
    ],
)
async def test_a_coordinator_that_leaves_or_talks_nonsense_has_said_no(tmp_path: Path, said: bytes) -> None:
    async with wire() as (near, (reader, writer)), Worker(*near) as worker:
        desk = Desk(tmp_path, handler=worker)
        asking = asyncio.create_task(desk.bash("npm publish"))
        await reader.readline()
        writer.write(said)
        writer.close()

        assert "cannot be asked" in (await asyncio.wait_for(asking, 5)).reason
        assert "cannot be asked" in (await asyncio.wait_for(desk.bash("npm ci"), 5)).reason


async def test_a_worker_that_talks_nonsense_is_left_and_its_questions_are_taken_back() -> None:
    person = Someone()
    async with wire() as ((_, writer), far):
        serving = asyncio.create_task(serve(person, *far))
        writer.write(b'{"type": "unheard of"}\n{"type": "ask", "question": {"id": 1}}\n')
        await asyncio.wait_for(serving, 5)

    assert person.asked == []


async def test_a_coordinator_that_fails_says_no(tmp_path: Path) -> None:
    class Broken(Someone):
        async def ask(self, question: Question) -> Answer | None:
            raise ValueError("broken")

    async with wire() as (near, far):
        serving = asyncio.create_task(serve(Broken(), *far))
        async with Worker(*near) as worker:
            decision = await asyncio.wait_for(Desk(tmp_path, handler=worker).bash("npm publish"), 5)
        await serving

    assert decision.reason == "the coordinator failed to answer"


async def test_a_question_reads_as_it_was_written(tmp_path: Path) -> None:
    person = Someone().now(Deny())
    await Desk(tmp_path, handler=person).bash("npm run build && cat /etc/hosts")
    [question] = person.asked

    assert read_question(question_json(question)) == question
    with pytest.raises(HandrailError, match="cannot be read"):
        read_question({"id": "1"})


@asynccontextmanager
async def worker_process(*commands: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        "tests.dispatch.approval.worker_program",
        *commands,
        cwd=ROOT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": f"{ROOT}/src:{ROOT}"},
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


@pytest.mark.proves("G40")
async def test_a_worker_in_another_process_asks_over_its_pipes(tmp_path: Path) -> None:
    class ByCommand(Someone):
        async def ask(self, question: Question) -> Answer | None:
            self.asked.append(question)
            return Deny("no", feedback=(Text("x" * 200_000),)) if len(self.asked) > 1 else Allow({"command": "npm ci"})

    person = ByCommand()
    async with asyncio.timeout(30), worker_process("npm install", "npm publish " + "y" * 100_000) as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        serving = asyncio.create_task(serve(person, process.stdout, process.stdin))
        said = (await process.stderr.read()).decode().splitlines()
        await serving

    assert said[0] == "allow {'command': 'npm ci'} the coordinator agreed []"
    assert said[1].startswith("deny None no ['xxx")


async def test_a_worker_whose_coordinator_dies_is_refused_and_ends(tmp_path: Path) -> None:
    async with asyncio.timeout(30), worker_process("npm install", "npm ci") as process:
        assert process.stdin
        assert process.stdout
        assert process.stderr
        await process.stdout.readline()
        process.stdin.close()
        said = (await process.stderr.read()).decode().splitlines()
        assert await process.wait() == 0

    assert [line.split()[0] for line in said] == ["deny", "deny"]


async def test_a_dead_worker_takes_its_questions_back() -> None:
    person = Someone()
    async with asyncio.timeout(30), worker_process("npm install") as process:
        assert process.stdin
        assert process.stdout
        serving = asyncio.create_task(serve(person, process.stdout, process.stdin))
        await arrived(person, 1)
        process.send_signal(signal.SIGKILL)
        await serving

    assert person.taken_back == 1
