"""`handrail batch run --cluster`, against a scheduler and workers of dask on loopback."""

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import pytest
from tests.cli.test_batch import CHECK, HELLO, STALL, Batch, served
from tests.cli.test_run import Ran, variables

from handrail.cli import batch as batch_command
from handrail.cli.main import run
from handrail.testing.model_server import Reply

pytestmark = [pytest.mark.anyio]
needs_dask = pytest.mark.needs(".cluster/distributed")

ROOT = Path(__file__).resolve().parents[2]
DASK = {"PYTHONPATH": f"{ROOT / '.cluster'}:{ROOT / 'src'}", "PYTHONWARNINGS": "ignore"}
LOOPBACK = ("--host", "127.0.0.1", "--dashboard-address", "127.0.0.1:0")  # with --no-dashboard it listens everywhere


@dataclass(frozen=True, slots=True)
class Cluster:
    """A scheduler, and the way to start workers of it."""

    address: str
    scheduler: asyncio.subprocess.Process
    batch: Batch
    stack: AsyncExitStack

    @property
    def variables(self) -> dict[str, str]:
        own = {"ANTHROPIC_API_KEY": "k", "TMPDIR": str(self.batch.temporary)}
        return variables(self.batch.server, self.batch.folder) | own | DASK

    async def start(self, *flags: str) -> asyncio.subprocess.Process:
        words = ("batch", "run", "tasks.jsonl", "--out", "out", "--cluster", self.address, *flags)
        return await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "handrail", *words),
            cwd=self.batch.folder,
            env=self.variables,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )

    async def run(self, *flags: str) -> Ran:
        process = await self.start(*flags)
        out, errors = await process.communicate()
        assert process.returncode is not None
        return Ran(process.returncode, out.decode(), errors.decode())

    async def add_worker(self, name: str = "w", **more: str) -> asyncio.subprocess.Process:
        folder = self.batch.folder / f"worker-{name}"
        folder.mkdir()
        env = self.variables | more
        flags = ("--nthreads", "1", "--no-nanny", "--name", name, "--local-directory", str(folder))
        worker = await spawn(self.stack, folder, env, "dask_worker", self.address, *LOOPBACK, *flags)
        await line_with(worker, b"Registered to:")
        return worker


async def spawn(stack: AsyncExitStack, folder: Path, env: dict[str, str], *words: str) -> asyncio.subprocess.Process:
    module, *rest = words
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", f"distributed.cli.{module}", *rest),
        cwd=folder,
        env=env,
        stderr=asyncio.subprocess.PIPE,
        limit=1 << 24,
    )

    async def end() -> None:
        if process.returncode is None:
            process.kill()
        await process.communicate()

    stack.push_async_callback(end)
    return process


async def line_with(process: asyncio.subprocess.Process, text: bytes) -> bytes:
    assert process.stderr
    async for line in process.stderr:
        if text in line:
            return line
    raise AssertionError(f"it ended without {text!r}")


@asynccontextmanager
async def clustered(folder: Path, *replies: Reply) -> AsyncIterator[Cluster]:
    async with served(folder, *replies) as batch, AsyncExitStack() as stack:
        env = {**os.environ, **DASK}
        scheduler = await spawn(stack, folder, env, "dask_scheduler", *LOOPBACK, "--port", "0")
        line = await line_with(scheduler, b"Scheduler at:")
        yield Cluster(line.split()[-1].decode(), scheduler, batch, stack)


def begun(batch: Batch) -> list[int]:
    lines = (batch.folder / "out" / "attempts.jsonl").read_text().splitlines()
    return [json.loads(line)["attempt"] for line in lines]


@needs_dask
async def test_a_cluster_makes_the_results_that_this_machine_makes(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "a.txt").write_text("a")
    async with clustered(tmp_path, HELLO, HELLO) as cluster:
        batch = cluster.batch
        batch.write(
            {"id": "a", "prompt": "Say hello.", "folder": "shop", "check": CHECK},
            {"id": "b", "prompt": "Say hello.", "check": "echo no; exit 3"},
        )
        await cluster.add_worker("1")
        await cluster.add_worker("2")
        ran = await cluster.run("--json")
        assert ran.code == 0, ran.errors
        again = await batch.run("--json")  # on this machine

    lines = sorted(ran.lines, key=lambda each: str(each["task"]))
    assert [(each["task"], each["status"], each["why"], each["text"], each["attempts"]) for each in lines] == [
        ("a", "solved", "completed", "", 1),
        ("b", "failed", "check exit code 3", "no", 1),
    ]
    assert (again.out, "2 of 2 cells finished already" in again.errors) == ("", True)
    assert not (tmp_path / "out" / "claims").exists()
    assert [*batch.temporary.iterdir()] == []


