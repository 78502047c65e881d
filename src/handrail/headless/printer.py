"""Prints a run: the final text, the one result object, or a line for everything that happens."""

import json
from typing import Literal, Protocol, TextIO, TypeAlias

from handrail.conversation.plain import plain
from handrail.headless.lines import Lines, news_of
from handrail.headless.wire import problem_of, result
from handrail.loop.events import LoopEvent, RunEnded

Format: TypeAlias = Literal["text", "json", "stream-json"]


class Printer(Protocol):
    """Hears every event of a run."""

    def hear(self, event: LoopEvent) -> None: ...


class TextPrinter:
    """The final text, or what went wrong."""

    def __init__(self, out: TextIO, errors: TextIO) -> None:
        self._out = out
        self._errors = errors

    def hear(self, event: LoopEvent) -> None:
        if (news := news_of(event)) and news.stage == "message":
            _write(self._errors, f"handrail: {plain(news.message)}")
        if not isinstance(event, RunEnded):
            return
        if event.text:
            # a program gets what the model said as it is; a terminal is not steered by it
            _write(self._out, plain(event.text) if self._out.isatty() else event.text)
        elif not event.is_error:
            _write(self._errors, "handrail: the model gave an empty answer")
        if event.is_error:
            _write(self._errors, f"handrail: {plain(problem_of(event))}")


class JsonPrinter:
    """One JSON object at the end."""

    def __init__(self, out: TextIO, lines: Lines) -> None:
        self._out = out
        self._lines = lines

    def hear(self, event: LoopEvent) -> None:
        if isinstance(event, RunEnded):
            _write(self._out, dumped(self._lines.signed(result(event))))


class StreamPrinter:
    """One JSON object a line, as it happens."""

    def __init__(self, out: TextIO, lines: Lines) -> None:
        self._out = out
        self._lines = lines

    def hear(self, event: LoopEvent) -> None:
        for line in self._lines.of(event):
            _write(self._out, dumped(line))


def printer_for(form: Format, lines: Lines, out: TextIO, errors: TextIO) -> Printer:
    """The printer of a format."""
    match form:
        case "text":
            return TextPrinter(out, errors)
        case "json":
            return JsonPrinter(out, lines)
        case "stream-json":
            return StreamPrinter(out, lines)


def dumped(line: dict[str, object]) -> str:
    """One line of JSON; halves of characters that a model cut apart cannot break it."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def _write(stream: TextIO, text: str) -> None:
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
    stream.flush()
