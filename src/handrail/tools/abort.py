"""Abort signals: one per turn, a child per answer and per call. A child aborts with its parent, never the other way."""

from collections.abc import Callable
from enum import Enum


class AbortReason(Enum):
    """Why a call is stopped, strongest first: when several reasons apply, the model is told the first."""

    DISCARDED = "streaming_fallback"
    SIBLING = "sibling_error"
    USER = "user_interrupted"
    HOOK = "hook_stopped"
    SUBMIT = "submit_interrupted"
    TIMEOUT = "timed_out"

    def outweighs(self, other: "AbortReason") -> bool:
        """Whether this is the reason to tell when both apply."""
        order = list(AbortReason)
        return order.index(self) < order.index(other)


class AbortSignal:
    """Set at most once. Listeners are called in the order they were added, at once if the signal is already set."""

    __slots__ = ("_children", "_listeners", "_parent", "reason")

    def __init__(self, parent: "AbortSignal | None" = None) -> None:
        self.reason: AbortReason | None = parent.reason if parent else None
        self._parent = parent
        self._listeners: list[Callable[[AbortReason], None]] = []
        self._children: dict[AbortSignal, None] = {}
        if parent and not self.reason:
            parent._children[self] = None

    @property
    def aborted(self) -> bool:
        """Whether the signal is set."""
        return self.reason is not None

    def abort(self, reason: AbortReason) -> None:
        """Set the signal and all its children. A second call changes nothing."""
        if self.reason is not None:
            return
        self.reason = reason
        listeners, self._listeners = self._listeners, []
        children, self._children = self._children, {}
        for listener in listeners:
            listener(reason)
        for child in children:
            child.abort(reason)

    def listen(self, listener: Callable[[AbortReason], None]) -> None:
        """Call the listener when the signal is set."""
        if self.reason is not None:
            listener(self.reason)
        else:
            self._listeners.append(listener)

    def child(self) -> "AbortSignal":
        """A signal that is set with this one, and can be set alone."""
        return AbortSignal(self)

    def release(self) -> None:
        """Forget the parent and the listeners: what this signal guarded is over."""
        if self._parent:
            self._parent._children.pop(self, None)
        self._listeners.clear()
