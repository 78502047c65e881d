"""Pages that were fetched, on disk for their owner only. A page is asked for again after 15 minutes."""

import json
import os
import time
from collections.abc import Callable
from contextlib import suppress
from hashlib import sha256
from pathlib import Path
from typing import Any

from handrail.files.private_folder import make_private_folder
from handrail.records import record

FORMAT = 1
KEPT_SECONDS = 15 * 60


@record
class CachedPage:
    """A page in the cache: where its text came from, and the file that holds it."""

    url: str
    title: str
    kind: str
    status: int
    size: int
    cut: bool
    file: Path


class PageCache:
    """The pages of a session. Nothing is written before there is one."""

    def __init__(self, folder: Path, now: Callable[[], float] = time.time) -> None:
        self._folder = folder
        self._now = now

    def find(self, asked: str) -> tuple[CachedPage, str] | None:
        """The page that was fetched for this URL, and its text; None = it has to be fetched."""
        try:
            kept: dict[str, Any] = json.loads(self._path(asked, ".page").read_bytes())
            if kept.get("format") != FORMAT or not 0 <= self._now() - kept["at"] < KEPT_SECONDS:
                return None
            file = self._folder / kept["file"]
            page = CachedPage(kept["url"], kept["title"], kept["kind"], kept["status"], kept["size"], kept["cut"], file)
            return page, file.read_text("utf-8")
        except (OSError, ValueError, KeyError):
            return None

    def keep(self, asked: str, page: CachedPage, text: str) -> CachedPage:
        """Keep the text of a page; it is found again until its time is over."""
        file = self.save(asked, text.encode("utf-8", "replace"), page.file.suffix)
        kept = {
            "format": FORMAT, "at": self._now(), "url": page.url, "title": page.title, "kind": page.kind,
            "status": page.status, "size": page.size, "cut": page.cut, "file": file.name,
        }  # fmt: skip
        self._write(self._path(asked, ".page"), json.dumps(kept).encode())
        return CachedPage(page.url, page.title, page.kind, page.status, page.size, page.cut, file)

    def save(self, asked: str, data: bytes, suffix: str) -> Path:
        """A file with these bytes, which the model may read."""
        path = self._path(asked, suffix)
        self._write(path, data)
        return path

    def _path(self, asked: str, suffix: str) -> Path:
        return self._folder / f"{sha256(asked.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}{suffix}"

    def _write(self, path: Path, data: bytes) -> None:
        make_private_folder(self._folder)
        draft = path.with_name(f"{path.name}.{os.getpid()}-{os.urandom(4).hex()}")
        try:
            with open(draft, "xb", opener=_owner_only) as file:
                file.write(data)
            draft.replace(path)
        except BaseException:
            with suppress(OSError):
                draft.unlink()
            raise


def _owner_only(path: str, flags: int) -> int:
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)
