"""OAuth 2.1 for MCP servers over HTTP: discovery, registration, signing in, and the tokens that come of it."""
