"""
A run as plain data, for pages, statistics, notebooks and other programs.

    record      of a run, a session file or messages
    RunRecord   what `record` returns; its parts are JSON values
"""

from handrail.view.library import record
from handrail.view.model import RunRecord

__all__ = ["RunRecord", "record"]
