"""
What carries spans and metrics to the collector: one for the whole process, because each has threads of its own.

Spans are built whole when they end, and handed to the batch processor at once. That costs an eighth of what a living
span of the SDK does, so that a call pays little.
"""

import atexit
import logging
import random
import threading
from collections.abc import Mapping, Sequence
from functools import cache

from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import AlwaysOffExemplarFilter, MeterProvider
from opentelemetry.sdk.metrics.export import PeriodicExportingMetricReader
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import Event, ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.sampling import Decision
from opentelemetry.sdk.util.instrumentation import InstrumentationScope
from opentelemetry.trace import (
    Link,
    NonRecordingSpan,
    SpanContext,
    SpanKind,
    Status,
    StatusCode,
    TraceFlags,
    set_span_in_context,
)

from handrail.telemetry import conventions as names
from handrail.telemetry.meters import Meters
from handrail.telemetry.wanted import WantedTelemetry

FLUSH_SECONDS = 3.0
SAMPLED, NOT_SAMPLED = TraceFlags(TraceFlags.SAMPLED), TraceFlags(TraceFlags.DEFAULT)
UNSET = Status(StatusCode.UNSET)


class WatchedExporter(SpanExporter):
    """Sends spans, and remembers whether the last ones arrived."""

    def __init__(self) -> None:
        self._inner = OTLPSpanExporter()
        self.has_failed = False

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        """Send some spans."""
        result = self._inner.export(spans)
        self.has_failed = result is not SpanExportResult.SUCCESS
        return result

    def shutdown(self) -> None:
        """Give up what is still to be sent."""
        self._inner.shutdown()  # type: ignore[no-untyped-call]


class TelemetryPipeline:
    """Spans and metrics of a process on their way out."""

    def __init__(self, version: str, service: str, *, traces: bool, metrics: bool) -> None:
        # nothing in the opentelemetry packages may write to a terminal that we draw on
        logging.getLogger("opentelemetry").addHandler(logging.NullHandler())  # noqa: TID251  # not one of ours
        own = {} if service else {"service.name": names.NAME}
        self.resource = Resource.create({**own, "service.version": version})
        self.scope = InstrumentationScope(names.NAME, version, names.SCHEMA_URL)
        self.sampler = TracerProvider(resource=self.resource, shutdown_on_exit=False).sampler
        self._exporter = WatchedExporter() if traces else None
        self._spans = BatchSpanProcessor(self._exporter) if self._exporter else None
        self._metric_exporter = OTLPMetricExporter() if metrics else None
        self._metrics: MeterProvider | None = None
        self.meters: Meters | None = None
        if self._metric_exporter is not None:
            reader = PeriodicExportingMetricReader(self._metric_exporter)
            self._metrics = MeterProvider(
                [reader], self.resource, exemplar_filter=AlwaysOffExemplarFilter(), shutdown_on_exit=False
            )
            self.meters = Meters(self._metrics, version)

    def new_context(self, parent: SpanContext) -> SpanContext:
        """The context of a span below another."""
        return SpanContext(
            parent.trace_id, random.getrandbits(64) or 1, is_remote=False, trace_flags=parent.trace_flags
        )

    def root_context(self, name: str, parent: SpanContext | None) -> SpanContext:
        """The context of the first span of a process in a trace, sampled or not as the variables say."""
        trace_id = parent.trace_id if parent else random.getrandbits(128) or 1
        above = set_span_in_context(NonRecordingSpan(parent)) if parent else None
        found = self.sampler.should_sample(above, trace_id, name, SpanKind.INTERNAL, {})
        is_sampled = self._spans is not None and found.decision is Decision.RECORD_AND_SAMPLE
        flags = SAMPLED if is_sampled else NOT_SAMPLED
        return SpanContext(trace_id, random.getrandbits(64) or 1, is_remote=False, trace_flags=flags)

    def emit(
        self,
        name: str,
        context: SpanContext,
        parent: SpanContext | None,
        times: tuple[int, int],
        attributes: Mapping[str, object],
        *,
        kind: SpanKind = SpanKind.INTERNAL,
        events: Sequence[Event] = (),
        links: Sequence[Link] = (),
        error: str = "",
    ) -> None:
        """Send a span that has ended; without sampling, do nothing."""
        if self._spans is None or not context.trace_flags:
            return
        self._spans.on_end(
            ReadableSpan(
                name,
                context,
                parent,
                self.resource,
                attributes,  # type: ignore[arg-type]  # texts, numbers and lists of texts
                events,
                links,
                kind,
                status=Status(StatusCode.ERROR, error) if error else UNSET,
                start_time=times[0],
                end_time=times[1],
                instrumentation_scope=self.scope,
            )
        )

    def flush(self) -> bool:
        """Send what waits; False if it did not arrive in time. A collector that is gone delays no exit for long."""
        done = threading.Event()

        def send() -> None:
            if self._spans is not None:
                self._spans.force_flush()
            if self._metrics is not None:
                self._metrics.force_flush(FLUSH_SECONDS * 1000)
            done.set()

        threading.Thread(target=send, name="handrail-telemetry", daemon=True).start()
        arrived = done.wait(FLUSH_SECONDS)
        return arrived and not (self._exporter is not None and self._exporter.has_failed)

    def close(self) -> None:
        """Stop its threads. What still waits is given up, so that this takes no time."""
        if self._exporter is not None and self._spans is not None:
            self._exporter.shutdown()
            self._spans.shutdown()  # type: ignore[no-untyped-call]
        if self._metric_exporter is not None and self._metrics is not None:
            self._metric_exporter.shutdown()
            self._metrics.shutdown()


@cache
def open_pipeline(version: str, service: str, wanted: WantedTelemetry) -> TelemetryPipeline:
    """The pipeline of this process, made with the first session that wants one."""
    opened = TelemetryPipeline(version, service, traces=wanted.traces, metrics=wanted.metrics)
    atexit.register(opened.close)
    return opened
