"""Read: files of several formats, as a model can take them in."""

from handrail.builtin.read.tool import Read

__all__ = ["Read"]
