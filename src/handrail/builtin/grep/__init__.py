"""Grep: find text in files."""

from handrail.builtin.grep.tool import Grep

__all__ = ["Grep"]
