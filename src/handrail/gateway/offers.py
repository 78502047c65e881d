"""What a program offers besides tools: prompts, resources and templates of them, each a typed function."""

import inspect
import re
from collections.abc import Callable, Mapping
from functools import cached_property
from typing import Any
from urllib.parse import unquote

from handrail.dispatch.threads import in_thread
from handrail.errors import HandrailError, JsonRpcError
from handrail.gateway.content import prompt_messages, resource_content
from handrail.mcp.messages import INVALID_PARAMS

VARIABLE = re.compile(r"\{([A-Za-z_][A-Za-z0-9_]*)\}")

Complete = Callable[[str], Any]
"""Gives the values that begin with a text."""


class PromptOffer:
    """A prompt: a function whose parameters, all texts, are its arguments."""

    def __init__(self, function: Callable[..., Any], name: str = "", complete: Mapping[str, Complete] | None = None):
        self.function = function
        self.name = name or function.__name__
        self.description = inspect.getdoc(function) or self.name
        self.complete = dict(complete or {})
        self.parameters = _parameters(function)
        if unknown := self.complete.keys() - self.parameters.keys():
            raise HandrailError(f"The prompt {self.name!r} has no parameter {min(unknown)!r} to complete.")

    def definition(self) -> dict[str, Any]:
        """The prompt as clients see it."""
        arguments = [{"name": name, "required": required} for name, required in self.parameters.items()]
        return {"name": self.name, "description": self.description, "arguments": arguments}

    async def messages(self, given: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The messages for these arguments; JsonRpcError if one is missing or unknown."""
        missing = [name for name, required in self.parameters.items() if required and name not in given]
        wrong = [name for name, value in given.items() if name not in self.parameters or not isinstance(value, str)]
        if missing or wrong:
            what = f"lacks {missing[0]!r}" if missing else f"does not take {wrong[0]!r} as it was given"
            raise JsonRpcError(f"The prompt {self.name!r} {what}.", INVALID_PARAMS)
        return prompt_messages(await call_function(self.function, given))


class ResourceOffer:
    """A resource at an address, or with `{names}` in the address all that match it: parameters of the function."""

    def __init__(
        self,
        function: Callable[..., Any],
        uri: str,
        *,
        name: str = "",
        mime_type: str = "",
        complete: Mapping[str, Complete] | None = None,
    ) -> None:
        self.function = function
        self.uri = uri
        self.name = name or function.__name__
        self.description = inspect.getdoc(function) or self.name
        self.mime_type = mime_type
        self.complete = dict(complete or {})
        self.variables = tuple(VARIABLE.findall(uri))
        if set(self.variables) != set(_parameters(function)):
            raise HandrailError(
                f"The resource {uri!r} has the variables {list(self.variables)}, and its function the parameters "
                f"{list(_parameters(function))}. Give both the same names."
            )

    @cached_property
    def _pattern(self) -> "re.Pattern[str]":
        parts = VARIABLE.split(self.uri)
        return re.compile("".join(f"(?P<{part}>[^/]+)" if at % 2 else re.escape(part) for at, part in enumerate(parts)))

    def definition(self) -> dict[str, Any]:
        """The resource as clients see it."""
        kind = {"mimeType": self.mime_type} if self.mime_type else {}
        address = {"uriTemplate" if self.variables else "uri": self.uri}
        return {**address, "name": self.name, "description": self.description, **kind}

    def match(self, uri: str) -> dict[str, str] | None:
        """The values of its variables in an address; None if it is another one."""
        if not self.variables:
            return {} if uri == self.uri else None
        found = self._pattern.fullmatch(uri)
        return None if found is None else {name: unquote(value) for name, value in found.groupdict().items()}

    async def read(self, uri: str, values: Mapping[str, str]) -> list[dict[str, Any]]:
        """Its contents."""
        content = await call_function(self.function, values)
        match content:
            case str() | bytes():
                return [resource_content(uri, content, self.mime_type)]
            case Mapping():
                return [dict(content)]
            case list() | tuple():
                return [dict(each) for each in content]
            case _:
                raise HandrailError(f"The resource {uri!r} returned {content!r:.200}. Return a text or bytes.")


async def call_function(function: Callable[..., Any], given: Mapping[str, Any]) -> Any:
    """Call a function of the program; a blocking one in a thread."""
    if inspect.iscoroutinefunction(function):
        return await function(**given)
    return await in_thread(lambda: function(**given))


def _parameters(function: Callable[..., Any]) -> dict[str, bool]:
    """The names of a function's parameters, and whether each must be given."""
    found = inspect.signature(function).parameters.values()
    if any(each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD, each.POSITIONAL_ONLY) for each in found):
        raise HandrailError(f"{function.__name__} takes arguments without names. Use plain named parameters.")
    return {each.name: each.default is each.empty for each in found}
