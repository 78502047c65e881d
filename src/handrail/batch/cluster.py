"""
Runs attempts on a dask cluster, by dask.distributed, which is imported here only.

dask hands a task out again when its worker is lost, up to three times. It is never told to retry, and a task that was
begun before runs nothing (`cluster_job`): whether there is another attempt is decided and written down here, as for
attempts on this machine.
"""

import asyncio
import logging
import os
import shutil
from collections.abc import AsyncIterator, Iterator, Mapping
from concurrent.futures import CancelledError
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import Any

from distributed import Client, KilledWorker, Status, Worker, get_worker

from handrail.batch.cells import CellAttempt
from handrail.batch.cluster_job import (
    ANSWER,
    BATCH,
    JOB,
    ClusterAnswer,
    ClusterBatch,
    ClusterJob,
    attempt_end,
    read_answer,
    run_job,
    worker_problem,
)
from handrail.batch.run_cells import AttemptEnd
from handrail.errors import BatchError, HandrailError

CONNECT_SECONDS = 20.0
LOOK_SECONDS = 0.25
"""Between two looks of a worker whether its attempt is still wanted."""


class ClusterExecutor:
    """Runs each attempt as one task of a cluster."""

    def __init__(self, client: Client, batch: ClusterBatch) -> None:
        self._client = client
        self._batch = batch

    async def slots(self) -> int:
        """How many tasks the workers run at once; 0 if there are none yet."""
        return sum((await self._client.nthreads()).values())

    async def check_workers(self) -> None:
        """Raises HandrailError if a worker that is there cannot run the batch."""
        data = BATCH.dump_python(self._batch, mode="json")
        answers = await self._client.run(worker_problem, data, on_error="return")
        for address, answer in answers.items():
            if problem := _error_text(answer) if isinstance(answer, BaseException) else answer:
                raise HandrailError(f"the worker {address} cannot run this batch: {problem}")

    async def run(self, attempt: CellAttempt) -> AttemptEnd:
        """How an attempt ends on some worker. Cancelling this ends it there."""
        job = JOB.dump_python(ClusterJob(self._batch, attempt, attempt.cell.key), mode="json")
        name = f"handrail-{attempt.cell.task.id}-{attempt.number}-{attempt.session}"
        future = self._client.submit(run_on_worker, job, key=name, pure=False, retries=0)
        try:
            answer = read_answer(await future.result())
        except KilledWorker as error:
            answer = ClusterAnswer(lost=str(error.last_worker.address))
        except (asyncio.CancelledError, CancelledError, OSError) as error:
            if (task := asyncio.current_task()) and task.cancelling():
                await self._client.cancel([future], force=True)
                raise
            raise BatchError(
                f"the scheduler {self._client.scheduler.address} was lost ({error}). Start the same command again when "
                "it is back: it goes on with what is missing."
            ) from error
        except Exception as error:  # noqa: BLE001  # whatever a worker raises, such as that handrail is not there
            answer = ClusterAnswer(problem=_error_text(error))
        finally:
            future.release()
        with suppress(OSError):
            (self._batch.claims / attempt.session).unlink()  # the task cannot be handed out again
        return attempt_end(attempt, answer)


def _error_text(error: BaseException) -> str:
    hint = " Install handrail there." if isinstance(error, ModuleNotFoundError) else ""
    return f"{type(error).__name__}: {error}.{hint}"


@asynccontextmanager
async def open_cluster(address: str, batch: ClusterBatch) -> AsyncIterator[ClusterExecutor]:
    """An executor on the cluster of this scheduler; HandrailError if it does not answer."""
    logging.getLogger("distributed").setLevel(logging.CRITICAL)  # noqa: TID251  # what happens is said in results
    with _claims(batch):
        client = await _connect(address)
        try:
            yield ClusterExecutor(client, batch)
        finally:
            await client.close()


async def _connect(address: str) -> Client:
    try:
        return await Client(address, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
    except (OSError, ValueError) as error:
        raise HandrailError(f"--cluster: the scheduler {address} does not answer: {error}") from error


@contextmanager
def _claims(batch: ClusterBatch) -> Iterator[None]:
    """The folder of claims, with the file that workers must see."""
    batch.claims.mkdir(exist_ok=True)
    (batch.claims / batch.token).touch(exist_ok=False)
    try:
        yield
    finally:
        shutil.rmtree(batch.claims, ignore_errors=True)  # the scheduler has forgotten the tasks of a client that closed


# On a worker


def run_on_worker(data: Mapping[str, Any]) -> dict[str, Any]:
    """The task that workers run, in a thread of theirs; JSON comes and goes."""
    if problem := worker_problem(data["batch"]):
        answer = ClusterAnswer(problem=problem)
    else:
        answer = asyncio.run(_while_wanted(JOB.validate_python(data)))
    found: dict[str, Any] = ANSWER.dump_python(answer, mode="json")
    return found


async def _while_wanted(job: ClusterJob) -> ClusterAnswer:
    worker = get_worker()
    key = worker.get_current_task()
    work = asyncio.ensure_future(run_job(job, f"{worker.address} (process {os.getpid()})"))
    while _is_wanted(worker, key):
        if (await asyncio.wait([work], timeout=LOOK_SECONDS))[0]:
            return await work
    work.cancel()
    with suppress(asyncio.CancelledError):
        return await work
    return ClusterAnswer(problem="it was cancelled")


def _is_wanted(worker: Worker, key: str) -> bool:
    """Whether the client still waits for a task: neither it nor the worker is about to end."""
    task = worker.state.tasks.get(key)
    return task is not None and task.state == "executing" and worker.status in (Status.running, Status.paused)
