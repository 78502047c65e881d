"""
What sessions cost: python -m benchmarks.sessions_bench

    writing    one turn (words, a call, its result of 2 kB, the next words), redaction included: at most 0.3 ms
    resume     50 MB in 10,000 messages, beside reading and JSON-parsing the same file: at most 3 times
    pictures   50 MB in pictures, the same
    list       10,000 sessions: the first time, and again

Sides that are compared take turns; the lower quartile counts.
"""

import gc
import json
import os
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from handrail.conversation.blocks import Image, Text, ToolResult, ToolUse
from handrail.conversation.messages import AssistantMessage, UserMessage
from handrail.conversation.redact import build_redactor
from handrail.conversation.request import History
from handrail.transcripts.store import TranscriptStore
from handrail.transcripts.writer import TranscriptWriter

TURNS, ROUNDS, MESSAGES, SIZE, SESSIONS = 2_000, 7, 10_000, 50_000_000, 10_000
ENV = {f"SERVICE_{n}_API_KEY": f"key-{n:08}-{n * 7919:08}" for n in range(5)}
RESULT = "def total(items): return sum(item.price * item.count for item in items)  # as it was\n" * 24


def turn(scribe: TranscriptWriter, number: int, result: str, picture: str = "") -> None:
    """One turn as the loop writes it down."""
    call = ToolUse(f"toolu_{number:08}", "Read", {"file_path": f"/home/somebody/project/src/module_{number}.py"})
    words = Text(f"I look at module {number} next, because the total is computed there.")
    parts = (Text(result), Image(picture, "image/png")) if picture else (Text(result),)
    answer = ToolResult(call.id, parts)
    scribe.add_block(f"msg_{number}", "some-model", words, 0)
    scribe.add_block(f"msg_{number}", "some-model", call, 1)
    scribe.start_call(call)
    scribe.end_call(answer)
    scribe.add_message(AssistantMessage((words, call), "some-model", "tool_use"))
    scribe.add_message(UserMessage((answer,)))


def quartile(values: list[float]) -> float:
    return statistics.quantiles(values, n=4)[0]


def timed(action: Callable[[], object]) -> float:
    gc.collect()
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def writing(folder: Path) -> None:
    opened = TranscriptStore(folder, build_redactor(ENV)).create("/proj")
    samples: list[float] = []
    work: list[float] = []
    for number in range(TURNS):
        started, busy = time.perf_counter(), time.thread_time()
        turn(opened.writer, number, RESULT)
        samples.append((time.perf_counter() - started) * 1_000)
        work.append((time.thread_time() - busy) * 1_000)
    opened.writer.close()
    print(f"writing a turn              {quartile(samples):8.3f} ms, of CPU {quartile(work):.3f} (bar: 0.3)")


def resuming(folder: Path, name: str, turns: int, picture: int = 0) -> None:
    store = TranscriptStore(folder, build_redactor(ENV))
    opened = store.create("/proj", name)
    opened.writer.add_message(UserMessage((Text("Go through everything."),)))
    text = RESULT * (SIZE // turns // len(RESULT)) if not picture else RESULT
    blob = os.urandom(picture // 2).hex()
    for number in range(turns):
        turn(opened.writer, number, text, blob)
    opened.writer.close()

    def parse() -> None:
        with opened.path.open("rb") as file:
            kept = [json.loads(line) for line in file]
        assert kept

    def resume() -> None:
        again = store.resume(opened.path, "/proj")
        assert len(History(again.messages).messages) == 2 * turns + 1
        again.writer.close()

    pairs = [(timed(parse), timed(resume)) for _ in range(ROUNDS)]
    floor, ours = (quartile([pair[side] for pair in pairs]) * 1_000 for side in (0, 1))
    size = opened.path.stat().st_size / 1e6
    against = f"reading and parsing {floor:.0f}: {ours / floor:.2f} (bar: 3)"
    print(f"resume {name:9} {size:4.0f} MB     {ours:8.0f} ms, {against}")


def listing(folder: Path) -> None:
    store = TranscriptStore(folder, build_redactor({}))
    opened = store.create("/proj", "one")
    opened.writer.add_message(UserMessage((Text("What is here?"),)))
    turn(opened.writer, 1, RESULT)
    opened.writer.close()
    data = opened.path.read_bytes()
    for number in range(1, SESSIONS):
        place = folder / f"-proj-{number % 50}"
        place.mkdir(exist_ok=True)
        (place / f"session-{number}.jsonl").write_bytes(data)
    first = timed(store.entries)
    again = [timed(store.entries) for _ in range(ROUNDS)]
    assert len(store.entries()) == SESSIONS
    print(f"list of {SESSIONS:,} sessions     {quartile(again) * 1_000:8.0f} ms, the first time {first * 1_000:.0f}")


def main() -> None:
    with tempfile.TemporaryDirectory() as made:
        writing(Path(made, "writing"))
        resuming(Path(made, "resuming"), "text", MESSAGES // 2)
        resuming(Path(made, "resuming"), "pictures", 100, 500_000)
        listing(Path(made, "listing"))


if __name__ == "__main__":
    main()
