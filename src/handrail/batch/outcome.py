"""What a finished run and its check mean: solved, failed, unchecked, or an error of the infrastructure. Pure."""

import json
from collections.abc import Mapping
from enum import Enum
from typing import Any

from handrail.processes.run import Ended
from handrail.records import record

RETRYABLE = frozenset({408, 409, 429})
REFUSALS = frozenset({401, 402, 403, 404})
"""The account or the name of the model is at fault, and a retry does not help."""
MAX_TEXT = 2_000
NOT_STARTED = "not started"
"""There is no key, a settings file is broken, or a cassette is missing."""


class CellStatus(Enum):
    """What came of a cell. Only the first two count for a solve rate."""

    SOLVED = "solved"
    FAILED = "failed"
    UNCHECKED = "unchecked"
    INFRASTRUCTURE = "infrastructure"


@record
class CellVerdict:
    """What came of a cell, and why; `retryable`: another try may end differently."""

    status: CellStatus
    why: str
    text: str = ""
    retryable: bool = False


def read_result(output: bytes) -> dict[str, Any]:
    """The result object that `handrail -p` printed; empty if there is none."""
    try:
        found = json.loads(output)
    except (ValueError, RecursionError):  # the inputs of refused calls are the model's
        return {}
    return found if isinstance(found, dict) else {}


def infrastructure_error(ended: Ended, result: Mapping[str, Any]) -> CellVerdict | None:
    """The error of the machine, the connection or the server that ended a run; None if the run itself ended."""
    if ended.timed_out:
        return None
    if not result:
        said = ended.stderr.decode("utf-8", "replace").strip()
        why = f"killed by signal {-ended.code}" if ended.code < 0 else "no result"
        return _infrastructure(why, said, retryable=True)
    reason, text = result.get("terminal_reason"), str(result.get("result") or "")
    if reason is None:
        return _infrastructure(NOT_STARTED, text, retryable=False)
    if reason != "model_failed":
        return _infrastructure("interrupted", text, retryable=True) if _is_interrupted(reason) else None
    status = result.get("api_error_status")
    if status is None:
        return _infrastructure("connection", text, retryable=True)
    if status in RETRYABLE or status >= 500:
        return _infrastructure("rate limit" if status in (429, 529) else f"status {status}", text, retryable=True)
    if status in REFUSALS or not result.get("num_turns"):
        return _infrastructure(f"status {status}", text, retryable=False)
    return None


def _is_interrupted(reason: str) -> bool:
    """Whether a signal from outside ended the run, and no limit of ours."""
    return reason.startswith("aborted")


def _infrastructure(why: str, text: str, *, retryable: bool) -> CellVerdict:
    return CellVerdict(CellStatus.INFRASTRUCTURE, why, text[-MAX_TEXT:], retryable)


def judge(ended: Ended, result: Mapping[str, Any], check: Ended | None, *, has_check: bool) -> CellVerdict:
    """What a run that ended by itself, or at its time limit, came to. After the time limit there is no check."""
    reason = "timeout" if ended.timed_out else str(result.get("terminal_reason") or "")
    if not has_check:
        return CellVerdict(CellStatus.UNCHECKED, reason)
    if check is None:
        return CellVerdict(CellStatus.FAILED, reason)
    said = (check.stdout + check.stderr).decode("utf-8", "replace").strip()[-MAX_TEXT:]
    if check.timed_out:
        return CellVerdict(CellStatus.FAILED, "check timeout", said)
    if check.code == 0:
        return CellVerdict(CellStatus.SOLVED, reason, said)
    return CellVerdict(CellStatus.FAILED, f"check exit code {check.code}" if reason == "completed" else reason, said)
