"""What the OTEL variables ask for, what is loaded for it, and what is said when it cannot be had."""

import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from opentelemetry.trace import SpanContext, TraceFlags

from handrail.conversation.redact import Redactor
from handrail.telemetry import pipeline
from handrail.telemetry.setup import open_telemetry
from handrail.telemetry.trace_parent import read_trace_parent, write_trace_parent
from handrail.telemetry.wanted import WantedTelemetry, collector_addresses, wanted_telemetry

URL = "http://127.0.0.1:4318"
BOTH = WantedTelemetry(traces=True, metrics=True)

PROGRAM = """
import asyncio, sys
from pathlib import Path
from handrail import Agent
from handrail.testing import ScriptedModel, say, use

async def main():
    async with Agent(ScriptedModel([[use("r", "Read", file_path="x")], [say("Done.")]]), cwd=Path.cwd()) as agent:
        await agent.ask("Do it.")

asyncio.run(main())
parts = [name.split(".") for name in sys.modules]
print([part for part in parts if part[0] == "opentelemetry" or part[:2] == ["handrail", "telemetry"]])
"""


@pytest.mark.parametrize(
    ("env", "expected"),
    [
        pytest.param({}, WantedTelemetry(), id="nothing is wanted without variables"),
        pytest.param({"OTEL_SERVICE_NAME": "x"}, WantedTelemetry(), id="a name alone asks for nothing"),
        pytest.param({"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, BOTH, id="an endpoint asks for both"),
        pytest.param({"OTEL_TRACES_EXPORTER": "otlp"}, WantedTelemetry(traces=True), id="an exporter asks for its own"),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_METRICS_EXPORTER": "none"},
            WantedTelemetry(traces=True),
            id="none switches one off",
        ),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_SDK_DISABLED": "true"},
            WantedTelemetry(),
            id="disabled switches all off",
        ),
        pytest.param(
            {"OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": URL}, WantedTelemetry(metrics=True), id="an endpoint of one signal"
        ),
        pytest.param(
            {
                "OTEL_EXPORTER_OTLP_ENDPOINT": URL,
                "OTEL_INSTRUMENTATION_GENAI_CAPTURE_MESSAGE_CONTENT": "true",
            },
            WantedTelemetry(traces=True, metrics=True, content=True),
            id="contents are asked for by a variable of their own",
        ),
    ],
)
def test_the_variables_say_what_is_sent(env: Mapping[str, str], expected: WantedTelemetry) -> None:
    assert wanted_telemetry(env) == expected


def test_what_cannot_be_done_is_said_and_not_done() -> None:
    by_grpc = wanted_telemetry({"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_EXPORTER_OTLP_PROTOCOL": "grpc"})
    to_console = wanted_telemetry({"OTEL_TRACES_EXPORTER": "console"})

    assert (by_grpc.traces, by_grpc.metrics, to_console.traces) == (False, False, False)
    assert "sends by http/protobuf only (usually port 4318), so it sends no traces" in by_grpc.problems[0]
    assert "OTEL_TRACES_EXPORTER=console: handrail sends by otlp only" in to_console.problems[0]


def test_nothing_of_it_is_loaded_unless_it_is_configured(tmp_path: Path) -> None:
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=env, cwd=tmp_path, capture_output=True, text=True, check=True, timeout=60
    )

    assert done.stdout == "[]\n"


def test_without_the_packages_a_session_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", URL)
    for name in ("handrail.telemetry.pipeline", "opentelemetry.sdk.trace"):
        monkeypatch.delitem(sys.modules, name, raising=False)
    monkeypatch.setitem(sys.modules, "opentelemetry.sdk.trace", None)
    warnings: list[str] = []

    found = open_telemetry(
        {"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, Redactor(), warnings.append, version="1", session_id="s", provider=""
    )

    assert found is None
    assert "pip install 'handrail[otel]'" in warnings[0]


def test_variables_that_only_a_program_made_up_send_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OTEL_EXPORTER_OTLP_ENDPOINT", raising=False)
    made_up = {"OTEL_EXPORTER_OTLP_ENDPOINT": URL}

    assert open_telemetry(made_up, Redactor(), print, version="1", session_id="s", provider="") is None


@pytest.mark.parametrize(
    ("env", "wanted", "addresses"),
    [
        ({"OTEL_TRACES_EXPORTER": "otlp"}, WantedTelemetry(traces=True), "http://localhost:4318"),
        ({"OTEL_EXPORTER_OTLP_ENDPOINT": URL}, WantedTelemetry(traces=True, metrics=True), URL),
        (
            {"OTEL_EXPORTER_OTLP_ENDPOINT": URL, "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT": "http://m:1/v1"},
            WantedTelemetry(traces=True, metrics=True),
            f"{URL} and http://m:1/v1",
        ),
    ],
)
def test_the_collector_is_named_as_the_variables_name_it(
    env: dict[str, str], wanted: WantedTelemetry, addresses: str
) -> None:
    assert collector_addresses(env, wanted) == addresses


@pytest.mark.anyio
async def test_a_collector_that_refuses_is_reported_when_the_session_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:1")
    monkeypatch.setenv("OTEL_METRICS_EXPORTER", "none")
    monkeypatch.setattr(pipeline, "FLUSH_SECONDS", 0.2)
    warnings: list[str] = []
    env = {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:1", "OTEL_METRICS_EXPORTER": "none"}
    found = open_telemetry(env, Redactor(), warnings.append, version="1", session_id="s", provider="")
    assert found is not None
    opened = pipeline.open_pipeline("1", "", WantedTelemetry(traces=True))
    root = opened.root_context("x", None)
    opened.emit("x", root, None, (1, 2), {})

    await found.aclose()

    assert len(warnings) == 1
    assert "did not reach the collector at http://127.0.0.1:1. Check that it runs there" in warnings[0]


IDS = st.tuples(st.integers(1, 2**128 - 1), st.integers(1, 2**64 - 1), st.sampled_from((0, 1)))


@given(IDS)
def test_a_context_that_is_written_is_read_as_the_same(ids: tuple[int, int, int]) -> None:
    trace, span, flags = ids
    text = write_trace_parent(SpanContext(trace, span, is_remote=False, trace_flags=TraceFlags(flags)))
    found = read_trace_parent(text)

    assert found is not None
    assert (found.trace_id, found.span_id, int(found.trace_flags)) == ids


@given(st.one_of(st.text(), st.from_regex(r"[0-9a-f]{2}-[0-9a-f]{30,34}-[0-9a-f]{14,18}-[0-9a-f]{1,3}(-x)?")))
def test_a_text_that_is_no_context_counts_as_none(text: str) -> None:
    found = read_trace_parent(text)

    assert found is None or found.is_valid


@pytest.mark.parametrize(
    "text",
    [
        "",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
        "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-more",
        "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
    ],
)
def test_a_context_of_a_wrong_form_counts_as_none(text: str) -> None:
    assert read_trace_parent(text) is None
