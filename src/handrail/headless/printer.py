"""Prints a run: the final text, the one result object, or a line for everything that happens."""

import json
from typing import Literal, Protocol, TextIO, TypeAlias

from handrail.conversation.plain import plain
from handrail.conversation.stream import StreamRetry
from handrail.headless.lines import Lines, news_of
from handrail.headless.wire import problem_of
from handrail.loop.events import LoopEvent, Notice, RunEnded

Format: TypeAlias = Literal["text", "json", "stream-json"]

DENIALS = 5
"""How many refused calls are listed one by one."""


class Printer(Protocol):
    """Prints the events of a run."""

    def on_event(self, event: LoopEvent) -> None: ...


class TextPrinter:
    """Prints the final text; on standard error, what failed, what was refused, and why it takes long."""

    def __init__(self, out: TextIO, errors: TextIO) -> None:
        self._out = out
        self._errors = errors

    def on_event(self, event: LoopEvent) -> None:
        if (news := news_of(event)) and news.stage == "message":
            self._tell(news.message)
        match event:
            case StreamRetry(failure=failure, delay=delay):
                self._tell(f"{failure.message}. It is tried again in {delay:.1f} seconds.")
            case Notice(text=text):
                self._tell(text)
            case RunEnded():
                self._print_end(event)
            case _:
                pass

    def _print_end(self, event: RunEnded) -> None:
        if event.text:
            # programs get the text as it is; for terminals, control characters are removed
            _write(self._out, plain(event.text) if self._out.isatty() else event.text)
        elif not event.is_error and event.deferred is None:
            self._tell("the model gave an empty answer")
        for denial in event.denials[:DENIALS]:
            self._tell(f"{denial.use.name} was refused: {denial.reason}")
        if len(event.denials) > DENIALS:
            self._tell(f"{len(event.denials) - DENIALS} more calls were refused")
        if event.is_error:
            self._tell(problem_of(event))
        if event.deferred is not None:
            self._tell(f"a hook put off a call of {event.deferred.name}; --resume takes it up again")

    def _tell(self, text: str) -> None:
        _write(self._errors, f"handrail: {plain(text)}")


class JsonPrinter:
    """One JSON object a line, as it happens; with `only_result` the one at the end."""

    def __init__(self, out: TextIO, lines: Lines, *, only_result: bool) -> None:
        self._out = out
        self._lines = lines
        self._only_result = only_result

    def on_event(self, event: LoopEvent) -> None:
        for line in self._lines.of(event):
            if line["type"] == "result" or not self._only_result:
                _write(self._out, dump_json(line))


def printer_for(form: Format, lines: Lines, out: TextIO, errors: TextIO) -> Printer:
    """The printer of a format."""
    return TextPrinter(out, errors) if form == "text" else JsonPrinter(out, lines, only_result=form == "json")


def dump_json(line: dict[str, object]) -> str:
    """One line of JSON; lone surrogates from a model cannot break it."""
    return json.dumps(line, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "replace").decode()


def _write(stream: TextIO, text: str) -> None:
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
    stream.flush()
