"""`handrail stats`: sums over sessions, as people and programs get them."""

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.main import run
from handrail.cli.stats import report
from handrail.cli.terminal import ReportScreen
from handrail.view.stats_files import read_stats

DENIED = "user settings, line 3: Bash(rm *)"


def line(kind: str, at: str, **values: Any) -> dict[str, Any]:
    return {"type": kind, **values, "sessionId": "s", "timestamp": f"{at}.000Z"}


def answer(at: str, dollars: float | None, tool: str, call: str, command: str = "ls") -> list[dict[str, Any]]:
    usage = {"input": 100, "output": 10, "cache_read": 300, "cache_write": 0}
    block = {"type": "tool_use", "id": call, "name": tool, "input": {"command": command}}
    return [
        line("handrail", at, event="requested", turn=1, model="m"),
        line("assistant", at, message={"role": "assistant", "model": "m", "content": [block]}),
        line("handrail", at[:-1] + "9", event="answered", model="m", usage=usage, dollars=dollars),
    ]


def result(at: str, call: str, status: str, ran: int) -> dict[str, Any]:
    block = {"type": "tool_result", "tool_use_id": call, "content": "x" * 5_000, "is_error": status != "ok"}
    ending = {"status": status, "cause": "done", "micros": [1_000_000, 0, 3_000_000, ran, 0]}
    return line("user", at, ending=ending, message={"role": "user", "content": [block]})


def session(state: Path, cwd: str, name: str, lines: Sequence[Mapping[str, Any]]) -> Path:
    folder = state / "sessions" / cwd.replace("/", "-")
    folder.mkdir(parents=True, exist_ok=True)
    opened = line("handrail", str(lines[0]["timestamp"])[:-5], event="opened", version=1, cwd=cwd)
    path = folder / f"{name}.jsonl"
    path.write_text("".join(json.dumps(each) + "\n" for each in (opened, *lines)))
    return path


def decision(name: str, call: str, verdict: str, *, asked: bool, by: str = "deny rule") -> dict[str, Any]:
    opinion = {"layer": "deny rule", "says": verdict, "strength": "deny", "reason": "r", "rule": DENIED}
    return {
        "v": 1, "at": 1794912337.5, "session": name, "agent": "main", "call": call, "tool": "Bash", "input": {},
        "decision": verdict, "by": by, "reason": "r", "opinions": [opinion], "micros": [5, 2_000_000],
        "asked": asked,
    }  # fmt: skip


@pytest.fixture
def state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("TZ", "UTC")
    found = tmp_path / "state"
    first = [
        *answer("2026-11-17T10:00:00", 0.5, "Bash", "a", "=A1()"), result("2026-11-17T10:00:09", "a", "ok", 9_000_000),
        *answer("2026-11-17T10:01:00", None, "Bash", "b"), result("2026-11-17T10:01:09", "b", "denied", 0),
    ]  # fmt: skip
    second = [*answer("2026-11-16T10:00:00", 0.25, "Read", "c"), result("2026-11-16T10:00:09", "c", "error", 1_000)]
    old = [*answer("2025-01-01T10:00:00", 9.0, "Read", "d")]
    session(found, "/srv/one", "one", first)
    session(found, "/srv/one/sub", "two", [*old, *second])
    session(found, "/srv/other", "three", [*answer("2026-11-17T11:00:00", 0.25, "Read", "e\u202e\n\x1b[2J")])
    (found / "audit").mkdir()
    lines = [decision("one", "a", "allow", asked=True), decision("one", "b", "deny", asked=False)]
    log = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines)
    (found / "audit" / "20261117T100000-x.jsonl").write_text(log + '{"decision":"deny", broken\n')
    return found


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    assert run(["stats", "--since", "2026-01-01", *arguments]) == 0
    return capsys.readouterr().out


