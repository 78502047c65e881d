"""Remembers which servers are of the old era, so that these are not asked in vain at every start."""

import hashlib
import json
import os
import time
from contextlib import suppress
from pathlib import Path

from handrail.files.private_folder import make_private_folder
from handrail.mcp.config import ServerConfig
from handrail.mcp.handshake import Era

VERSION = 1
KEPT_SECONDS = 7 * 86_400.0
"""After that a server is asked again: it may have been renewed."""
MAX_KEPT = 200


class EraMemory:
    """The eras of servers by their configuration; in a file, if there is one."""

    def __init__(self, file: Path | None = None) -> None:
        self._file = file
        self._known: dict[str, float] | None = None

    def find(self, config: ServerConfig) -> Era | None:
        """The era of this server, if it is known."""
        since = self._load().get(_key(config))
        return "legacy" if since is not None and time.time() - since < KEPT_SECONDS else None

    def remember(self, config: ServerConfig, era: Era) -> None:
        """Keep the era of this server. A file that cannot be written is no reason to fail."""
        known, key = self._load(), _key(config)
        if (era == "legacy") == (self.find(config) is not None):
            return
        known.pop(key, None)
        if era == "legacy":
            known[key] = time.time()
        self._known = dict(list(known.items())[-MAX_KEPT:])
        if self._file is not None:
            with suppress(OSError):
                self._write(self._file)

    def _load(self) -> dict[str, float]:
        if self._known is None:
            self._known = {}
            with suppress(OSError, ValueError, AttributeError):
                stored = json.loads(self._file.read_bytes()) if self._file else {}
                if stored.get("version") == VERSION:
                    self._known = {key: float(since) for key, since in stored["legacy"].items()}
        return self._known

    def _write(self, file: Path) -> None:
        make_private_folder(file.parent)
        new = file.with_name(f"{file.name}.{os.getpid()}")
        new.write_text(json.dumps({"version": VERSION, "legacy": self._known}))
        new.replace(file)


def _key(config: ServerConfig) -> str:
    what = (config.transport, config.command, *config.args, config.url)
    return hashlib.sha256("\0".join(what).encode("utf-8", "surrogatepass")).hexdigest()[:24]
