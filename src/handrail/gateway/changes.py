"""Tells clients what has changed: lists of tools, prompts and resources, and resources that they follow."""

import itertools
from collections.abc import Callable, Collection, Mapping
from typing import Any, Literal, TypeAlias

from handrail.mcp.messages import Message, notification
from handrail.records import record

Kind: TypeAlias = Literal["tools", "prompts", "resources", "resource"]
KINDS: tuple[Kind, ...] = ("tools", "prompts", "resources")


@record
class Change:
    """A list that has changed, or the resource at an address; `client` None = for all clients."""

    kind: Kind
    uri: str = ""
    client: str | None = None

    def message(self, meta: Mapping[str, Any] | None = None) -> Message:
        """The notification of it."""
        beside = {"_meta": dict(meta)} if meta else {}
        if self.kind == "resource":
            return notification("notifications/resources/updated", {"uri": self.uri, **beside})
        return notification(f"notifications/{self.kind}/list_changed", beside)


Listener: TypeAlias = Callable[[Change], None]


class Changes:
    """Brings changes to those that listen."""

    def __init__(self) -> None:
        self._numbers = itertools.count()
        self._listeners: dict[int, tuple[str, Listener]] = {}

    def listen(self, client: str, listener: Listener) -> Callable[[], None]:
        """Tell this listener of the changes for a client; the function that is returned ends that."""
        number = next(self._numbers)
        self._listeners[number] = (client, listener)

        def end() -> None:
            self._listeners.pop(number, None)

        return end

    def tell(self, change: Change) -> None:
        """Tell all whom it concerns."""
        for client, listener in list(self._listeners.values()):
            if change.client in (None, client):
                listener(change)


def is_followed(uri: str, followed: Collection[str]) -> bool:
    """Whether a resource, or one that it lies below, is followed."""
    return uri in followed or any(uri.startswith(f"{each.rstrip('/')}/") for each in followed)


def asked_changes(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of a filter is understood and honoured, as `subscriptions/listen` has it."""
    honoured: dict[str, Any] = {
        f"{kind}ListChanged": True for kind in KINDS if wanted.get(f"{kind}ListChanged") is True
    }
    followed = wanted.get("resourceSubscriptions")
    if isinstance(followed, list):
        honoured["resourceSubscriptions"] = [each for each in followed if isinstance(each, str)]
    return honoured


def is_wanted(change: Change, honoured: Mapping[str, Any]) -> bool:
    """Whether a change passes such a filter."""
    if change.kind == "resource":
        return is_followed(change.uri, honoured.get("resourceSubscriptions", ()))
    return f"{change.kind}ListChanged" in honoured
