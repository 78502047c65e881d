"""Grep: find text in files."""
