"""Worktrees as tools: working in a copy of the repository on a branch of its own, and coming back."""
