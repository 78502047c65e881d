"""MCP servers: how they are reached, and their tools as tools of ours."""
