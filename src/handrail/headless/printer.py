"""Prints a run: the final text, the one result object, or a line for everything that happens."""

from collections.abc import Callable
from typing import TYPE_CHECKING, Literal, Protocol, TextIO, TypeAlias

from handrail.conversation.plain import plain, plain_json
from handrail.conversation.stream import StreamRetry
from handrail.headless.ways_out import denials_of, way_out
from handrail.hooks.news import HookNews, news_of
from handrail.loop.events import Denial, LoopEvent, Notice, RunEnded
from handrail.loop.state import Why
from handrail.tools.delegation import AgentNews
from handrail.tools.events import CallFinished, CallProgress

if TYPE_CHECKING:
    from handrail.headless.lines import Lines
    from handrail.headless.wire import Line

Format: TypeAlias = Literal["text", "json", "stream-json"]

DENIALS = 5
"""How many refused calls are listed one by one."""

PRINTED = frozenset({HookNews, CallProgress, StreamRetry, Notice, CallFinished, RunEnded})
"""The events that the text of a run tells something of."""

NEXT_MOVES = {
    Why.MAX_TURNS: "--max-turns N sets another limit",
    Why.MAX_DOLLARS: "--max-budget-usd N sets another limit",
    Why.REPEATED_FAILURE: "say what to do instead of the call",
    Why.REPEATED_CALL: "say what to do instead of the call",
    Why.UNFIT_ANSWERS: "simplify the schema of --json-schema, or try another --model",
    Why.CUT_ANSWERS: "ask for less at once",
}
"""What a person can do when a run ended before its answer."""


class Printer(Protocol):
    """Prints the events of a run."""

    def on_event(self, event: LoopEvent) -> None: ...


class TextPrinter:
    """
    Prints the final text; on standard error, what failed, what was refused, and why it takes long.

    Without `out` the answer is shown elsewhere. `can_continue`: the session is kept, so that another prompt can go on
    with it. `shows_calls`: each call has been shown with its end. `tell` prints a message about the run; by default as
    one line on `errors`.
    """

    def __init__(
        self,
        out: TextIO | None,
        errors: TextIO,
        *,
        can_continue: bool = False,
        shows_calls: bool = False,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        self._out = out
        self._errors = errors
        self._tell = tell or self._tell_whole
        self._can_continue = can_continue
        self._shows_calls = shows_calls
        self._denials: list[Denial] = []
        self._shown: set[str] = set()

    def on_event(self, event: LoopEvent) -> None:
        if type(event) in PRINTED:
            self._print(event)

    def _print(self, event: LoopEvent) -> None:
        if (news := news_of(event)) and news.stage == "message":
            self._tell(news.message)
        self._denials += [denial for denial in denials_of(event) if not denial.by_person]
        match event:
            case StreamRetry():
                self._tell(event.report)
            case Notice(text=text):
                self._tell(text)
            case CallFinished(outcome=outcome) if self._shows_calls:
                self._shown.add(outcome.use.id)
            case RunEnded():
                self._print_end(event)
            case _:
                pass

    def _print_end(self, event: RunEnded) -> None:
        if event.text and self._out is not None:
            # programs get the text as it is; for terminals, control characters are removed
            _write(self._out, plain(event.text) if self._out.isatty() else event.text)
        elif not event.text and not event.is_error and event.deferred is None:
            self._tell("the model gave an empty answer")
        self._list_denials()
        if way := way_out(self._denials):
            self._tell_whole(way)  # not wrapped: it is copied
        if event.is_error:
            self._tell(event.report)
        if move := NEXT_MOVES.get(event.why):
            more = '`handrail -p --continue "Go on."` goes on from here; ' if self._can_continue else ""
            self._tell(f"{more}{move}")
        if event.deferred is not None:
            self._tell(f"a hook put off a call of {event.deferred.name}; --resume takes it up again")

    def _list_denials(self) -> None:
        untold = [denial for denial in self._denials if denial.use.id not in self._shown]
        for denial in untold[:DENIALS]:
            self._tell(f"{denial.use.name} was refused: {denial.reason}")
        if len(untold) > DENIALS:
            self._tell(f"{len(untold) - DENIALS} more calls were refused")

    def _tell_whole(self, text: str) -> None:
        _write(self._errors, f"handrail: {plain(text)}")


class JsonPrinter:
    """One JSON object a line, as it happens; with `only_result` the one at the end."""

    def __init__(self, out: TextIO, lines: "Lines", *, only_result: bool) -> None:
        self._out = out
        self._lines = lines
        self._only_result = only_result

    def on_event(self, event: LoopEvent) -> None:
        for line in self._lines.of(event):
            if line["type"] == "result" or not self._only_result:
                _write(self._out, dump_json(line))

    async def tell(self, line: "Line") -> None:
        """Print a line about something that no event of the run tells of."""
        if not self._only_result:
            _write(self._out, dump_json(self._lines.sign(line)))


def print_news(lines: "Lines", out: TextIO, news: AgentNews) -> None:
    """Print what a sub-agent does in the background as lines."""
    for line in lines.agents.on_news(news.call, news):
        _write(out, dump_json(lines.sign(line)))


def printer_for(
    form: Format,
    lines: "Lines | None",
    out: TextIO | None,
    errors: TextIO,
    *,
    can_continue: bool = False,
    shows_calls: bool = False,
    tell: Callable[[str], None] | None = None,
) -> Printer:
    """The printer of a format. Without `out`, text is shown elsewhere; only text needs no `lines`."""
    if form == "text":
        return TextPrinter(out, errors, can_continue=can_continue, shows_calls=shows_calls, tell=tell)
    assert out is not None
    assert lines is not None
    return JsonPrinter(out, lines, only_result=form == "json")


def dump_json(line: dict[str, object]) -> str:
    """One line of JSON; lone surrogates from a model cannot break it."""
    return plain_json(line, compact=True)


def _write(stream: TextIO, text: str) -> None:
    stream.write(text.encode("utf-8", "replace").decode() + "\n")
    stream.flush()
