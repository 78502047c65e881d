"""Bash: run a command line, and leave nothing of it behind."""
