"""The one HTTP client: proxies, private CAs, time limits, size bounds, redirects by leave, server-sent events."""
