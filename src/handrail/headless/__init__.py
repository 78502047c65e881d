"""Runs without a terminal: events become text or JSON lines."""
