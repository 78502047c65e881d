"""What a short helper program prints: a credential, a policy. No process of it is left when this returns."""

import os
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress

MAX_BYTES = 4_000_000


def output_of(arguments: Sequence[str], *, cwd: str, env: Mapping[str, str], timeout: float) -> bytes:
    """
    The standard output of a program that ends well.

    Raises:
        OSError: it did not start, failed, printed too much or took too long. The text never holds its output.
    """
    process = subprocess.Popen(  # noqa: S603  # the command of somebody who may name one
        list(arguments),
        cwd=cwd,
        env=dict(env),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        start_new_session=True,
    )
    try:
        out, errors = process.communicate(timeout=timeout)
    except subprocess.TimeoutExpired:
        raise OSError(f"it did not finish within {timeout:g} seconds") from None
    finally:
        _end(process)
    if process.returncode:
        said = errors.decode("utf-8", "replace").strip().partition("\n")[0][:200]
        raise OSError(f"it ended with exit code {process.returncode}" + (f" ({said})" if said else ""))
    if len(out) > MAX_BYTES:
        raise OSError(f"it printed more than {MAX_BYTES:,} bytes")
    return out


def _end(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):  # everybody of the group has left
        os.killpg(process.pid, signal.SIGKILL)
    for stream in (process.stdout, process.stderr):
        if stream:
            stream.close()
    process.wait()
