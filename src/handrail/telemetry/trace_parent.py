"""Reads and writes the trace context that programs pass on (W3C Trace Context)."""

import re

from opentelemetry.trace import SpanContext, TraceFlags

FORM = re.compile(r"([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})(-.*)?")


def write_trace_parent(context: SpanContext) -> str:
    """The context as other programs read it."""
    return f"00-{context.trace_id:032x}-{context.span_id:016x}-{context.trace_flags:02x}"


def read_trace_parent(text: str) -> SpanContext | None:
    """The context that another program passed on; None if the text is none."""
    found = FORM.fullmatch(text.strip())
    if found is None or found[1] == "ff" or (found[1] == "00" and found[5]):
        return None
    flags = TraceFlags(int(found[4], 16) & TraceFlags.SAMPLED)
    context = SpanContext(int(found[2], 16), int(found[3], 16), is_remote=True, trace_flags=flags)
    return context if context.is_valid else None
