"""The built-in tools: one file or folder each, with its prompt beside it."""
