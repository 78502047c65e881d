"""Runs without a terminal: prints events as text or JSON lines, and serves the control protocol."""
