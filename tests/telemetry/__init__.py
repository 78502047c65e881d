"""Telemetry, as a collector receives it."""
