"""What is on a cassette, what is wrong with it, and how two of them differ: for people and for CI."""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, cast

from handrail.conversation.blocks import AssistantBlock, BrokenToolUse, Text, ToolUse
from handrail.conversation.redact import Redactor
from handrail.conversation.stream import BlockEnd, StreamFailure
from handrail.providers.cassette.canonical import APIS
from handrail.providers.cassette.match import changes, match_key
from handrail.providers.cassette.miss import difference
from handrail.providers.cassette.tape import Cassette, Recording
from handrail.providers.choose import ProviderName, load_api
from handrail.records import record

MAX_ERROR = 200


@record
class RecordedAnswer:
    """An answer as a session would read it. `problem` says why it is none, empty if it is one."""

    blocks: tuple[AssistantBlock, ...] = ()
    problem: str = ""

    @property
    def calls(self) -> tuple[ToolUse | BrokenToolUse, ...]:
        """The calls of tools in it."""
        return tuple(block for block in self.blocks if isinstance(block, ToolUse | BrokenToolUse))


@record
class TapeProblem:
    """Something that is wrong; `number` is the recording, 0 = the whole cassette."""

    number: int
    text: str


def read_answer(recording: Recording) -> RecordedAnswer:
    """What the model answered in a recording."""
    if recording.end == "failed":
        return RecordedAnswer(problem=f"there was no answer: {recording.why}")
    data = b"".join(chunk.data for chunk in recording.chunks)
    if not 200 <= recording.status < 300:
        return RecordedAnswer(problem=f"status {recording.status}: {data.decode('utf-8', 'replace')[:MAX_ERROR]}")
    if recording.request.api not in APIS.values():
        return RecordedAnswer(problem=f"its wire format {recording.request.api!r} is not known")
    reader = load_api(cast("ProviderName", recording.request.api)).reader((), ())
    events = [*reader.feed(data), *reader.end()]
    blocks = tuple(event.block for event in events if isinstance(event, BlockEnd))
    failed = next((event.message for event in events if isinstance(event, StreamFailure)), "")
    if recording.end != "whole":
        failed = f"the answer was {recording.end}" + (f": {recording.why}" if recording.why else "")
    return RecordedAnswer(blocks, failed)


def seconds_of(recording: Recording) -> float | None:
    """How long the answer took; None = it was not timed."""
    times = [chunk.after for chunk in recording.chunks if chunk.after is not None]
    return round(sum(times), 4) if times else None


def check_cassette(cassette: Cassette, redactor: Redactor, paths: Mapping[str, Path]) -> list[TapeProblem]:
    """What is wrong with a cassette: it cannot be played to its end, or holds what no recording should."""
    found: list[TapeProblem] = []
    recordings = cassette.recordings
    if not recordings:
        found.append(TapeProblem(0, "nothing is recorded in it"))
    numbers = {each.number for each in recordings}
    found += (
        TapeProblem(number, "its answer was cut off when the recording stopped")
        for number in range(1, cassette.requests + 1)
        if number not in numbers
    )
    answers = [read_answer(each) for each in recordings]
    for each, answer in zip(recordings, answers, strict=True):
        if answer.problem:
            found.append(TapeProblem(each.number, answer.problem))
        found += (TapeProblem(each.number, text) for text in _leaks(each, answer, redactor, paths))
    if answers and answers[-1].calls and not answers[-1].problem:
        names = ", ".join(call.name for call in answers[-1].calls)
        found.append(TapeProblem(recordings[-1].number, f"it is the last one, and its calls ({names}) have no results"))
    return sorted(found, key=lambda problem: problem.number)


def _leaks(each: Recording, answer: RecordedAnswer, redactor: Redactor, paths: Mapping[str, Path]) -> Iterator[str]:
    """Secrets and paths of this machine in a recording; an answer is also searched across its pieces."""
    request = json.dumps([each.request.head, *each.request.messages], ensure_ascii=False)
    raw = "\n".join(chunk.data.decode("utf-8", "replace") for chunk in each.chunks)
    said = "\n".join(map(block_text, answer.blocks))
    for place, text in (("request", request), ("answer", f"{raw}\n{said}")):
        labels = sorted({edit.text for edit in redactor.spans(text)})
        if labels:
            yield f"the {place} holds a secret: {', '.join(labels)}"
        for name, path in paths.items():
            if str(path) != "/" and str(path) in text:
                yield f"the {place} holds the {name} folder of this machine, {path}"


def block_text(block: AssistantBlock) -> str:
    """A block on one line."""
    match block:
        case Text(text):
            return json.dumps(text, ensure_ascii=False)
        case ToolUse(_, name, values):
            return f"{name}({json.dumps(dict(values), ensure_ascii=False)})"
        case BrokenToolUse():
            return f"{block.name}(input that cannot be read)"
        case _:
            return f"[{type(block).__name__}]"


@record
class RecordingDifference:
    """How two recordings of one number differ: `request` in words, `conversation` and `answer` as diffs."""

    number: int
    request: Sequence[str] = ()
    conversation: str = ""
    answer: str = ""


def diff_cassettes(first: Cassette, second: Cassette) -> list[RecordingDifference]:
    """The recordings that are not the same in both."""
    pairs = enumerate(zip_longest(first.recordings, second.recordings), 1)
    found = (_difference(number, before, after) for number, (before, after) in pairs)
    return [each for each in found if each is not None]


def _difference(number: int, before: Recording | None, after: Recording | None) -> RecordingDifference | None:
    if before is None or after is None:
        return RecordingDifference(number, (f"only in the {'second' if before is None else 'first'} cassette",))
    ones, others = before.request, after.request
    same = match_key(ones, "conversation") == match_key(others, "conversation")
    conversation = "" if same else difference(ones, others, "conversation")
    found = RecordingDifference(number, changes(ones, others), conversation, _answer_difference(before, after))
    return found if any((found.request, found.conversation, found.answer)) else None


def _answer_difference(before: Recording, after: Recording) -> str:
    lines: list[list[Any]] = []
    for each in (before, after):
        answer = read_answer(each)
        lines.append([*map(block_text, answer.blocks), *([f"[{answer.problem}]"] if answer.problem else [])])
    if lines[0] == lines[1]:
        return ""
    return "\n".join(f"{sign} {line}" for sign, side in zip("-+", lines, strict=True) for line in side)