@needs_dask
@pytest.mark.proves("R8")
async def test_an_attempt_whose_worker_is_killed_does_not_begin_twice_and_the_next_is_recorded(
    tmp_path: Path,
) -> None:
    async with clustered(tmp_path, STALL, HELLO) as cluster:
        batch = cluster.batch
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        worker = await cluster.add_worker("1")
        process = await cluster.start("--json", "--retries", "0")
        await batch.server.stalled.wait()

        worker.kill()
        await batch.server.left.wait()  # the agent ends with its worker
        await cluster.add_worker("2")  # dask hands the task to this one
        _, errors = await process.communicate()
        assert (process.returncode, begun(batch), len(batch.server.requests)) == (1, [1], 1), errors.decode()
        again = await cluster.run("--json")

    lost, solved = batch.results
    assert (lost["status"], lost["why"], lost["attempts"]) == ("infrastructure", "worker lost", 1)
    assert f"(process {worker.pid}) on " in lost["text"]
    assert "began it and was lost." in lost["text"]
    assert again.code == 0, again.errors
    assert (solved["status"], solved["attempts"], solved["unpriced_attempts"]) == ("solved", 2, 1)
    assert begun(batch) == [1, 2]
    assert [*batch.temporary.iterdir()] == []


@needs_dask
@pytest.mark.proves("R8")
@pytest.mark.parametrize(("sent", "code"), [(signal.SIGINT, 130), (signal.SIGKILL, -9)])
async def test_when_the_batch_ends_its_agents_on_workers_end_and_the_same_command_goes_on(
    tmp_path: Path, sent: signal.Signals, code: int
) -> None:
    async with clustered(tmp_path, STALL, HELLO) as cluster:
        batch = cluster.batch
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        await cluster.add_worker()
        process = await cluster.start()
        await batch.server.stalled.wait()

        process.send_signal(sent)
        _, errors = await process.communicate()
        await batch.server.left.wait()
        assert (process.returncode, batch.results) == (code, []), errors.decode()
        again = await cluster.run("--json")

    assert (again.code, [each["status"] for each in again.lines]) == (0, ["solved"]), again.errors
    assert begun(batch) == [1, 2]
    assert (tmp_path / "out" / "claims").exists() is False
    assert [*batch.temporary.iterdir()] == []


@needs_dask
async def test_a_batch_ends_when_its_scheduler_is_lost_and_says_what_to_do(tmp_path: Path) -> None:
    async with clustered(tmp_path, STALL) as cluster:
        batch = cluster.batch
        batch.write({"id": "a", "prompt": "Say hello.", "check": "true"})
        await cluster.add_worker()
        process = await cluster.start()
        await batch.server.stalled.wait()

        cluster.scheduler.kill()
        _, errors = await process.communicate()
        await batch.server.left.wait()

    assert (process.returncode, batch.results) == (1, [])
    assert "was lost" in errors.decode()
    assert "Start the same command again when it is back: it goes on with what is missing." in errors.decode()


@needs_dask
@pytest.mark.parametrize(
    ("more", "problem"),
    [
        pytest.param(
            {"HANDRAIL_CONFIG_DIR": "/none"},
            "its user has other settings, memory files, skills or plugins. Make them the same there.",
            id="settings",
        ),
        pytest.param({"PYTHONPATH": f"{ROOT}/.cluster:{{broken}}"}, "ModuleNotFoundError", id="no handrail"),
    ],
)
async def test_a_worker_that_would_run_something_else_is_refused_before_anything_runs(
    tmp_path: Path, more: dict[str, str], problem: str
) -> None:
    broken = tmp_path / "broken"
    (broken / "handrail").mkdir(parents=True)
    (broken / "handrail" / "__init__.py").write_text("raise ModuleNotFoundError(\"No module named 'handrail'\")")
    settings = tmp_path / "home" / ".handrail" / "settings.json"
    settings.parent.mkdir(parents=True)
    settings.write_text('{"permissions": {"deny": ["Bash"]}}')
    async with clustered(tmp_path) as cluster:
        cluster.batch.write({"id": "a", "prompt": "Say hello."})
        await cluster.add_worker(**{name: value.format(broken=broken) for name, value in more.items()})
        ran = await cluster.run()

    assert (ran.code, cluster.batch.results) == (2, [])
    assert f"the worker {ran.errors.partition('the worker ')[2].split()[0]} cannot run this batch: " in ran.errors
    assert problem in ran.errors


@needs_dask
async def test_a_scheduler_that_does_not_answer_is_named(tmp_path: Path) -> None:
    async with clustered(tmp_path) as cluster:
        cluster.batch.write({"id": "a", "prompt": "Say hello."})
        ran = await replace(cluster, address="nonsense://127.0.0.1:1").run()

    assert (ran.code, "--cluster: the scheduler nonsense://127.0.0.1:1 does not answer: " in ran.errors) == (2, True)


async def test_without_dask_the_package_to_install_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(batch_command, "find_spec", lambda name: None)

    assert run(["batch", "run", "none.jsonl", "--out", str(tmp_path / "out"), "--cluster", "tcp://127.0.0.1:1"]) == 2
    assert "Install it with: pip install 'handrail[cluster]'" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
