"""`handrail sessions`, as a person runs it."""

import json
from pathlib import Path
from typing import Any

import pytest

from handrail.cli.main import run
from handrail.conversation.blocks import Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Attachment, UserMessage
from handrail.conversation.redact import Redactor
from handrail.transcripts.log import Log
from handrail.transcripts.store import TranscriptStore

ASKED = UserMessage((Text("What is\nhere?"),))
REPLY = AssistantMessage((Text("Two files."),), "some-model", "end_turn")
FOREIGN = (
    {"type": "summary", "summary": "A talk elsewhere", "leafUuid": "2"},
    {"type": "user", "uuid": "1", "parentUuid": None, "cwd": "/far", "message": {"role": "user", "content": "hello"}},
    {
        "type": "assistant",
        "uuid": "2",
        "parentUuid": "1",
        "message": {
            "id": "m",
            "role": "assistant",
            "model": "other",
            "content": [{"type": "tool_use", "id": "t1", "name": "Read", "input": {}}],
        },
    },
)


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> TranscriptStore:
    (tmp_path / "proj").mkdir()
    monkeypatch.chdir(tmp_path / "proj")
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    return TranscriptStore(tmp_path / "state" / "sessions", Redactor())


def made(store: TranscriptStore, name: str, cwd: Path | None = None, *, torn: bool = False) -> Path:
    opened = store.create(str(cwd or Path.cwd()), name)
    opened.writer.add_message(ASKED)
    opened.writer.add_message(REPLY)
    if torn:
        opened.writer.add_block("m2", "some-model", ToolUse("t9", "Bash", {"command": "true"}), 0)
    opened.writer.close()
    if torn:
        with opened.path.open("ab") as file:
            file.write(b'{"type":"us')
    return opened.path


Out = pytest.CaptureFixture[str]


def said(capsys: Out, *arguments: str, code: int = 0) -> str:
    capsys.readouterr()
    assert run(["sessions", *arguments]) == code
    return capsys.readouterr().out


def value(capsys: Out, *arguments: str, code: int = 0) -> Any:
    return json.loads(said(capsys, *arguments, "--json", code=code))


def test_sessions_are_listed_by_folder_the_newest_first(store: TranscriptStore, tmp_path: Path, capsys: Out) -> None:
    made(store, "first")
    made(store, "second")
    made(store, "elsewhere", tmp_path)

    assert [line.split()[0] for line in said(capsys, "list").splitlines()] == ["second", "first"]
    assert said(capsys, "list").splitlines()[0].endswith("What is here?")
    assert [entry["id"] for entry in value(capsys, "list", "--all")] == ["elsewhere", "second", "first"]
    assert [entry["id"] for entry in value(capsys, "list", "--all", "--limit", "1")] == ["elsewhere"]
    entry = value(capsys, "list")[0]
    assert {len(entry[name]) for name in ("created", "updated")} == {len("2026-11-17T17:10:07.442Z")}
    assert (entry["title"], entry["model"], entry["cwd"]) == ("What is here?", "some-model", str(Path.cwd()))


def test_an_empty_list_says_so(store: TranscriptStore, capsys: Out) -> None:
    assert run(["sessions", "list"]) == 0
    assert "no sessions" in capsys.readouterr().err
    assert value(capsys, "list") == []


def test_the_list_comes_back_when_its_index_is_gone_or_broken(store: TranscriptStore, capsys: Out) -> None:
    made(store, "one")
    before = said(capsys, "list")

    index = store.folder / "index.db"
    index.unlink()
    assert said(capsys, "list") == before
    index.write_bytes(b"no database" * 100)
    assert said(capsys, "list") == before


def test_half_a_character_in_a_prompt_spoils_no_list(store: TranscriptStore, capsys: Out) -> None:
    opened = store.create(str(Path.cwd()), "odd")
    opened.writer.add_message(UserMessage((Text("caf\udce9 \ud83d"),)))
    opened.writer.close()
    made(store, "plain")

    assert {each["id"]: each["title"] for each in value(capsys, "list")} == {"odd": "caf? ?", "plain": "What is here?"}
    assert (store.folder / "index.db").stat().st_size
    assert "caf? ?" in said(capsys, "list")


