"""Sessions on disk: written at once, by one process, readable by their owner alone, found again."""

import errno
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from handrail.conversation.blocks import Image, Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, Message, UserMessage
from handrail.conversation.redact import Redactor, build_redactor
from handrail.conversation.request import History
from handrail.errors import SessionError
from handrail.transcripts.log import Log, read
from handrail.transcripts.rebuild import rebuild
from handrail.transcripts.repair import as_lines, as_text, import_transcript, repair
from handrail.transcripts.store import OpenTranscript, TranscriptStore, folder_name

HELLO = UserMessage((Text("hello"),))
REPLY = AssistantMessage((Text("well met"),), "m", "end_turn")


@pytest.fixture
def store(tmp_path: Path) -> TranscriptStore:
    return TranscriptStore(tmp_path / "sessions", Redactor())


def talk(opened: OpenTranscript, *messages: Message) -> Path:
    for message in messages or (HELLO, REPLY):
        opened.writer.add_message(message)
    opened.writer.close()
    return opened.path


def test_nothing_is_made_before_there_is_a_session(store: TranscriptStore) -> None:
    assert store.entries() == []
    assert not store.folder.exists()


def test_a_session_can_be_read_by_its_owner_alone(store: TranscriptStore) -> None:
    path = talk(store.create("/proj"))

    assert path.stat().st_mode & 0o777 == 0o600
    assert path.parent.stat().st_mode & 0o777 == 0o700


def test_a_session_goes_on_where_it_stopped(store: TranscriptStore) -> None:
    path = talk(store.create("/proj", "one"))
    more = UserMessage((Text("more"),))

    opened = store.resume(path, "/proj")
    assert opened.messages == (HELLO, REPLY)
    talk(opened, more)

    assert rebuild(read(path)).messages == (HELLO, REPLY, more)


def test_a_fork_begins_with_the_same_words_and_leaves_the_first_alone(store: TranscriptStore) -> None:
    path = talk(store.create("/proj", "one"))
    before = path.read_bytes()

    fork = store.fork(path, "/proj", "two")
    talk(fork, UserMessage((Text("elsewhere"),)))

    assert path.read_bytes() == before
    made = rebuild(read(fork.path))
    assert made.messages == (HELLO, REPLY, UserMessage((Text("elsewhere"),)))
    assert fork.path.stem == "two"


LOCKING = """
import sys
from pathlib import Path
from handrail.transcripts.log import Log
log = Log(Path(sys.argv[1]))
print("locked", flush=True)
sys.stdin.read()
"""


