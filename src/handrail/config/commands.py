"""Runs a helper program that prints a credential or a policy, and leaves no process behind."""

import asyncio
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor

from handrail.processes.run import Ended, run

MAX_BYTES = 4_000_000


def output_of(arguments: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float) -> bytes:
    """
    The standard output of a program that succeeds.

    Raises:
        OSError: it did not start, failed, printed too much or took too long. The text never holds its output.
    """
    ended = _wait_for(arguments, cwd, env, timeout)
    if ended.timed_out:
        raise OSError(f"it did not finish within {timeout:g} seconds")
    if ended.code:
        reason = ended.stderr.decode("utf-8", "replace").strip().partition("\n")[0][:200]
        raise OSError(f"it ended with exit code {ended.code}" + (f" ({reason})" if reason else ""))
    if len(ended.stdout) > MAX_BYTES:
        raise OSError(f"it printed more than {MAX_BYTES:,} bytes")
    return ended.stdout


def _wait_for(arguments: Sequence[str], cwd: str, env: Mapping[str, str], timeout: float) -> Ended:
    work = run(arguments, cwd=cwd, env=env, timeout=timeout, max_bytes=MAX_BYTES + 1)
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(work)
    with ThreadPoolExecutor(1) as thread:  # settings may be read inside an event loop
        return thread.submit(asyncio.run, work).result()
