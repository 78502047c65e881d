"""What a run and its check mean: a table of cases."""

import json
from typing import Any

import pytest

from handrail.batch.outcome import CellStatus, CellVerdict, infrastructure_error, judge, read_result
from handrail.processes.run import Ended

ENDED = Ended(0, b"", b"")
SLOW = Ended(-15, b"", b"", timed_out=True)
DONE = {"terminal_reason": "completed", "result": "Done.", "num_turns": 2}


def failed(status: int | None, turns: int = 0) -> dict[str, Any]:
    status_field = {} if status is None else {"api_error_status": status}
    return {"terminal_reason": "model_failed", "result": "no answer", "num_turns": turns, **status_field}


@pytest.mark.parametrize(
    ("ended", "result", "why", "retryable"),
    [
        pytest.param(ENDED, failed(None, 3), "connection", True, id="the connection broke"),
        pytest.param(ENDED, failed(429), "rate limit", True, id="too many requests"),
        pytest.param(ENDED, failed(529, 7), "rate limit", True, id="overloaded in the middle"),
        pytest.param(ENDED, failed(500), "status 500", True, id="a server that fails"),
        pytest.param(ENDED, failed(408), "status 408", True, id="a server that gave up"),
        pytest.param(ENDED, failed(401), "status 401", False, id="a wrong key"),
        pytest.param(ENDED, failed(404, 1), "status 404", False, id="an unknown model"),
        pytest.param(ENDED, failed(400), "status 400", False, id="refused before the agent did anything"),
        pytest.param(ENDED, {"result": "There is no key."}, "not started", False, id="no key"),
        pytest.param(Ended(-9, b"", b""), {}, "killed by signal 9", True, id="killed for its memory"),
        pytest.param(Ended(1, b"", b"Traceback"), {}, "no result", True, id="crashed"),
        pytest.param(ENDED, {"terminal_reason": "aborted_tools"}, "interrupted", True, id="a signal from outside"),
    ],
)
def test_what_the_infrastructure_did_is_no_failure_of_the_agent(
    ended: Ended, result: dict[str, Any], why: str, retryable: bool
) -> None:
    found = infrastructure_error(ended, result)

    assert found is not None
    assert (found.status, found.why, found.retryable) == (CellStatus.INFRASTRUCTURE, why, retryable)


@pytest.mark.parametrize(
    ("ended", "result"),
    [
        pytest.param(ENDED, DONE, id="it answered"),
        pytest.param(ENDED, {**DONE, "terminal_reason": "max_turns"}, id="it ran into a limit"),
        pytest.param(ENDED, failed(400, 5), id="the agent's own request is refused"),
        pytest.param(SLOW, {}, id="it ran over its time, and said nothing"),
        pytest.param(SLOW, {"terminal_reason": "aborted_streaming"}, id="it ran over its time, and said so"),
    ],
)
def test_what_the_agent_did_is_no_error_of_the_infrastructure(ended: Ended, result: dict[str, Any]) -> None:
    assert infrastructure_error(ended, result) is None


@pytest.mark.parametrize(
    ("ended", "reason", "check", "verdict"),
    [
        pytest.param(
            ENDED, "completed", Ended(0, b"2 passed\n", b""), (CellStatus.SOLVED, "completed", "2 passed"), id="solved"
        ),
        pytest.param(
            ENDED,
            "completed",
            Ended(3, b"o", b""),
            (CellStatus.FAILED, "check exit code 3", "o"),
            id="failed",
        ),
        pytest.param(ENDED, "max_turns", ENDED, (CellStatus.SOLVED, "max_turns", ""), id="solved at a limit"),
        pytest.param(ENDED, "max_turns", Ended(1, b"", b""), (CellStatus.FAILED, "max_turns", ""), id="failed at it"),
        pytest.param(ENDED, "completed", SLOW, (CellStatus.FAILED, "check timeout", ""), id="the check takes too long"),
        pytest.param(SLOW, "", None, (CellStatus.FAILED, "timeout", ""), id="it ran over its time"),
    ],
)
def test_the_check_decides(ended: Ended, reason: str, check: Ended | None, verdict: tuple[Any, ...]) -> None:
    assert judge(ended, {"terminal_reason": reason}, check, has_check=True) == CellVerdict(*verdict)


@pytest.mark.parametrize(("ended", "why"), [(ENDED, "completed"), (SLOW, "timeout")])
def test_without_a_check_nothing_is_known(ended: Ended, why: str) -> None:
    assert judge(ended, DONE, None, has_check=False) == CellVerdict(CellStatus.UNCHECKED, why)


def test_of_a_long_output_the_end_is_kept() -> None:
    found = judge(ENDED, DONE, Ended(1, b"x" * 10_000 + b"FAILED", b""), has_check=True)

    assert (len(found.text), found.text[-6:]) == (2_000, "FAILED")


@pytest.mark.parametrize("output", [b"", b"{", b"[]", b"\xff", b"1", b"[" * 100_000])
def test_what_is_no_result_object_is_none(output: bytes) -> None:
    assert read_result(output) == {}
    assert read_result(json.dumps(DONE).encode()) == DONE
