"""OpenTelemetry: spans and metrics of runs, loaded only when the OTEL variables ask for them."""
