"""`handrail cassette`: what is on a cassette, whether it can be played, and how two of them differ."""

import argparse
import json
import os
import sys
from pathlib import Path
from typing import Any

from handrail.cli.terminal import ReportScreen
from handrail.conversation.block_json import block_value
from handrail.conversation.plain import plain, plain_json
from handrail.conversation.redact import build_redactor
from handrail.errors import CassetteError
from handrail.providers.cassette.report import (
    RecordingDifference,
    TapeProblem,
    block_text,
    check_cassette,
    diff_cassettes,
    read_answer,
    seconds_of,
)
from handrail.providers.cassette.tape import Cassette, Recording, load
from handrail.tools.wording import several

MAX_TEXT = 100
FOUND = 1


def run(chosen: argparse.Namespace) -> int:
    """0 = shown, equal or good; 1 = the cassettes differ, or one has a problem."""
    match chosen.what:
        case "show":
            return show(load(Path(chosen.file), salvage=True), chosen.number, as_json=chosen.json)
        case "diff":
            return diff(load(Path(chosen.first)), load(Path(chosen.second)), as_json=chosen.json)
        case _:
            return max(check(Path(file), as_json=chosen.json) for file in chosen.files)


def show(cassette: Cassette, number: int | None, *, as_json: bool) -> int:
    """All recordings in short, or one of them in full; and what is missing where the file is damaged."""
    wanted = [each for each in cassette.recordings if number in (None, each.number)]
    if number is not None and not wanted:
        lost = "".join(f" ({each})" for each in cassette.missing)
        raise CassetteError(
            f"{cassette.path} has no recording {number}{lost}. `handrail cassette show` without a number lists all."
        )
    if as_json:
        recordings = [_recording_value(each, whole=number is not None) for each in wanted]
        _print_json(
            {"file": str(cassette.path), **_header(cassette), "recordings": recordings, "missing": cassette.missing}
        )
        return 0
    header, screen = cassette.header, ReportScreen(sys.stdout)
    print(plain(f"{cassette.path}: {several(len(cassette.recordings), 'recording')} of {header.model or 'no model'}"))
    print(plain(f"provider {header.provider}, {header.base_url}{f', {header.note}' if header.note else ''}"))
    for each in wanted:
        print(plain(_whole(each)) if number is not None else "\n".join(screen.wrap(_line(each), 9)))
    for loss in cassette.missing:
        print(plain(f"{cassette.path}: {loss}. Record it again to have it whole."), file=sys.stderr)
    return 0


def diff(first: Cassette, second: Cassette, *, as_json: bool) -> int:
    """What changed from the first cassette to the second."""
    found = diff_cassettes(first, second)
    if as_json:
        _print_json({"files": [str(first.path), str(second.path)], "differences": [*map(_difference_value, found)]})
    elif not found:
        print(plain(f"{first.path} and {second.path} hold the same ({several(len(first.recordings), 'recording')})."))
    for each in found if not as_json else ():
        print(plain(f"recording {each.number}"))
        for change in each.request:
            print(plain(f"  changed: {change}"))
        for name, text in (("conversation", each.conversation), ("answer", each.answer)):
            if text:
                print(plain(f"  {name} (- {first.path}, + {second.path}):"))
                print(plain("\n".join(f"    {line}" for line in text.split("\n"))))
    return FOUND if found else 0


def check(path: Path, *, as_json: bool) -> int:
    """Whether a cassette can be played to its end and holds nothing that no recording should."""
    try:
        cassette = load(path)
    except CassetteError as error:
        problems, count = [TapeProblem(0, str(error))], 0
    else:
        places = {"working": Path.cwd(), "home": Path(os.environ.get("HOME") or Path.home())}
        problems, count = check_cassette(cassette, build_redactor(os.environ), places), len(cassette.recordings)
    if as_json:
        listed = [{"recording": each.number or None, "problem": each.text} for each in problems]
        _print_json({"file": str(path), "ok": not problems, "recordings": count, "problems": listed})
    elif not problems:
        print(plain(f"{path}: good ({several(count, 'recording')})"))
    for each in problems if not as_json else ():
        where = f"{path}: recording {each.number}: " if each.number else "" if str(path) in each.text else f"{path}: "
        print(plain(f"{where}{each.text}"), file=sys.stderr)
    return FOUND if problems else 0


def _line(recording: Recording) -> str:
    """One recording in two lines: what was asked, and what was answered."""
    request = recording.request
    answer = read_answer(recording)
    said = "; ".join(map(_short, map(block_text, answer.blocks)))
    took = "" if (seconds := seconds_of(recording)) is None else f" in {seconds:.1f} s"
    what = "; ".join(part for part in (said, answer.problem and f"[{answer.problem}]") if part) or "[nothing]"
    asked = f"{several(len(request.messages), 'message')}, the last: {_short(_last_words(request.messages))}"
    return f"{recording.number:>4}  {asked}\n      ->{took} {what}"


def _whole(recording: Recording) -> str:
    """One recording in full."""
    request, answer = recording.request, read_answer(recording)
    parts = [f"recording {recording.number} ({request.api})", "", "request:"]
    parts += [_json(request.head), "", "messages:", *map(_json, request.messages), ""]
    parts += [f"answer (status {recording.status}, {recording.end}, {several(len(recording.chunks), 'chunk')}):"]
    parts += [*map(block_text, answer.blocks), *([f"[{answer.problem}]"] if answer.problem else [])]
    return "\n".join(parts)


def _last_words(messages: tuple[Any, ...]) -> str:
    """The end of a conversation: a prompt, or the results of calls."""
    last = messages[-1] if messages else None
    if not isinstance(last, dict):
        return "nothing"
    content = last.get("content", last.get("output"))
    if isinstance(content, str):
        return content
    blocks = [each for each in content if isinstance(each, dict)] if isinstance(content, list) else []
    texts = [str(each["text"]) for each in blocks if "text" in each]
    results = sum(each.get("type") == "tool_result" for each in blocks)
    return several(results, "result") if results else texts[-1] if texts else several(len(blocks), "block")


def _recording_value(recording: Recording, *, whole: bool) -> dict[str, Any]:
    answer = read_answer(recording)
    value: dict[str, Any] = {
        "number": recording.number,
        "api": recording.request.api,
        "model": recording.request.head.get("model", ""),
        "messages": [*recording.request.messages] if whole else len(recording.request.messages),
        "status": recording.status,
        "end": recording.end,
        "seconds": seconds_of(recording),
        "answer": [*map(block_value, answer.blocks)],
        "problem": answer.problem,
    }
    return {**value, "head": dict(recording.request.head)} if whole else value


def _difference_value(each: RecordingDifference) -> dict[str, Any]:
    return {
        "recording": each.number,
        "changed": list(each.request),
        "conversation": each.conversation,
        "answer": each.answer,
    }


def _header(cassette: Cassette) -> dict[str, str]:
    header = cassette.header
    return {
        "provider": header.provider,
        "base_url": header.base_url,
        "model": header.model,
        "note": header.note,
    }


def _short(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= MAX_TEXT else f"{line[:MAX_TEXT]}..."


def _json(value: Any) -> str:
    return plain_json(value, indent=1)


def _print_json(value: Any) -> None:
    print(json.dumps(value))
