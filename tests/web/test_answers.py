"""Every way to answer that the terminal has, on the page too."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from playwright.async_api import Browser, Locator, Page

from handrail.conversation.blocks import Text, ToolUse
from handrail.session.live.question_json import MAX_SHOWN
from handrail.testing.model_server import ModelServer, Reply
from handrail.web.live import live_sessions
from tests.remote.serving import all_lines, get, served, start, write_config
from tests.web.test_live import asks, audit, pages, started

pytestmark = pytest.mark.anyio


def command(number: int, text: str, to: str) -> Reply:
    return Reply((ToolUse(f"t{number}", "Bash", {"command": text}),), to=to)


def asked(page: Page, words: str) -> Locator:
    """The question about a call whose input contains these words."""
    return page.get_by_role("region", name="Bash needs your permission").filter(has_text=words)


@pytest.mark.needs("chromium")
async def test_calls_and_rules_are_edited_and_yes_counts_for_a_session_as_on_the_terminal(
    chromium: Browser, tmp_path: Path
) -> None:
    state, project = tmp_path / "state", tmp_path / "project"
    state.mkdir(mode=0o700)
    project.mkdir()
    commands = ("touch one", "touch two", "touch three", "mkdir a", "mkdir b", "chmod +x two", "ln two four")
    replies = [command(number, text, "first") for number, text in enumerate(commands)]
    second = [command(9, "rmdir a", "other"), Reply((Text("Done."),), to="other")]
    async with ModelServer([*replies, *second]) as server, pages(chromium, state, "Ada") as people:
        env = {**asks(server), "HANDRAIL_STATE_DIR": str(state)}
        page = people["Ada"]
        async with started("-p", "The first.", "--live", state=project, **env) as running:
            box = asked(page, "touch one")
            await box.get_by_role("button", name="Edit the call first").click()
            await box.get_by_label("Edit the call first").fill("touch uno")
            await box.get_by_role("button", name="Run the edited call").click()

            box = asked(page, "touch two")
            await box.get_by_role("button", name="Change the rule").click()
            await box.get_by_label("Yes, always").fill("Bash(")
            await box.get_by_role("button", name="Yes, always").click()
            await box.get_by_text("'Bash(' is not a rule").wait_for()
            await box.get_by_label("Yes, always").fill("Bash(touch t*)")
            await box.get_by_role("button", name="Yes, always").click()

            await asked(page, "mkdir a").get_by_role("button", name="Yes, and for this session").click()

            box = asked(page, "chmod +x two")
            words = box.get_by_label("No, and say what to do instead")
            await words.fill("Leave its mode alone.")
            async with started("-p", "The other.", "--live", state=project, **env) as other:
                await asked(page, "rmdir a").wait_for()
                assert await words.input_value() == "Leave its mode alone."  # another question has come meanwhile
                await box.get_by_role("button", name="No, and say what to do instead").click()
                await asked(page, "ln two four").get_by_role("button", name="No, and stop here").click()
                await asked(page, "rmdir a").get_by_role("button", name="Yes, this once").click()
                await other.communicate()
            await running.communicate()

    lines = sorted(audit(state), key=lambda line: float(line["at"]))
    kept = json.loads((project / ".handrail/settings.local.json").read_text())
    assert kept["permissions"]["allow"] == ["Bash(touch t*)"]
    assert sorted(each.name for each in project.iterdir() if each.name[0] != ".") == ["b", "three", "two", "uno"]
    assert [line["by"] for line in lines if line.get("asked")] == ["person Ada"] * 6
    assert sum(not line.get("asked") for line in lines) == 2  # touch three and mkdir b, by the rules that were added
    told = json.dumps([request.body["messages"] for request in server.requests])
    assert "Leave its mode alone" in told
    assert len(server.requests) == len(commands) + len(second)  # after the last no there was no further request


async def test_a_call_that_is_too_large_to_be_shown_is_cut_and_answered_all_the_same(tmp_path: Path) -> None:
    state, project = tmp_path / "state", tmp_path / "project"
    state.mkdir(mode=0o700)
    project.mkdir()
    write = {"file_path": str(project / "large.txt"), "content": "\x01<b>" * 60_000}
    async with (
        ModelServer([Reply((ToolUse("t1", "Write", write),)), Reply((Text("Done."),))]) as server,
        live_sessions(state) as live,
        started("-p", "Write.", "--live", state=project, HANDRAIL_STATE_DIR=str(state), **asks(server)) as running,
    ):
        assert live is not None
        version = -1
        while not live.questions():
            version = await live.wait_for_change(version)
        [question] = live.questions()
        answer = {"session": question["session"], "question": question["id"], "choice": "edit"}
        assert len(json.dumps(question)) < MAX_SHOWN + 1_000
        assert "more characters are not shown" in question["input"]["content"]
        assert "edit" not in [each["value"] for each in question["choices"]]
        assert "not an answer" in await live.answer("Ada", {**answer, "digest": question["digest"]})
        assert await live.answer("Ada", {**answer, "choice": "allow", "digest": question["digest"]}) == ""
        out, _ = await running.communicate()
    assert out.decode().strip() == "Done."
    assert (project / "large.txt").read_text() == write["content"]


async def test_a_socket_that_fails_does_not_keep_the_page_from_finding_the_next_session(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "live" / "left.sock").mkdir(parents=True)  # it refuses, as a killed session's does, and stays
    tmp_path.chmod(0o700)
    connect, failures = asyncio.open_unix_connection, [OSError("no room for one more watch")]

    async def connect_later(*arguments: Any, **options: Any) -> Any:
        if failures:
            raise failures.pop()
        return await connect(*arguments, **options)

    monkeypatch.setattr(asyncio, "open_unix_connection", connect_later)
    async with (
        ModelServer([command(1, "touch made", "Make it"), Reply((Text("Done."),), to="Make it")]) as server,
        live_sessions(tmp_path) as live,
        started("-p", "Make it.", "--live", state=tmp_path, **asks(server)) as running,
    ):
        assert live is not None
        version = -1
        while not live.questions():
            version = await live.wait_for_change(version)
        [question] = live.questions()
        answer = {"session": question["session"], "question": question["id"], "digest": question["digest"]}
        assert await live.answer("Ada", {**answer, "choice": "allow"}) == ""
        out, _ = await running.communicate()
    assert (out.decode().strip(), (tmp_path / "made").exists(), failures) == ("Done.", True, [])


async def test_a_question_of_a_served_run_reaches_the_page_too(tmp_path: Path) -> None:
    state = Path(f"{tmp_path}-state")
    state.mkdir(mode=0o700)
    replies = [command(1, "touch made", "Make it"), Reply((Text("Done."),), to="Make it")]
    async with (
        ModelServer(replies) as model,
        live_sessions(state) as live,
        served(model, tmp_path, write_config(tmp_path), HANDRAIL_LIVE="1") as server,
        server.client() as ann,
    ):
        assert live is not None
        run = await start(ann, "Make it.")
        version = -1
        while not live.questions():
            version = await live.wait_for_change(version)
        [question] = live.questions()
        [far] = (await get(ann, run["id"]))["questions"]
        answer = {"session": question["session"], "question": question["id"], "digest": question["digest"]}
        assert await live.answer("Ada", {**answer, "choice": "allow"}) == ""
        lines = await all_lines(ann, run["id"])
        late = await ann.post(f"/v1/runs/{run['id']}/answer", json={"question": far["id"], "choice": "deny"})

    assert lines[-1]["result"] == "Done."
    assert ("session" in choices_of(question), choices_of(far)) == (True, ["allow", "stop", "deny"])
    assert (late.status_code, (tmp_path / "shop" / "made").exists()) == (409, True)
    [line] = audit(state)
    assert (line["by"], line["origin"]["client"]) == ("person Ada", "ann")


def choices_of(question: dict[str, Any]) -> list[str]:
    return [each["value"] for each in question["choices"]]
