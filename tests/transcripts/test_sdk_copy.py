"""Copies of sessions, read with the functions of the SDK."""

import json
import os
from pathlib import Path
from typing import Any

import pytest
from claude_agent_sdk import get_session_messages, list_sessions

from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.redact import Redactor, build_redactor
from handrail.transcripts.sdk_copy import SdkCopy
from handrail.transcripts.store import TranscriptStore, folder_name

ID = "550e8400-e29b-41d4-a716-446655440000"
FORKED = "550e8400-e29b-41d4-a716-446655440001"


class Place:
    """A store whose sessions are copied to where the SDK looks."""

    def __init__(self, folder: Path, redactor: Redactor) -> None:
        self.cwd = os.path.realpath(folder)
        self.projects = folder / "claude" / "projects"
        self.warnings: list[str] = []
        copy = SdkCopy(self.projects / folder_name(self.cwd), self.warnings.append)
        self.store = TranscriptStore(folder / "sessions", redactor, mirror=copy.add, copies=self.projects)

    def messages(self, session_id: str = ID) -> list[str]:
        """What the SDK reads, in short."""
        return [brief(part) for each in get_session_messages(session_id, self.cwd) for part in each.message["content"]]


def brief(part: dict[str, Any]) -> str:
    return str(part.get("text") or part.get("name") or part["type"])


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Place:
    monkeypatch.setenv("CLAUDE_CONFIG_DIR", str(tmp_path / "claude"))
    return Place(tmp_path, build_redactor({"MY_API_KEY": "sk-secret-123456789"}))


def talk(writer: Any, prompt: str, answer: str) -> None:
    writer.add_message(UserMessage((Text(prompt),)))
    writer.add_block("m", "model", Text(answer), 0)
    writer.add_message(AssistantMessage((Text(answer),), "model", "end_turn"))


def test_an_answer_that_was_discarded_is_not_in_the_copy(place: Place) -> None:
    writer = place.store.create(place.cwd, ID).writer
    writer.add_message(UserMessage((Text("go"),)))
    writer.add_block("m", "model", Text("half an ans"), 0)
    writer.discard_blocks()
    use, result = ToolUse("t1", "Read", {}), ToolResult("t1", (Text("x"),))
    writer.add_block("m2", "model", use, 0)
    writer.end_call(result)
    writer.add_message(AssistantMessage((use,), "model", "tool_use"))
    writer.add_message(UserMessage((result,)))
    writer.add_message(Attachment("reminder", (Text("for the model alone"),)))
    talk(writer, "and then", "Done.")
    writer.close()

    assert place.messages() == ["go", "Read", "tool_result", "and then", "Done."]
    assert place.warnings == []


def test_titles_and_secrets_are_copied_as_they_are_kept(place: Place) -> None:
    writer = place.store.create(place.cwd, ID).writer
    writer.set_title("My work")
    talk(writer, "my key is sk-secret-123456789", "I see.")
    writer.close()

    [found] = list_sessions(place.cwd)
    assert (found.custom_title, found.session_id) == ("My work", ID)
    assert "sk-secret" not in "".join(path.read_text() for path in place.projects.glob("*/*"))


def test_forks_and_summaries_go_on_in_the_copy(place: Place) -> None:
    first = place.store.create(place.cwd, ID)
    talk(first.writer, "one", "1")
    first.writer.replace_messages([UserMessage((Text("summary of one"),))])
    talk(first.writer, "two", "2")
    first.writer.close()
    forked = place.store.fork(first.path, place.cwd, FORKED)
    talk(forked.writer, "three", "3")
    forked.writer.close()

    assert place.messages() == ["one", "1", "summary of one", "two", "2"]
    assert place.messages(FORKED) == ["summary of one", "two", "2", "three", "3"]


def test_a_session_that_was_not_copied_from_its_start_is_copied_whole_when_it_goes_on(
    place: Place, tmp_path: Path
) -> None:
    before = TranscriptStore(tmp_path / "sessions", build_redactor({}))
    opened = before.create(place.cwd, ID)
    talk(opened.writer, "one", "1")
    opened.writer.close()
    resumed = place.store.resume(opened.path, place.cwd)
    talk(resumed.writer, "two", "2")
    resumed.writer.close()

    assert place.messages() == ["one", "1", "two", "2"]


def test_a_file_of_another_program_is_neither_written_nor_deleted(place: Place) -> None:
    theirs = place.projects / folder_name(place.cwd) / f"{ID}.jsonl"
    theirs.parent.mkdir(parents=True)
    theirs.write_text(
        json.dumps({"type": "user", "uuid": "u", "message": {"role": "user", "content": "theirs"}}) + "\n"
    )
    held = theirs.read_bytes()
    opened = place.store.create(place.cwd, ID)
    talk(opened.writer, "one", "1")
    opened.writer.close()
    place.store.remove(opened.path)

    assert theirs.read_bytes() == held


def test_a_copy_that_cannot_be_written_is_told_of_once_and_the_session_goes_on(place: Place) -> None:
    place.projects.parent.mkdir()
    place.projects.write_text("not a folder")
    opened = place.store.create(place.cwd, ID)
    talk(opened.writer, "one", "1")
    opened.writer.close()

    [warning] = place.warnings
    assert "sdkSessionCopy" in warning
    assert opened.writer.failure is None
