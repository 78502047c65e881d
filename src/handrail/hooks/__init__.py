"""Commands, HTTP endpoints and callbacks that are asked before and after things happen."""
