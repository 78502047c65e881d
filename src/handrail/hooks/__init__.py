"""Commands, HTTP endpoints and callbacks that run before and after events of a session."""
