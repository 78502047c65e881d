"""What hooks know about their session, and what limits them."""

import os
from collections.abc import Mapping
from dataclasses import field
from pathlib import Path

from handrail.records import record


@record
class HookEnvironment:
    """
    What hooks know about the session, and what limits them.

    `project` is the project's folder (empty = the working folder), `folder` holds long texts and the session's
    variables. `urls` and `variables` limit HTTP hooks; None = no limit beside the hook's own.
    """

    env: Mapping[str, str]
    project: str = ""
    session_id: str = field(default_factory=lambda: os.urandom(16).hex())
    transcript: str = ""
    folder: Path | None = None
    urls: tuple[str, ...] | None = None
    variables: tuple[str, ...] | None = None

    @property
    def home(self) -> str:
        return self.env.get("HOME") or os.path.expanduser("~")  # noqa: PTH111  # a text is due

    @property
    def env_file(self) -> Path | None:
        """The file in which hooks of SessionStart leave `export` lines for later commands."""
        return None if self.folder is None else self.folder / "session-env.sh"
