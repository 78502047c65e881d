"""`handrail schedule`: list, add, remove, and starting what is due with no session open."""

import asyncio
import json
import signal
from datetime import datetime
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

import pytest
from tests.cli.test_run import variables
from tests.forked import program

from handrail.cli.main import run
from handrail.conversation.blocks import Text
from handrail.schedules import clock
from handrail.testing.model_server import ModelServer, Reply


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    work = tmp_path / "project"
    work.mkdir()
    monkeypatch.chdir(work)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("HANDRAIL_STATE_DIR", f"{work}-state")
    monkeypatch.setenv("TZ", "Asia/Kolkata")
    return work


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> Any:
    assert run(["schedule", *arguments, "--json"]) == code
    return json.loads(capsys.readouterr().out)


def test_what_is_added_is_listed_in_local_time_and_removed(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["schedule", "list"]) == 0
    assert "There are no schedules." in capsys.readouterr().out
    daily = printed(capsys, "add", "30 9 * * 1-5", "Look at the build.", "--forever")
    once = printed(capsys, "add", "0 0 1 1 *", "Happy new year.", "--once")
    assert (daily["words"], daily["ends"], daily["folder"]) == ("every weekday at 09:30", None, str(folder.resolve()))
    assert daily["shown_next"].endswith(" 09:30")
    assert (once["recurring"], once["words"]) == (False, f"once, {once['shown_next']}")
    assert {row["id"] for row in printed(capsys, "list")} == {daily["id"], once["id"]}

    assert run(["schedule", "remove", once["id"], "nope"]) == 2
    assert "there is no schedule 'nope'" in capsys.readouterr().err
    assert len(printed(capsys, "list")) == 2  # all or none
    assert printed(capsys, "remove", once["id"]) == {"removed": [once["id"]]}
    assert run(["schedule", "list"]) == 0
    assert capsys.readouterr().out.endswith(f"every weekday at 09:30  {folder.resolve()}\n    Look at the build.\n")


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["add", "0 25 * * *", "x"], "The hour '25' is not understood"),
        (["add", "0 9 * * *", "  "], "The prompt is empty."),
        (["add", "0 0 30 2 *", "x"], "'0 0 30 2 *' never fires: no such month has a day 30"),
        (["add", "0 0 29 2 *", "x"], "comes next on 2028-02-29 00:00, after this schedule has ended (2027-01-22"),
        (["add", "0 0 29 2 *", "x", "--days", "9"], "never come. Give --once, --days 410 or --forever."),
    ],
)
def test_what_cannot_be_kept_is_refused(
    arguments: list[str], problem: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    now = datetime(2027, 1, 15, tzinfo=ZoneInfo("Asia/Kolkata")).timestamp()
    monkeypatch.setattr(clock, "now", lambda: now)
    assert run(["schedule", *arguments]) == 2
    assert problem in capsys.readouterr().err


async def lines_of(process: asyncio.subprocess.Process) -> list[dict[str, Any]]:
    out, errors = await process.communicate()
    assert errors == b""
    return [json.loads(line) for line in out.splitlines()]


@pytest.fixture
def due(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> str:
    """The id of a schedule that was added ten minutes ago, so that it is due."""
    past = clock.now() - 600
    with monkeypatch.context() as patch:
        patch.setattr(clock, "now", lambda: past)
        return str(printed(capsys, "add", "* * * * *", "Look at the build.", "--once")["id"])


@pytest.mark.anyio
async def test_two_clocks_that_start_what_is_due_start_it_once(
    folder: Path, due: str, capsys: pytest.CaptureFixture[str]
) -> None:
    async with ModelServer([Reply((Text("All green."),))], strict=True) as server, asyncio.timeout(60):
        env = variables(server, folder) | {"ANTHROPIC_API_KEY": "k"}
        start = (program(), "schedule", "run", "--once", "--json")
        both = [
            await asyncio.create_subprocess_exec(
                *start, cwd=folder.parent, env=env, stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
            )
            for _ in range(2)
        ]
        told = [line for lines in await asyncio.gather(*map(lines_of, both)) for line in lines]
    assert [(line["type"], line.get("exit")) for line in told] == [("started", None), ("ended", 0)]
    assert told[1]["result"] == "All green."
    assert "<scheduled-prompt id=" in json.dumps(server.requests[0].body["messages"])
    assert [process.returncode for process in both] == [0, 0]
    assert {line["id"] for line in told} == {due}
    assert printed(capsys, "list") == []


@pytest.mark.anyio
@pytest.mark.proves("R9")
async def test_one_is_started_by_its_id_and_a_lost_folder_is_named(folder: Path, due: str) -> None:
    marker = folder.parent / "ran"
    (folder / "argparse.py").write_text(f"open({str(marker)!r}, 'w')")
    async with ModelServer([Reply((Text("All green."),))], strict=True) as server, asyncio.timeout(60):
        env = variables(server, folder) | {"ANTHROPIC_API_KEY": "k"}

        async def start() -> tuple[int | None, str]:
            process = await asyncio.create_subprocess_exec(
                program(), "schedule", "run", due, cwd=folder.parent, env=env, stdout=asyncio.subprocess.PIPE
            )
            out, _ = await process.communicate()
            return process.returncode, out.decode()

        code, text = await start()
        assert not marker.exists()  # the folder is not trusted, so no module of it may run
        assert (code, "ended with 0 (handrail --resume" in text, text.endswith(": All green.\n")) == (0, True, True)
        folder.rename(folder.with_name("elsewhere"))
        code, text = await start()
    assert code == 1
    assert "could not be started" in text


@pytest.mark.anyio
async def test_it_stays_until_a_signal_and_tells_what_was_missed_before_it_began(
    due: str,
) -> None:
    async with asyncio.timeout(60):
        process = await asyncio.create_subprocess_exec(
            program(), "schedule", "run", "--json", stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.PIPE
        )
        assert process.stdout is not None
        told = json.loads(await process.stdout.readline())
        process.send_signal(signal.SIGTERM)
        assert await lines_of(process) == []
    assert (told["type"], told["id"]) == ("missed", due)
    assert "when no session was open. It was not started. It will not come again." in told["text"]
    assert process.returncode == 143
