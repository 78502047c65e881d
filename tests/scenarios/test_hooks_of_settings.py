"""Hooks that stand in settings files, in whole runs: at every moment that a run has, and changed meanwhile."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.conversation.blocks import ToolUse
from handrail.testing.model_server import Reply
from tests.hooks.place import DONE, Place, results

pytestmark = pytest.mark.anyio


@pytest.fixture
def place(tmp_path: Path) -> Place:
    return Place(tmp_path)


@pytest.mark.proves("H1", "H4")
async def test_every_moment_of_a_run_reaches_the_hooks_of_a_settings_file(place: Place) -> None:
    events = (
        *("SessionStart", "UserPromptSubmit", "PreToolUse", "PermissionRequest", "PostToolUse", "PostToolUseFailure"),
        *("PostToolBatch", "Stop", "SessionEnd"),
    )
    place.write(dict.fromkeys(events, place.note()))
    (place.project / "a.txt").write_text("x\n")
    calls = (
        ToolUse("1", "Read", {"file_path": "a.txt"}),
        ToolUse("2", "Read", {"file_path": "b.txt"}),
        ToolUse("3", "Write", {"file_path": "c.txt", "content": ""}),
    )

    await place.run(iter([Reply(calls), DONE]))

    told = place.told()
    assert {each["hook_event_name"] for each in told} == set(events)
    assert len({each["session_id"] for each in told}) == 1
    assert {each["cwd"] for each in told} == {str(place.project)}
    by_event = {each["hook_event_name"]: each for each in told}
    path = str(place.project / "a.txt")
    assert by_event["PostToolUse"]["tool_input"] == {"file_path": path}
    assert by_event["PostToolUse"]["tool_response"]["file"]["filePath"] == path
    assert "b.txt" in by_event["PostToolUseFailure"]["error"]
    assert by_event["PermissionRequest"]["tool_name"] == "Write"
    assert by_event["Stop"]["last_assistant_message"] == "Done."


async def test_a_guard_that_is_added_meanwhile_stands_before_the_next_call(place: Place) -> None:
    place.write({"ConfigChange": place.note()})
    look = {"command": "pwd"}

    def story() -> Iterator[Reply]:
        yield Reply((ToolUse("1", "Bash", look),))
        place.write({"ConfigChange": place.note(), "PreToolUse": "echo not now >&2; exit 2"}, model="other")
        yield Reply((ToolUse("2", "Bash", look),))
        yield DONE

    server = await place.run(story())

    [(is_error, text)] = results(server)
    assert is_error
    assert "not now" in text
    [told] = place.told()
    assert (told["hook_event_name"], told["source"]) == ("ConfigChange", "user_settings")
    assert told["file_path"] == str(place.settings)


async def test_rules_that_are_added_meanwhile_count_for_the_next_call(place: Place) -> None:
    def story() -> Iterator[Reply]:
        yield Reply((ToolUse("1", "Write", {"file_path": "a", "content": "1"}),))
        place.write({}, permissions={"allow": ["Write"], "deny": ["Bash(pwd)"]})
        yield Reply(
            (ToolUse("2", "Write", {"file_path": "b", "content": "1"}), ToolUse("3", "Bash", {"command": "pwd"}))
        )
        yield DONE

    server = await place.run(story())

    (wrote, _), (looked, why) = results(server)
    assert (wrote, looked) == (False, True)
    assert "Bash(pwd)" in why
    assert sorted(path.name for path in place.project.iterdir()) == ["b"]


@pytest.mark.proves("X6")
@pytest.mark.parametrize(
    ("script", "why"),
    [("/nowhere/guard.sh", "cannot run: there is no /nowhere/guard.sh"), ("/etc/passwd", "could not be started")],
    ids=["missing", "not executable"],
)
async def test_a_guard_that_is_missing_lets_nothing_pass(place: Place, script: str, why: str) -> None:
    place.write({"PreToolUse": script}, permissions={"allow": ["Write"]})

    server = await place.run(iter([Reply((ToolUse("1", "Write", {"file_path": "a", "content": ""}),)), DONE]))

    [(is_error, text)] = results(server)
    assert is_error
    assert f"the PreToolUse hook {script!r} {why}" in text
    assert not (place.project / "a").exists()
