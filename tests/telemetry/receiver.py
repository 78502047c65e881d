"""A real receiver of OTLP over HTTP on loopback, and what it received as plain values."""

import gzip
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import ExportMetricsServiceRequest
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest


@dataclass
class ReceivedSpan:
    """A span."""

    name: str
    trace: str
    id: str
    parent: str
    attributes: dict[str, Any]
    events: dict[str, dict[str, Any]]
    links: list[tuple[str, str]]
    is_error: bool
    start: int
    end: int


@dataclass
class Receiver:
    """What came in."""

    url: str = ""
    spans: list[ReceivedSpan] = field(default_factory=list)
    resources: list[dict[str, Any]] = field(default_factory=list)
    scopes: set[tuple[str, str]] = field(default_factory=set)
    metrics: dict[str, list[tuple[dict[str, Any], float, int]]] = field(default_factory=dict)
    headers: list[dict[str, str]] = field(default_factory=list)

    def named(self, name: str) -> list[ReceivedSpan]:
        """The spans whose names begin so, in the order in which they began."""
        return sorted((span for span in self.spans if span.name.startswith(name)), key=lambda span: span.start)

    def add_traces(self, body: bytes) -> None:
        for resource in ExportTraceServiceRequest.FromString(body).resource_spans:
            self.resources.append(values(resource.resource.attributes))
            for scope in resource.scope_spans:
                self.scopes.add((scope.scope.name, scope.schema_url))
                self.spans += [received(span) for span in scope.spans]

    def add_metrics(self, body: bytes) -> None:
        for resource in ExportMetricsServiceRequest.FromString(body).resource_metrics:
            for scope in resource.scope_metrics:
                for metric in scope.metrics:
                    self.metrics[metric.name] = [
                        (values(point.attributes), point.sum, point.count) for point in metric.histogram.data_points
                    ]


def received(span: Any) -> ReceivedSpan:
    return ReceivedSpan(
        span.name,
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        values(span.attributes),
        {event.name: values(event.attributes) for event in span.events},
        [(link.trace_id.hex(), link.span_id.hex()) for link in span.links],
        span.status.code == 2,
        span.start_time_unix_nano,
        span.end_time_unix_nano,
    )


def values(attributes: Any) -> dict[str, Any]:
    return {each.key: value(each.value) for each in attributes}


def value(found: Any) -> Any:
    kind = found.WhichOneof("value")
    return [value(each) for each in found.array_value.values] if kind == "array_value" else getattr(found, kind)


@contextmanager
def open_receiver() -> Iterator[Receiver]:
    """A receiver that listens on a free port."""
    found = Receiver()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["content-length"]))
            body = gzip.decompress(body) if self.headers.get("content-encoding") == "gzip" else body
            found.headers.append(dict(self.headers))
            (found.add_traces if self.path == "/v1/traces" else found.add_metrics)(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_arguments: Any) -> None: ...

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
    thread.start()
    found.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield found
    finally:
        server.shutdown()
        server.server_close()
        thread.join(5)