def test_a_session_is_shown_to_people_and_programs(store: TranscriptStore, capsys: Out) -> None:
    made(store, "one")

    shown = said(capsys, "show", "one")
    assert "## User\n\nWhat is\nhere?\n\n## Assistant (some-model)\n\nTwo files." in shown
    assert [message["role"] for message in value(capsys, "show", "one")["messages"]] == ["user", "assistant"]


def test_show_begins_with_the_prompt_and_names_what_the_program_added(store: TranscriptStore, capsys: Out) -> None:
    opened = store.create(str(Path.cwd()), "one")
    for kind in ("context", "tools"):
        opened.writer.add_message(Attachment(kind, (Text("<memory>Use tabs.</memory>"),)))
    for message in (ASKED, Attachment("hook", (Text("Mind the gap."),)), REPLY):
        opened.writer.add_message(message)
    opened.writer.close()

    shown = said(capsys, "show", "one")

    assert shown.startswith("# one\n\n(added by the program: context, tools; --all shows it)\n\n## User\n\nWhat is")
    assert "## Added by the program: hook\n\nMind the gap." in shown
    whole = said(capsys, "show", "one", "--all")
    assert whole.count("Use tabs.") == 2
    assert said(capsys, "export", "one", "--format", "markdown") == whole
    assert "Use tabs." in said(capsys, "show", "one", "--json")


def test_results_of_calls_are_not_shown_as_words_of_the_user(store: TranscriptStore, capsys: Out) -> None:
    opened = store.create(str(Path.cwd()), "one")
    called = AssistantMessage((ToolUse("t1", "Bash", {"command": "true"}),), "some-model")
    for message in (ASKED, called, UserMessage((ToolResult("t1", (Text("fine"),)),))):
        opened.writer.add_message(message)
    opened.writer.close()

    assert "## Results\n\nResult of t1\n\n```\nfine\n```" in said(capsys, "show", "one")


def test_a_torn_session_is_found_out_and_mended_once(store: TranscriptStore, capsys: Out) -> None:
    path = made(store, "torn", torn=True)

    checked = value(capsys, "check", "torn", code=1)
    assert (checked["ok"], len(checked["problems"])) == (False, 1)
    assert "Bash (t9): never started" in checked["repairs"]
    assert "needs mending" in said(capsys, "check", "torn", code=1)
    assert value(capsys, "repair", "torn")["changed"] is True
    assert path.with_suffix(".broken").read_bytes() == b'{"type":"us\n'
    assert value(capsys, "check", "torn")["ok"] is True
    assert "nothing to mend" in said(capsys, "repair", "torn")


def test_what_is_exported_comes_back(store: TranscriptStore, tmp_path: Path, capsys: Out) -> None:
    opened = store.create(str(Path.cwd()), "one")
    opened.writer.set_title("Two files")
    for message in (Attachment("context", (Text("Folder: x"),)), ASKED, REPLY):
        opened.writer.add_message(message)
    opened.writer.close()
    file = tmp_path / "out.jsonl"

    assert said(capsys, "export", "one", "-o", str(file)) == ""
    again = value(capsys, "import", str(file))
    assert value(capsys, "show", again["id"])["messages"] == value(capsys, "show", "one")["messages"]
    assert {each["title"] for each in value(capsys, "list")} == {"Two files"}
    assert "Two files." in said(capsys, "export", "one", "--format", "markdown")
    assert run(["sessions", "export", "one", "-o", str(file)]) == 1
    assert "exists. Give another name" in capsys.readouterr().err


def test_a_transcript_of_another_program_becomes_a_sound_session(
    store: TranscriptStore, tmp_path: Path, capsys: Out
) -> None:
    file = tmp_path / "foreign.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in FOREIGN))

    taken = value(capsys, "import", str(file))

    assert value(capsys, "check", taken["id"])["ok"] is True
    shown = value(capsys, "show", taken["id"])
    assert shown["cwd"] == "/far"
    assert [message["role"] for message in shown["messages"]] == ["user", "assistant", "user"]