def test_sums_are_those_of_the_sessions_since_a_moment(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = json.loads(printed(capsys, "--json"))

    assert found["total"] == {
        "sessions": 3, "turns": 4, "calls": 4, "failed": 1, "denied": 1, "dollars": 1.0, "unpriced": 1, "asked": 1,
        "unanswered": 0,
        "tokens": {"input": 400, "output": 40, "cache_read": 1200, "cache_write": 0}, "cache_share": 0.75,
    }  # fmt: skip
    assert found["stages"] == {
        "model": 36.0, "queued": 3.0, "validated": 0.0, "decided": 7.0, "waited": 2.0, "ran": 9.001, "fitted": 0.0,
    }  # fmt: skip
    assert [(row["day"], row["sessions"], row["calls"]) for row in found["days"]] == [
        ("2026-11-16", 1, 1), ("2026-11-17", 2, 3),
    ]  # fmt: skip
    assert {row["cwd"]: row["dollars"] for row in found["folders"]} == {
        "/srv/one": 0.5, "/srv/one/sub": 0.25, "/srv/other": 0.25,
    }  # fmt: skip
    assert found["tools"][0] == {
        "tool": "Bash", "calls": 2, "failed": 0, "denied": 1, "seconds": 9.0, "slowest": 9.0,
    }  # fmt: skip
    assert found["denials"] == [{"rule": DENIED, "count": 1, "tools": ["Bash"]}]
    assert [(row["call"], row["seconds"]) for row in found["slowest"]] == [("a", 9.0), ("c", 0.001)]


def test_questions_that_no_one_was_there_to_answer_are_counted_apart(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = [
        decision("one", "a", "deny", asked=True, by="nobody"),
        decision("one", "b", "cancelled: interrupted", asked=True, by="nobody"),
        decision("one", "c", "deny", asked=True, by="person Ada"),
    ]
    log = "".join(json.dumps(each, separators=(",", ":")) + "\n" for each in lines)
    (state / "audit" / "20261117T110000-y.jsonl").write_text(log)

    total = json.loads(printed(capsys, "--json"))["total"]
    assert (total["asked"], total["unanswered"]) == (3, 1)
    assert "3 questions; 1 more with no one there to answer" in printed(capsys)


def test_a_sum_of_prices_is_written_as_people_add_it(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    day = "2026-11-17T11:00:0"
    session(state, "/srv/cents", "cents", [*answer(f"{day}0", 0.1, "Read", "x"), *answer(f"{day}1", 0.2, "Read", "y")])

    assert json.loads(printed(capsys, "--folder", "/srv/cents", "--json"))["total"]["dollars"] == 0.3


def test_a_folder_counts_with_what_is_below_it_and_all_counts_what_is_old(
    state: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = json.loads(printed(capsys, "--folder", "/srv/one", "--json"))
    everything = json.loads(printed(capsys, "--all", "--json"))

    assert (inside["total"]["sessions"], inside["total"]["dollars"]) == (2, 0.75)
    assert (everything["total"]["turns"], everything["total"]["dollars"]) == (5, 10.0)


def test_a_table_for_a_spreadsheet_computes_nothing(state: Path, capsys: pytest.CaptureFixture[str]) -> None:
    slowest = list(csv.DictReader(io.StringIO(printed(capsys, "--csv", "slowest"))))
    sessions = list(csv.DictReader(io.StringIO(printed(capsys, "--csv"))))

    assert slowest[0]["subject"] == "'=A1()"
    assert [(row["session"], row["tokens_cache_read"]) for row in sessions] == [
        ("one", "600"), ("three", "300"), ("two", "300"),
    ]  # fmt: skip


def test_the_report_names_what_matters_and_fits_sixty_columns(
    state: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    text = printed(capsys)
    stats, problems = read_stats(sorted((state / "sessions").rglob("*.jsonl")), state, 0.0, lambda _number: None)
    screen = ReportScreen(io.StringIO())
    screen.width = 60
    narrow = list(report(stats, screen))

    assert "3 sessions since 2026-01-01 00:00: 4 turns, 4 calls (1 failed, 1 denied)" in text
    assert "$1.00, without 1 answer of unknown price" in text
    assert "75% of the input came from the cache" in text
    assert f"1  {DENIED} (Bash)" in text
    assert problems == []
    assert max(map(len, narrow)) <= 60
    assert not {"\x1b", "\u202e"} & set("\n".join(narrow) + text)


def test_without_sessions_it_says_so_and_a_wrong_time_is_an_error(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "none"))

    assert "There are no sessions since" in printed(capsys)
    assert run(["stats", "--since", "soon"]) == 2
    assert "'soon' is not a time" in capsys.readouterr().err
    assert not (tmp_path / "none").exists()
