"""Starts programs, ends everything they started, bounds their output, and confines them."""