def test_two_processes_cannot_write_one_session(store: TranscriptStore) -> None:
    path = talk(store.create("/proj", "one"))
    other = subprocess.Popen(
        [sys.executable, "-c", LOCKING, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    try:
        assert other.stdout is not None
        assert other.stdout.readline() == "locked\n"
        with pytest.raises(SessionError, match="in use already, here or in another process"):
            store.resume(path, "/proj")
        with pytest.raises(SessionError, match="in use already, here or in another process"):
            store.remove(path)
        assert store.fork(path, "/proj").messages == (HELLO, REPLY)
    finally:
        other.send_signal(signal.SIGKILL)
        other.communicate()
    store.resume(path, "/proj").writer.close()  # the lock went with the process


@pytest.mark.proves("R10")
def test_secrets_do_not_reach_the_disk(tmp_path: Path) -> None:
    key = "sk-ant-" + "a1" * 20
    store = TranscriptStore(tmp_path, build_redactor({"MY_TOKEN": "hush-hush-hush"}, ["customer-[0-9]+"]))
    path = talk(
        store.create("/proj"),
        UserMessage((Text(f"my key is {key} and hush-hush-hush of customer-77"),)),
        AssistantMessage(
            (
                ToolUse("t", "Bash", {"command": f"curl -H 'x-api-key: {key}'"}),
                ToolUse("u", "mcp__db__open", {"login": {"password": "swordfish"}}),
            )
        ),
    )

    written = path.read_text()

    assert not any(secret in written for secret in (key, "hush-hush-hush", "customer-77", "swordfish"))
    assert len(rebuild(read(path)).messages) == 3


def test_a_pattern_that_matches_everything_tears_no_call_from_its_result(tmp_path: Path) -> None:
    store = TranscriptStore(tmp_path / "sessions", build_redactor({}, [r"[A-Za-z0-9_]{2,}"]))
    call = ToolUse("toolu_1", "Read", {"file_path": "abc"})
    thought = Thinking("hmm, abc", {"type": "thinking", "thinking": "hmm, abc", "signature": "c2lnbmVk"})
    image = Image("aGVsbG8gd29ybGQ=", "image/png")
    result = ToolResult("toolu_1", (Text("content"), image))
    said = AssistantMessage((thought, call), "m", "tool_use")

    path = talk(store.create("/proj"), HELLO, said, UserMessage((result,)))

    found = rebuild(read(path))
    assert not found.repairs
    taken = Text("[redacted:pattern]")
    assert found.messages == (
        UserMessage((taken,)),
        AssistantMessage(
            (
                Thinking("[redacted:pattern], [redacted:pattern]", {}),
                ToolUse("toolu_1", "Read", {"[redacted:pattern]": "[redacted:pattern]"}),
            ),
            "m",
            "tool_use",
        ),
        UserMessage((ToolResult("toolu_1", (taken, image)),)),
    )


def test_records_wait_for_the_disk_only_if_power_may_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(_file: int) -> None:
        raise OSError(errno.EIO, "the disk is broken")

    monkeypatch.setattr(os, "fdatasync", broken)
    careful, usual = Log(tmp_path / "a.jsonl", durability="power"), Log(tmp_path / "b.jsonl")

    usual.add({"type": "x"})
    with pytest.raises(SessionError, match="the disk is broken"):
        careful.add({"type": "x"})
    usual.close()
    careful.close()


def test_a_line_that_does_not_fit_on_the_disk_leaves_the_file_as_it_was(tmp_path: Path) -> None:
    """A limit on the size of files acts like a full disk; it needs a process of its own."""
    program = """
import resource, signal, sys
from pathlib import Path
from handrail.conversation.blocks import Image, Text, Thinking, ToolResult, ToolUse
from handrail.conversation.messages import UserMessage
from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.transcripts.store import TranscriptStore
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
opened = TranscriptStore(Path(sys.argv[1]), Redactor()).create("/proj", "one")
opened.writer.add_message(UserMessage((Text("fits"),)))
resource.setrlimit(resource.RLIMIT_FSIZE, (opened.path.stat().st_size + 100,) * 2)
opened.writer.add_message(UserMessage((Text("x" * 1000),)))
print(opened.writer.failure)
try:
    opened.writer.start_call(ToolUse("t", "Bash", {}))
except SessionError as error:
    print("not started")
"""
    done = subprocess.run([sys.executable, "-c", program, str(tmp_path)], capture_output=True, text=True, check=True)

    assert "the disk is full" in done.stdout
    assert "not started" in done.stdout
    path = tmp_path / folder_name("/proj") / "one.jsonl"
    made = rebuild(read(path))
    assert made.messages == (UserMessage((Text("fits"),)),)
    assert not made.problems


def test_a_torn_last_line_is_tolerated_reported_and_mended(store: TranscriptStore) -> None:
    path = talk(store.create("/proj", "one"))
    with path.open("ab") as file:
        file.write(b'{"type":"user","message":{"ro')

    made = rebuild(read(path))
    assert made.messages == (HELLO, REPLY)
    assert [problem.split(": ", 1)[1] for problem in made.problems] == ["its writer was stopped in the middle of it"]

    talk(store.resume(path, "/proj"), UserMessage((Text("more"),)))
    assert rebuild(read(path)).messages == (HELLO, REPLY, UserMessage((Text("more"),)))

    repair(path)
    made = rebuild(read(path))
    assert not made.problems
    assert made.messages == (HELLO, REPLY, UserMessage((Text("more"),)))
    assert path.with_suffix(".broken").read_bytes() == b'{"type":"user","message":{"ro\n'


def test_a_session_of_a_newer_handrail_is_refused_with_the_way_out(store: TranscriptStore) -> None:
    path = talk(store.create("/proj", "one"))
    path.write_text(path.read_text().replace('"version":1', '"version":99'))

    with pytest.raises(SessionError, match="newer handrail"):
        store.resume(path, "/proj")


@pytest.mark.parametrize("wanted", ["../../etc/passwd", "", "a/b", "x" * 200, "-rf"])
def test_an_id_that_could_be_a_path_is_refused(store: TranscriptStore, wanted: str) -> None:
    with pytest.raises(SessionError):
        store.find(wanted, "/proj")
    if wanted:
        with pytest.raises(SessionError, match="cannot be the id"):
            store.create("/proj", wanted)


def test_a_link_in_place_of_a_session_is_not_followed(store: TranscriptStore, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("precious")
    folder = store.folder / folder_name("/proj")
    folder.mkdir(parents=True)
    (folder / "one.jsonl").symlink_to(victim)

    with pytest.raises(SessionError):
        Log(folder / "one.jsonl")
    assert victim.read_text() == "precious"


# Finding


def test_a_session_is_found_by_id_beginning_title_or_path(store: TranscriptStore, tmp_path: Path) -> None:
    path = talk(store.create("/proj", "abcdef"))
    other = store.create("/other", "abcxyz")
    other.writer.set_title("the talk")
    talk(other)

    assert store.find("abcdef", "/proj") == path
    assert store.find("abcd", "/proj") == path
    assert store.find("the talk", "/proj") == other.path
    assert store.find(str(path), "/") == path
    with pytest.raises(SessionError, match="There is no session 'nothing'"):
        store.find("nothing", "/proj")


def test_a_later_title_of_a_long_session_is_found(store: TranscriptStore) -> None:
    long: list[Message] = [UserMessage((Text("words " * 10_000),)), REPLY] * 3
    path = talk(store.create("/proj", "long"), HELLO, *long)
    opened = store.resume(path, "/proj")
    opened.writer.set_title("the long talk")
    talk(opened, *long)

    assert store.find("the long talk", "/proj") == path
    [entry] = store.entries()
    assert (entry.title, entry.model) == ("the long talk", "m")


def test_a_prompt_with_a_big_picture_names_its_session(store: TranscriptStore) -> None:
    talk(store.create("/proj", "one"), UserMessage((Image("x" * 200_000, "image/png"), Text("what is this"))), REPLY)

    assert [entry.title for entry in store.entries()] == ["what is this"]


def test_folders_of_one_name_do_not_share_sessions(store: TranscriptStore) -> None:
    talk(store.create("/a-b", "one"))
    assert folder_name("/a-b") == folder_name("/a/b")

    with pytest.raises(SessionError, match="no session in the folder /a/b"):
        store.newest("/a/b")


@pytest.mark.proves("R13")
@pytest.mark.parametrize("place", range(6))
def test_a_session_taken_up_anywhere_even_before_a_summary_stays_what_it_was_made(
    store: TranscriptStore, place: int
) -> None:
    opened = store.create("/proj", "one")
    call = ToolUse("t1", "Read", {})
    answer = AssistantMessage((Text("I look"), call), "m", "tool_use")
    opened.writer.add_message(HELLO)
    for slot, block in enumerate(answer.content):
        opened.writer.add_block("m1", "m", block, slot)
    opened.writer.end_call(ToolResult("t1", (Text("seen"),)))
    opened.writer.add_message(answer)
    opened.writer.add_message(UserMessage((ToolResult("t1", (Text("seen"),)),)))
    opened.writer.replace_messages((UserMessage((Text("what came before"),)),))
    opened.writer.add_message(REPLY)
    path = talk(opened, HELLO)
    ids = [line["uuid"] for line in read(path) if isinstance(line, dict) and "uuid" in line]

    taken = store.resume(path, "/proj", upto=ids[place % len(ids)])
    messages = (*taken.messages, UserMessage((Text("go on"),)))
    talk(taken, messages[-1])

    assert rebuild(read(path)).messages == messages
    History(messages)


def test_the_newest_session_of_a_folder_is_the_one_to_continue(store: TranscriptStore) -> None:
    paths = [talk(store.create("/proj", name)) for name in ("first", "second")]
    talk(store.create("/other", "third"))
    os.utime(paths[0], ns=(time.time_ns() + 10**9,) * 2)

    assert store.newest("/proj") == paths[0]
    with pytest.raises(SessionError, match="no session in the folder /none"):
        store.newest("/none")


def test_the_list_is_right_however_the_index_was_treated(store: TranscriptStore) -> None:
    talk(store.create("/proj", "one"))
    expected = [("one", "/proj", "hello", "m")]

    def listed() -> list[tuple[str, str, str, str]]:
        return [(entry.id, entry.cwd, entry.title, entry.model) for entry in store.entries()]

    assert listed() == expected
    index = store.folder / "index.db"
    assert index.stat().st_mode & 0o777 == 0o600
    index.write_bytes(b"no database at all" * 100)
    assert listed() == expected
    index.unlink()
    assert listed() == expected
    talk(store.create("/proj", "two"), UserMessage((Text("again"),)))
    assert {entry[0] for entry in listed()} == {"one", "two"}
    store.remove(store.find("one", "/proj"))
    assert [entry[0] for entry in listed()] == ["two"]


def test_old_sessions_are_deleted_and_those_in_use_are_not(store: TranscriptStore) -> None:
    old, used = (talk(store.create("/proj", name)) for name in ("old", "used"))
    talk(store.create("/proj", "new"))
    for path in (old, used):
        os.utime(path, (0, 0))
    holding = Log(used)

    assert [*store.prune(30)] == ["old"]
    assert {entry.id for entry in store.entries()} == {"used", "new"}
    holding.close()


# Moving


def test_what_is_exported_can_be_imported(store: TranscriptStore, tmp_path: Path) -> None:
    path = talk(store.create("/proj", "one"))
    file = tmp_path / "export.jsonl"
    file.write_bytes(as_lines(rebuild(read(path)), "one"))

    made = import_transcript(store, file, "/proj")

    assert made.messages == (HELLO, REPLY)
    assert rebuild(read(made.path)).messages == (HELLO, REPLY)


def test_a_file_without_a_conversation_is_not_imported(store: TranscriptStore, tmp_path: Path) -> None:
    (tmp_path / "x.jsonl").write_text("hello\n")
    with pytest.raises(SessionError, match="holds no conversation"):
        import_transcript(store, tmp_path / "x.jsonl", "/proj")


def test_people_can_read_an_export(store: TranscriptStore) -> None:
    path = talk(
        store.create("/proj", "one"), HELLO, AssistantMessage((Text("look:"), ToolUse("t", "Read", {"f": "```"})), "m")
    )

    text = as_text(rebuild(read(path)))

    assert "## User\n\nhello" in text
    assert '````\n{"f":"```"}\n````' in text


def test_of_two_that_begin_one_session_the_first_to_speak_has_it(store: TranscriptStore) -> None:
    first, second = store.create("/proj", "one"), store.create("/proj", "one")
    assert not first.path.exists()

    second.writer.add_message(HELLO)
    first.writer.add_message(UserMessage((Text("me too"),)))

    assert second.writer.failure is None
    assert "in use already" in str(first.writer.failure)
    second.writer.close()
    third = store.resume(second.path, "/proj")
    assert third.messages == (HELLO,)
    third.writer.close()


def test_a_session_that_another_process_has_begun_and_closed_is_not_written_over(store: TranscriptStore) -> None:
    waiting = store.create("/proj", "one")
    talk(store.create("/proj", "one"))

    waiting.writer.add_message(UserMessage((Text("me too"),)))

    assert "Another process has begun the session 'one' meanwhile" in str(waiting.writer.failure)
    assert rebuild(read(waiting.path)).messages == (HELLO, REPLY)
