"""
The one HTTP server: who may speak to it, and where it may listen.

`guard` decides which requests pass (Host, Origin, token), `listen` binds the socket and runs an application behind
the guard. What is served stands in the packages above: the web page, MCP over HTTP, runs started from elsewhere.
"""
