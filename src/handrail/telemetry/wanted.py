"""What the OTEL variables ask for."""

from collections.abc import Mapping

from handrail.records import record

ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT"
CONTENT = "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT"
PROTOCOL = "OTEL_EXPORTER_OTLP_PROTOCOL"
HTTP = "http/protobuf"
USUAL = "http://localhost:4318"
"""Where the exporters send without an endpoint."""


@record
class WantedTelemetry:
    """Which signals to send, and whether they may contain what was said. `problems` says what cannot be done."""

    traces: bool = False
    metrics: bool = False
    content: bool = False
    problems: tuple[str, ...] = ()


def wanted_telemetry(env: Mapping[str, str]) -> WantedTelemetry:
    """What the variables ask for: nothing, unless they name an endpoint or the exporter."""
    if _is_on(env.get("OTEL_SDK_DISABLED", "")):
        return WantedTelemetry()
    problems: list[str] = []
    traces, metrics = (_is_wanted(signal, env, problems) for signal in ("TRACES", "METRICS"))
    return WantedTelemetry(traces, metrics, _is_on(env.get(CONTENT, "")), tuple(problems))


def collector_addresses(env: Mapping[str, str], wanted: WantedTelemetry) -> str:
    """Where the wanted signals are sent, as the variables name it."""
    signals = [signal for signal, on in (("TRACES", wanted.traces), ("METRICS", wanted.metrics)) if on]
    found = [env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT") or env.get(ENDPOINT) or USUAL for signal in signals]
    return " and ".join(dict.fromkeys(found))


def _is_wanted(signal: str, env: Mapping[str, str], problems: list[str]) -> bool:
    exporter = env.get(f"OTEL_{signal}_EXPORTER", "").strip().lower()
    is_named = bool(env.get(ENDPOINT) or env.get(f"OTEL_EXPORTER_OTLP_{signal}_ENDPOINT"))
    if exporter == "none" or (not exporter and not is_named):
        return False
    if exporter not in ("", "otlp"):
        problems.append(f"OTEL_{signal}_EXPORTER={exporter}: handrail sends by otlp only, so it sends none of these.")
        return False
    protocol = env.get(f"OTEL_EXPORTER_OTLP_{signal}_PROTOCOL") or env.get(PROTOCOL) or HTTP
    if protocol != HTTP:
        problems.append(
            f"OTEL_EXPORTER_OTLP_PROTOCOL={protocol}: handrail sends by {HTTP} only (usually port 4318), "
            f"so it sends no {signal.lower()}."
        )
        return False
    return True


def _is_on(value: str) -> bool:
    return value.strip().lower() in ("true", "1")
