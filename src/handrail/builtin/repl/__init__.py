"""REPL: Python code in a process that keeps its state from call to call."""
