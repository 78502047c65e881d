"""MCP servers of a session: which there are, their connections, pins and questions."""
