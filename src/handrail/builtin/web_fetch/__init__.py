"""WebFetch: read a page of the web."""
