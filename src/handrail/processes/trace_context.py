"""The trace that work belongs to, as programs pass it on: W3C Trace Context, in a variable or a header."""

from contextvars import ContextVar

TRACEPARENT = "TRACEPARENT"

trace_parent: ContextVar[str] = ContextVar("trace_parent", default="")
"""Of the call or run that this task works for; empty unless telemetry is configured."""


def trace_variables() -> dict[str, str]:
    """The variables for a program that is started now; none without a trace."""
    parent = trace_parent.get()
    return {TRACEPARENT: parent} if parent else {}


def trace_headers() -> dict[str, str]:
    """The same as headers, or as metadata of a request."""
    parent = trace_parent.get()
    return {"traceparent": parent} if parent else {}
