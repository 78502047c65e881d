"""The one HTTP client: proxies, private CAs, limits of time and size, server-sent events."""
