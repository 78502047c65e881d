"""Opens the telemetry of a session, if the OTEL variables ask for it."""

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING

from handrail.conversation.redact import Redactor
from handrail.lazy import lazy
from handrail.telemetry.wanted import WantedTelemetry, collector_addresses, wanted_telemetry

if TYPE_CHECKING:
    from handrail.telemetry import attributes, observer, pipeline
else:
    attributes = lazy("handrail.telemetry.attributes")
    observer = lazy("handrail.telemetry.observer")
    pipeline = lazy("handrail.telemetry.pipeline")

MISSING = (
    "The OTEL variables ask for telemetry, which needs more packages: pip install 'handrail[otel]'. "
    "Without them nothing is sent; OTEL_SDK_DISABLED=true switches this message off."
)


def open_telemetry(
    env: Mapping[str, str],
    redactor: Redactor,
    on_warning: Callable[[str], None],
    *,
    version: str,
    session_id: str,
    provider: str,
) -> "observer.SessionTelemetry | None":
    """The observer of a session; None if nothing is wanted. The exporters read the variables of the process."""
    wanted, own = wanted_telemetry(env), wanted_telemetry(os.environ)
    for problem in wanted.problems:
        on_warning(problem)
    # an endpoint of variables that a program made up would not be known to the exporters
    wanted = WantedTelemetry(wanted.traces and own.traces, wanted.metrics and own.metrics, wanted.content)
    if not wanted.traces and not wanted.metrics:
        return None
    try:
        opened = pipeline.open_pipeline(version, os.environ.get("OTEL_SERVICE_NAME", ""), wanted)
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("opentelemetry"):
            raise
        on_warning(MISSING)
        return None
    contents = attributes.Contents(redactor, wanted.content)
    outer = env.get("TRACEPARENT", "")
    return observer.SessionTelemetry(
        opened,
        contents,
        on_warning,
        session_id=session_id,
        provider=provider,
        outer=outer,
        collector=redactor.text(collector_addresses(os.environ, wanted)),
    )
