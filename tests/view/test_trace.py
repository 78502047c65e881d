"""`handrail sessions export --format trace`: a run as Perfetto and Chrome's tracing view read it."""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Agent
from handrail.cli.main import run
from handrail.testing import ScriptedModel, say, use
from handrail.view.trace import Lanes


@pytest.fixture
async def session(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a.txt").write_text("one\n")
    answers: Sequence[Sequence[Any]] = [
        [use("r", "Read", file_path="a.txt"), use("s", "Read", file_path="b.txt"), use("b", "Bash", command="touch b")],
        [say("Done.")],
    ]
    async with Agent(ScriptedModel(answers), cwd=tmp_path, session=True, state_dir=tmp_path / "state") as agent:
        await agent.ask("Do it.")
        assert agent.session.transcript is not None
        return agent.session.transcript.path.stem


def inside(inner: Mapping[str, Any], outer: Mapping[str, Any]) -> bool:
    return bool(outer["ts"] <= inner["ts"] and inner["ts"] + inner["dur"] <= outer["ts"] + outer["dur"])


@pytest.mark.anyio
async def test_a_trace_has_requests_and_calls_with_their_stages_inside(session: str, tmp_path: Path) -> None:
    out = tmp_path / "run.json"

    assert run(["sessions", "export", session, "--format", "trace", "-o", str(out)]) == 0

    found = json.loads(out.read_text())
    spans = [event for event in found["traceEvents"] if event["ph"] == "X"]
    calls = {event["args"]["id"]: event for event in spans if "id" in event.get("args", {})}
    assert [event["name"].split()[0] for event in spans if event["cat"] == "model"] == ["chat", "chat"]
    assert {name: (call["name"], call["cat"]) for name, call in calls.items()} == {
        "r": ("Read a.txt", "ok"), "s": ("Read b.txt", "error"), "b": ("Bash touch b", "denied"),
    }  # fmt: skip
    assert calls["b"]["args"]["decision"]["verdict"] == "deny"
    stages = [event for event in spans if event["cat"] == "stage"]
    assert {"queued", "decided", "ran"} <= {event["name"] for event in stages}
    for stage in stages:
        assert any(call["tid"] == stage["tid"] and inside(stage, call) for call in calls.values()), stage
    names = {event["args"]["name"] for event in found["traceEvents"] if event["name"] == "thread_name"}
    assert {"model", "calls 1"} <= names
    assert found["otherData"]["id"] == session


@pytest.mark.anyio
async def test_contents_can_be_left_out_and_a_file_is_never_overwritten(
    session: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "run.json"
    assert run(["sessions", "export", session, "--format", "trace", "--no-contents", "-o", str(out)]) == 0
    text = out.read_text()

    assert "a.txt" not in text
    assert "touch" not in text
    assert str(tmp_path) not in text
    assert '"Bash"' in text
    assert run(["sessions", "export", session, "--format", "trace", "-o", str(out)]) == 1
    assert "exists" in capsys.readouterr().err
    assert run(["sessions", "export", session, "--format", "markdown", "--no-contents"]) == 1


@given(st.lists(st.tuples(st.integers(0, 50), st.integers(0, 20)), max_size=40))
def test_spans_of_one_row_never_overlap_and_no_row_is_wasted(spans: Sequence[tuple[int, int]]) -> None:
    lanes = Lanes()
    rows: dict[int, int] = {}
    most = 0
    for start, length in sorted(spans):
        lane, is_new = lanes.take(start, start + length)
        assert is_new == (lane not in rows)
        assert rows.get(lane, 0) <= start
        rows[lane] = start + length
        most = max(most, sum(1 for end in rows.values() if end > start) + (length == 0))
    assert len(rows) <= most