@pytest.mark.proves("R10")
def test_an_import_leaves_out_secrets_by_the_patterns_of_the_settings(
    store: TranscriptStore, tmp_path: Path, capsys: Out
) -> None:
    (tmp_path / "home" / ".handrail").mkdir(parents=True)
    (tmp_path / "home" / ".handrail" / "settings.json").write_text('{"redact": ["he..o"]}')
    file = tmp_path / "foreign.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in FOREIGN))

    taken = value(capsys, "import", str(file))

    assert "hello" not in Path(taken["path"]).read_text()


def test_sessions_are_deleted_unless_they_are_in_use(store: TranscriptStore, capsys: Out) -> None:
    gone, used = made(store, "gone"), made(store, "used")
    log = Log(used)

    assert value(capsys, "rm", "gone") == {"removed": ["gone"]}
    assert not gone.exists()
    assert "in use" in value(capsys, "rm", "used", code=1)["error"]
    log.close()
    assert said(capsys, "rm", "used") == "used: deleted\n"


@pytest.mark.parametrize("what", ["show", "check", "repair", "export", "rm"])
def test_a_wrong_id_is_said_with_the_way_to_the_right_one(store: TranscriptStore, capsys: Out, what: str) -> None:
    made(store, "abcd-1")
    made(store, "abcd-2")

    assert run(["sessions", what, "nothing"]) == 1
    assert "`handrail sessions list` lists the sessions" in capsys.readouterr().err
    assert "abcd-1 or abcd-2" in value(capsys, what, "abcd", code=1)["error"]


def test_what_was_brought_from_elsewhere_is_listed_by_its_first_words(
    store: TranscriptStore, tmp_path: Path, capsys: Out
) -> None:
    long = {**FOREIGN[1], "uuid": "3", "message": {"role": "user", "content": "a long talk " * 20_000}}
    file = tmp_path / "theirs.jsonl"
    file.write_text("\n".join(map(json.dumps, (FOREIGN[1], FOREIGN[2], long))))
    taken = value(capsys, "import", str(file))
    fork = store.fork(made(store, "first"), str(Path.cwd()))
    fork.writer.close()

    titles = {each["id"]: each["title"] for each in value(capsys, "list", "--all")}
    assert (titles[taken["id"]], titles[fork.writer.session_id]) == ("hello", "What is here?")


def test_a_limit_that_is_no_number_of_sessions_is_refused(store: TranscriptStore, capsys: Out) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["sessions", "list", "--limit", "-1"])
    assert "not a whole number above 0" in capsys.readouterr().err


def test_a_file_that_is_no_transcript_is_not_imported(store: TranscriptStore, tmp_path: Path, capsys: Out) -> None:
    (tmp_path / "x").write_text("hello\n")

    assert "holds no conversation" in value(capsys, "import", str(tmp_path / "x"), code=1)["error"]
    assert "There is no file" in value(capsys, "import", str(tmp_path / "y"), code=1)["error"]


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["--resume", "nothing"], "There is no session 'nothing'"),
        (["--continue"], "There is no session in the folder"),
        (["--session-id", "known"], "There is a session 'known' already"),
        (["--resume", "known", "--session-id", "other"], "--session-id gives a new session its id"),
        (["--session-id", "../up"], "cannot be the id of a session"),
        (["--resume", "known", "--resume-session-at", "nowhere"], "no message 'nowhere'"),
    ],
)
def test_a_run_that_cannot_go_on_says_why_and_leaves_nothing(
    store: TranscriptStore, tmp_path: Path, capsys: Out, arguments: list[str], says: str
) -> None:
    kept = made(store, "known", tmp_path).read_bytes()

    assert run(["-p", "hello", *arguments]) == 1

    assert says in capsys.readouterr().err
    [path] = store.folder.rglob("*.jsonl")
    assert path.read_bytes() == kept


def test_a_resume_without_an_id_is_a_slip(store: TranscriptStore) -> None:
    assert run(["-p", "hello", "--resume="]) == 2
