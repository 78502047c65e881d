"""Files that others put among the sessions: nothing hangs, nothing breaks, and the good ones are still found."""

import json
import os
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.redact import Redactor
from handrail.errors import SessionError
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import rebuild
from handrail.transcripts.repair import as_lines, as_text, import_transcript, repair
from handrail.transcripts.store import TranscriptStore, folder_name


def said(content: Any, **more: Any) -> str:
    return json.dumps({"type": "user", "uuid": "u", "message": {"role": "user", "content": content}, **more}) + "\n"


TEXTS = {
    "long": said("hi") + json.dumps({"type": "user", "x": "a" * 3_000_000}) + "\n",
    "deep": said("hi") + "[" * 100_000 + "\n",
    "half": said("a \ud800 b", cwd="/x\udc00"),
    "odd-title": json.dumps({"type": "handrail", "event": "title", "title": 5, "model": ["x"], "prompt": {}}) + "\n",
    "odd-summary": json.dumps({"type": "summary", "summary": [1]}) + "\n3\nnull\n",
    "odd-text": said([{"text": 7}, 3], timestamp=3, cwd=["x"]),
    "odd-model": json.dumps({"type": "assistant", "message": {"model": {"a": 1}, "content": 3}}) + "\n",
    "ring": said("x", parentUuid="u"),
    "odd-keep": json.dumps({"type": "handrail", "event": "replaced", "messages": [{"keep": [0, 10**12]}, 3]}) + "\n",
}


@pytest.fixture
def store(tmp_path: Path) -> TranscriptStore:
    store = TranscriptStore(tmp_path / "sessions", Redactor())
    folder = store.folder / folder_name("/proj")
    folder.mkdir(parents=True)
    for name, text in TEXTS.items():
        (folder / f"{name}.jsonl").write_text(text)
    (folder / "bytes.jsonl").write_bytes(bytes(range(256)) * 1000)
    (folder / "endless.jsonl").symlink_to("/dev/zero")
    (folder / "nowhere.jsonl").symlink_to("nowhere")
    (folder / "itself.jsonl").symlink_to("itself.jsonl")
    (folder / "folder.jsonl").mkdir()
    os.mkfifo(folder / "pipe.jsonl")
    (folder / "good.jsonl").write_text(said("The good one.", cwd="/proj"))
    return store


def test_all_that_is_a_file_is_listed(store: TranscriptStore) -> None:
    for _ in range(2):  # looked at, and remembered
        listed = {entry.id: entry.title for entry in store.entries()}
        assert listed.keys() == {*TEXTS, "bytes", "good"}
        assert listed["good"] == "The good one."
        assert all(title.isprintable() for title in listed.values())
    assert (store.folder / "index.db").exists()


NO_FILES = {"endless", "nowhere", "itself", "folder", "pipe"}


def test_each_is_read_mended_and_deleted(store: TranscriptStore) -> None:
    for path in sorted((store.folder / folder_name("/proj")).iterdir()):
        if path.stem in NO_FILES:
            continue
        rebuilt = rebuild(read(path))
        assert as_text(rebuilt) is not None
        assert as_lines(rebuilt, path.stem) is not None
        repair(path)
        assert not rebuild(read(path)).problems
        store.remove(path)
        assert not list(path.parent.glob(f"{path.stem}*"))


@pytest.mark.parametrize("name", sorted(NO_FILES))
def test_what_is_no_file_is_neither_taken_in_nor_mended(store: TranscriptStore, name: str) -> None:
    path = store.folder / folder_name("/proj") / f"{name}.jsonl"
    with pytest.raises(SessionError, match=f"{name}.jsonl"):
        import_transcript(store, path, "/proj")
    with pytest.raises(SessionError, match=f"{name}.jsonl"):
        repair(path)


def test_the_newest_that_can_be_read_is_continued(store: TranscriptStore) -> None:
    (store.folder / folder_name("/proj") / "good.jsonl").touch()

    assert store.newest("/proj").stem == "good"
