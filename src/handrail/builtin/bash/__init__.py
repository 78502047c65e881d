"""Bash: run a command line and leave no process behind."""
