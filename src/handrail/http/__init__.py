"""The one HTTP client: proxies, private CAs, limits of time and size, redirects by consent, server-sent events."""
