"""Agents that work together: messages, and teams."""
