"""MCP servers: connections to them, and their tools as Tools."""
