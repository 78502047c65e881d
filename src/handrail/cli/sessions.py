"""`handrail sessions`: list, show, check, repair, export, import and delete conversations."""

import argparse
import json
import os
import sys
import time
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.cli.permission_flags import report_failure, warn
from handrail.cli.terminal import ReportScreen
from handrail.config.flags import NO_FLAGS_GIVEN
from handrail.conversation.plain import plain, plain_json
from handrail.errors import SessionError
from handrail.lazy import lazy
from handrail.session.redactor import redactor_for
from handrail.session.settings.session_settings import open_settings
from handrail.session.state_folder import session_store, state_folder
from handrail.transcripts.log import read
from handrail.transcripts.rebuild import RebuiltTranscript, rebuild
from handrail.transcripts.repair import as_lines, as_text, import_transcript, repair
from handrail.transcripts.store import TranscriptStore
from handrail.transcripts.writer import message_value

if TYPE_CHECKING:
    from handrail.cli import sessions_page
else:
    sessions_page = lazy("handrail.cli.sessions_page")


def run(chosen: argparse.Namespace) -> int:
    """The exit code: 0, or 1 when a session is missing, broken or in use."""
    store, cwd = session_store(os.environ), str(Path.cwd())
    try:
        return DO[chosen.what](chosen, store, cwd)
    except SessionError as error:
        report_failure(str(error), as_json=chosen.json)
        return 1


def _list(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    found = [entry for entry in store.entries() if chosen.all or entry.cwd == cwd]
    found = found[: chosen.limit or None]
    if chosen.json:
        names = ("id", "cwd", "title", "model", "created", "updated", "size", "path", "outcome", "answers", "dollars")
        told = [{name: getattr(entry, name) for name in names} for entry in found]
        print(plain_json([each | {"updated": utc_text(each["updated"])} for each in told]))
        return 0
    screen = ReportScreen(sys.stdout)
    for entry in found:
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.updated))
        where = f"  {entry.cwd}" if chosen.all else ""
        print("\n".join(screen.wrap_row(f"{entry.id}  {when}  ", plain(f"{entry.title or '(no prompt)'}{where}"))))
    if not found:
        warn("there are no sessions" if chosen.all else "this folder has no sessions; --all lists those of all folders")
    return 0


def utc_text(at: float) -> str:
    """A moment, written as transcripts write theirs."""
    return datetime.fromtimestamp(at, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _load_session(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> tuple[Path, RebuiltTranscript]:
    path = store.find(chosen.id, cwd)
    return path, rebuild(read(path))


def _show(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    path, rebuilt = _load_session(chosen, store, cwd)
    print(_as_json(path, rebuilt) if chosen.json else plain(as_text(rebuilt, whole=chosen.all).rstrip("\n")))
    return 0


def _as_json(path: Path, rebuilt: RebuiltTranscript) -> str:
    facts = {name: getattr(rebuilt, name) for name in ("cwd", "title", "model", "repairs", "problems")}
    messages = [message_value(message) for message in rebuilt.messages]
    return json.dumps({"id": path.stem, "path": str(path), **facts, "messages": messages})


def _check(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    path, rebuilt = _load_session(chosen, store, cwd)
    sound = not rebuilt.repairs and not rebuilt.problems
    line = f"{path.stem}: {len(rebuilt.messages)} messages, " + ("sound" if sound else "needs mending")
    facts = {"id": path.stem, "ok": sound, "messages": len(rebuilt.messages), "repairs": rebuilt.repairs}
    _report(chosen, facts, line if sound else f"{line}: handrail sessions repair {path.stem}", rebuilt)
    return 0 if sound else 1


def _report(chosen: argparse.Namespace, facts: dict[str, Any], line: str, rebuilt: RebuiltTranscript) -> None:
    if chosen.json:
        print(json.dumps({**facts, "problems": rebuilt.problems}))
        return
    print(line)
    for text in rebuilt.problems:
        print(plain(f"  not understood: {text}"))
    for text in rebuilt.repairs:
        print(plain(f"  mended on resume: {text}"))


def _repair(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    path = store.find(chosen.id, cwd)
    before = repair(path)
    changed = bool(before.repairs or before.problems)
    facts = {"id": path.stem, "changed": changed, "repairs": before.repairs}
    _report(chosen, facts, f"{path.stem}: " + ("mended" if changed else "nothing to mend"), before)
    return 0


def _export(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    kind = "json" if chosen.json else chosen.format
    if chosen.no_contents and kind not in ("html", "trace"):
        raise SessionError(f"--no-contents is for --format html and trace; {kind} is nothing but contents.")
    if kind in ("html", "trace"):
        write = sessions_page.page_of if kind == "html" else sessions_page.trace_file
        data = write(store.find(chosen.id, cwd), contents=not chosen.no_contents)
    else:
        data = _export_bytes(kind, *_load_session(chosen, store, cwd))
    if not chosen.output:
        if sys.stdout.isatty():
            print(plain(data.decode("utf-8", "replace")), end="")
        else:
            sys.stdout.buffer.write(data)
        return 0
    try:
        with Path(chosen.output).open("xb") as file:
            file.write(data)
    except FileExistsError as error:
        raise SessionError(f"{chosen.output!r} exists. Give another name, or delete it first.") from error
    return 0


def _export_bytes(kind: str, path: Path, rebuilt: RebuiltTranscript) -> bytes:
    match kind:
        case "jsonl":
            return as_lines(rebuilt, path.stem)
        case "json":
            return _as_json(path, rebuilt).encode() + b"\n"
        case _:
            return as_text(rebuilt).encode("utf-8", "backslashreplace")


def _import(chosen: argparse.Namespace, _store: TranscriptStore, cwd: str) -> int:
    live = open_settings(Path(cwd), os.environ, state_folder(os.environ), NO_FLAGS_GIVEN, warn)
    patterns = live.loaded.settings.get("redact") or ()
    store = session_store(live.loaded.env, redactor_for(live.loaded.env, patterns))
    imported = import_transcript(store, Path(chosen.file), cwd)
    imported.writer.close()
    name, rebuilt = imported.path.stem, imported.rebuilt
    _report(chosen, {"id": name, "path": str(imported.path)}, f"{name}: {len(rebuilt.messages)} messages", rebuilt)
    return 0


def _remove(chosen: argparse.Namespace, store: TranscriptStore, cwd: str) -> int:
    paths = [store.find(each, cwd) for each in chosen.ids]
    for path in paths:
        store.remove(path)
    if chosen.json:
        print(json.dumps({"removed": [path.stem for path in paths]}))
    else:
        print("\n".join(f"{path.stem}: deleted" for path in paths))
    return 0


DO = {
    "list": _list,
    "show": _show,
    "check": _check,
    "repair": _repair,
    "export": _export,
    "import": _import,
    "rm": _remove,
}
