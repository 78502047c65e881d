"""The model of a session: chosen by name or given as an object, exchanged on request, and billed."""

import inspect
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import field, replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from handrail.conversation.request import Request
from handrail.conversation.stream import Usage
from handrail.errors import ProviderSetupError
from handrail.lazy import lazy
from handrail.loop.run_config import Model, Stream
from handrail.loop.usage import Cost
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.providers.client import Provider
from handrail.providers.cost import cost_of, price_of
from handrail.providers.prices import Price
from handrail.records import record

if TYPE_CHECKING:
    from handrail.conversation.redact import Redactor
    from handrail.providers.cassette import opening as cassettes
    from handrail.providers.cassette import record as recording
    from handrail.providers.cassette.normalize import Normalizer
    from handrail.providers.cassette.record import Recorder
    from handrail.providers.cassette.replay import Replayer
else:
    cassettes = lazy("handrail.providers.cassette.opening")
    recording = lazy("handrail.providers.cassette.record")


UNNAMED = "model"
"""What a model without a name is asked by."""


class Streaming(Protocol):
    """The least a model must be able to do. If it has a text `model` or `name`, that is the name it is asked by."""

    def stream(self, request: Request) -> Stream: ...


def name_of(model: Streaming) -> str:
    """The name that a caller's own model is asked, priced and measured by."""
    if isinstance(model, Provider):
        return model.model or UNNAMED  # its `name` is that of the wire format
    given = (getattr(model, attribute, None) for attribute in ("model", "name"))
    return next((name for name in given if isinstance(name, str) and name), UNNAMED)


@record
class ChosenModel:
    """A model, the name it is asked by, what its answers cost, and how to let go of it."""

    model: Model
    name: str
    cost: Cost
    close: Callable[[], Awaitable[None]]
    on_failure: Callable[[], None] = lambda: None
    """Called before it is closed, if the last prompt was not answered."""


@record
class OneWay:
    """A model that streams or not, as it likes."""

    inner: Streaming

    def stream(self, request: Request, *, plain: bool = False) -> Stream:
        """The answer; `plain` makes no difference."""
        return self.inner.stream(request)


class OpenTape:
    """The one transport of a session's cassette, whichever models it asks: closed with the last of them."""

    def __init__(self) -> None:
        self.recorder: Recorder | None = None
        self.replayer: Replayer | None = None
        self._users = 0

    def hold(self, chosen: ChosenModel) -> ChosenModel:
        """The model, which uses the tape until it is closed."""
        self._users += 1
        return replace(chosen, close=self._release)

    async def _release(self) -> None:
        self._users -= 1
        if not self._users and self.recorder is not None:
            await self.recorder.aclose()
        if not self._users and self.replayer is not None:
            self.replayer.report_unplayed()


@record
class Tape:
    """The cassette of a session: answers are recorded into it, or replayed from it."""

    cwd: Path
    record: Path | None = None
    replay: Path | None = None
    match: str = "conversation"
    redactor: "Redactor | None" = None
    on_warning: Callable[[str], None] = print
    opened: OpenTape = field(default_factory=OpenTape)


def choose_model(options: ModelOptions, env: Mapping[str, str], tape: Tape | None = None) -> ChosenModel:
    """The model that these options name, not connected yet; ProviderSetupError or CassetteError if it is unusable."""
    if tape is not None and tape.replay:
        replayer = tape.opened.replayer or cassettes.open_replayer(
            tape.replay, _normalizer(tape, env), match=tape.match, on_warning=tape.on_warning
        )
        provider = cassettes.open_replayed_provider(replayer, options)
        tape.opened.replayer = replayer
        return tape.opened.hold(_wrap_provider(provider, cassettes.replayed_choice(replayer.cassette, options).model))
    choice = choose(options, env)
    if tape is None or not tape.record:
        return _wrap_provider(open_provider(choice, env), choice.model)
    recorder = tape.opened.recorder or recording.open_recorder(
        tape.record, _normalizer(tape, env), env, tape.on_warning
    )
    chosen = _wrap_provider(open_provider(choice, env, recorder), choice.model)
    tape.opened.recorder = recorder
    return tape.opened.hold(replace(chosen, on_failure=recorder.mark_failed))


def _normalizer(tape: Tape, env: Mapping[str, str]) -> "Normalizer":
    return cassettes.session_normalizer(tape.cwd, env, redactor=tape.redactor)


def _wrap_provider(provider: Provider, name: str) -> ChosenModel:
    return ChosenModel(provider, name, cost_for(name), provider.aclose)


def model_by_object(model: Streaming, name: str = "") -> ChosenModel:
    """The caller's own model, by its own name if none is given. It is never closed here: it is not ours."""
    if not callable(getattr(model, "stream", None)):
        raise ProviderSetupError(f"{model!r} is not a model: it has no stream(request). Give a name or such an object.")
    name = name or name_of(model)
    plain = "plain" in inspect.signature(model.stream).parameters
    return ChosenModel(model if plain else OneWay(model), name, cost_for(name), _close_nothing)  # type: ignore[arg-type]  # seen above


def cost_for(asked: str, price_of: Callable[[str], Price | None] = price_of) -> Cost:
    """Prices by the name in the answer, else by the name that was asked for."""

    @cache
    def price(model: str) -> object:
        return price_of(model) or price_of(asked)

    def cost(model: str, usage: Usage) -> float | None:
        return cost_of(usage, price(model))  # type: ignore[arg-type]  # the cache hides the type

    return cost


def is_taped(model: object) -> bool:
    """Whether what a model is asked goes to a cassette or comes from one."""
    return isinstance(model, Provider) and model.is_taped


def searches_itself(chosen: ChosenModel) -> bool:
    """Whether the server of a model can search the web for it."""
    return isinstance(chosen.model, Provider) and bool(chosen.model.web_search(chosen.name))


async def _close_nothing() -> None:
    """For models that belong to the caller."""


class SessionModel:
    """The model that a session asks now, those it asked before, and the bill of requests beside the conversation."""

    def __init__(self, chosen: ChosenModel) -> None:
        self.chosen = chosen
        self._replaced: list[ChosenModel] = []
        self._bill: list[tuple[str, Usage]] = []
        self._agents_bill: list[tuple[str, Usage]] = []

    @property
    def name(self) -> str:
        """The name of the model that is asked now."""
        return self.chosen.name

    def exchange(self, chosen: ChosenModel) -> None:
        """Ask another model. The former one may still be answering: `close_replaced` lets go of it."""
        self._replaced.append(self.chosen)
        self.chosen = chosen

    def add_usage(self, model: str, usage: Usage) -> None:
        """Put what was used beside the conversation on its bill."""
        self._bill.append((model, usage))

    def take_usage(self) -> Sequence[tuple[str, Usage]]:
        """The bill since the last call."""
        bill, self._bill = self._bill, []
        return bill

    def add_agent_usage(self, model: str, usage: Usage) -> None:
        """Put what a sub-agent used on the bill."""
        self._agents_bill.append((model, usage))

    def take_agent_usage(self) -> Sequence[tuple[str, Usage]]:
        """The bill of sub-agents since the last call."""
        bill, self._agents_bill = self._agents_bill, []
        return bill

    async def close_replaced(self) -> None:
        """Let go of the models that are not asked any more."""
        replaced, self._replaced = self._replaced, []
        for each in replaced:
            await each.close()

    async def aclose(self, *, answered: bool = True) -> None:
        """Let go of all models. A recording of what was not answered does not replace a better one."""
        await self.close_replaced()
        if not answered:
            self.chosen.on_failure()
        await self.chosen.close()
