"""WebSearch: search the web."""
