"""From what somebody asks for (a name, an object, nothing) to a model that can be asked."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import cache
from typing import Protocol

from handrail.conversation.request import Request
from handrail.conversation.stream import Usage
from handrail.errors import ProviderSetupError
from handrail.loop.run_config import Model, Stream
from handrail.loop.usage import Cost
from handrail.providers.choose import ModelOptions, choose, open_provider
from handrail.providers.cost import cost_of, price_of
from handrail.records import record


class Streaming(Protocol):
    """The least a model must be able to do."""

    def stream(self, request: Request) -> Stream: ...


@record
class ChosenModel:
    """A model, the name it is asked by, what its answers cost, and how to let go of it."""

    model: Model
    name: str
    cost: Cost
    close: Callable[[], Awaitable[None]]


@record
class OneWay:
    """A model that streams or not, as it likes."""

    inner: Streaming

    def stream(self, request: Request, *, plain: bool = False) -> Stream:
        """The answer; `plain` makes no difference."""
        return self.inner.stream(request)


def chosen_model(
    model: str | Streaming | None, name: str, options: ModelOptions, env: Mapping[str, str]
) -> ChosenModel:
    """A name, somebody's own object, or None for what the environment says."""
    if model is None or isinstance(model, str):
        return model_by_name(replace(options, model=model or ""), env)
    return model_by_object(model, name or "model")


def model_by_name(options: ModelOptions, env: Mapping[str, str]) -> ChosenModel:
    """
    The provider for these wishes, ready to be asked; nothing is connected yet.

    Raises:
        ProviderSetupError: something is missing or wrong in settings or environment.
    """
    choice = choose(options, env)
    provider = open_provider(choice, env)
    return ChosenModel(provider, choice.model, cost_for(choice.model), provider.aclose)


def model_by_object(model: Streaming, name: str) -> ChosenModel:
    """Somebody's own model. It is never closed here: it is not ours."""
    if not callable(getattr(model, "stream", None)):
        raise ProviderSetupError(f"{model!r} is no model: it has no stream(request). Give a name or such an object.")
    plain = "plain" in inspect.signature(model.stream).parameters
    return ChosenModel(model if plain else OneWay(model), name, cost_for(name), _nothing)  # type: ignore[arg-type]  # seen above


def cost_for(asked: str) -> Cost:
    """Prices by the name in the answer, else by the name that was asked for."""

    @cache
    def price(model: str) -> object:
        return price_of(model) or price_of(asked)

    def cost(model: str, usage: Usage) -> float | None:
        return cost_of(usage, price(model))  # type: ignore[arg-type]  # the cache hides the type

    return cost


async def _nothing() -> None:
    """Nothing to close."""
