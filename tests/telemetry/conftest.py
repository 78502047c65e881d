"""Every test has a pipeline of its own, whose threads end with it."""

from collections.abc import Iterator
from typing import Any

import pytest

from handrail.telemetry import pipeline


@pytest.fixture(autouse=True)
def _own_pipeline(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    opened: list[pipeline.TelemetryPipeline] = []

    class ListedPipeline(pipeline.TelemetryPipeline):
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options)
            opened.append(self)

    pipeline.open_pipeline.cache_clear()
    monkeypatch.setattr(pipeline, "TelemetryPipeline", ListedPipeline)
    yield
    pipeline.open_pipeline.cache_clear()
    for each in opened:
        each.close()
