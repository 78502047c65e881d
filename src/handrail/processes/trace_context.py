"""The trace that work belongs to, as programs pass it on: W3C Trace Context, in a variable or a header."""

import re
from contextvars import ContextVar

TRACEPARENT = "TRACEPARENT"
PARENT = r"(?!ff)[0-9a-f]{2}-(?!0{32})[0-9a-f]{32}-(?!0{16})[0-9a-f]{16}-[0-9a-f]{2}"

trace_parent: ContextVar[str] = ContextVar("trace_parent", default="")
"""Of the call or run that this task works for; empty unless telemetry is configured, or a client names a trace."""


def adopt_trace(text: object) -> None:
    """Let this task work for the trace that a client names; what is not a trace parent is left out."""
    if isinstance(text, str) and re.fullmatch(PARENT, text):
        trace_parent.set(text)


def trace_variables() -> dict[str, str]:
    """The variables for a program that is started now; none without a trace."""
    parent = trace_parent.get()
    return {TRACEPARENT: parent} if parent else {}


def trace_headers() -> dict[str, str]:
    """The same as headers, or as metadata of a request."""
    parent = trace_parent.get()
    return {"traceparent": parent} if parent else {}
