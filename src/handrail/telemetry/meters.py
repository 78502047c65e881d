"""The metrics of a process."""

from collections import deque
from collections.abc import Iterable, Sequence

from opentelemetry.metrics import CallbackOptions, Histogram, Observation
from opentelemetry.sdk.metrics import MeterProvider

from handrail.telemetry import conventions as names

MAX_PENDING = 10_000


class Meters:
    """
    The histograms of requests and calls, and how many calls run.

    A record costs as much as everything else about a call, so that those of calls wait until the metrics are sent.
    """

    def __init__(self, provider: MeterProvider, version: str) -> None:
        meter = provider.get_meter(names.NAME, version, names.SCHEMA_URL)

        def histogram(name: str, unit: str, text: str, buckets: Sequence[float]) -> Histogram:
            return meter.create_histogram(name, unit, text, explicit_bucket_boundaries_advisory=buckets)

        seconds = names.SECONDS_BUCKETS
        self.operations = histogram(names.OPERATION_DURATION, "s", "How long requests to models took", seconds)
        self.tokens = histogram(names.TOKEN_USAGE, "{token}", "Tokens of requests and answers", names.TOKEN_BUCKETS)
        self._calls = histogram(names.TOOL_DURATION, "s", "How long calls of tools ran", seconds)
        self._pending: deque[tuple[float, str, str]] = deque()
        self.running = 0
        # callbacks are asked before histograms are read
        meter.create_observable_up_down_counter(
            names.RUNNING_CALLS, [self._collect], "{call}", "Calls of tools that run now"
        )

    def add_call(self, seconds: float, tool: str, status: str) -> None:
        """Count a call that has ended."""
        self._pending.append((seconds, tool, status))
        if len(self._pending) > MAX_PENDING:
            self._record_pending()

    def _collect(self, _options: CallbackOptions) -> Iterable[Observation]:
        self._record_pending()
        return (Observation(self.running),)

    def _record_pending(self) -> None:
        while self._pending:
            seconds, tool, status = self._pending.popleft()
            self._calls.record(seconds, {names.TOOL_NAME: tool, names.STATUS: status})
