"""
Records which folders the user trusts, and with which items.

A record names the real path of one folder and holds a fingerprint of every item that was there when the user trusted
it. The folder stays trusted as long as no item is new. Items may be removed, except hooks, which may be guards. A
folder inside a trusted one is another folder: what the trusted one brings counts there, its own settings do not. Each
record is one file that only its owner can read.
"""

import json
import os
import time
from collections.abc import Iterable
from contextlib import AbstractContextManager
from enum import Enum
from pathlib import Path

from handrail.config.files import lock_folder, own_bytes, replace_file
from handrail.config.needs_trust import TrustItem, fingerprint
from handrail.config.places import trust_file
from handrail.errors import SettingsError
from handrail.files.private_folder import make_private_folder
from handrail.records import record

VERSION = 1
MAX_BYTES = 100_000_000


class Trust(Enum):
    """What the record says about the current state of the folder."""

    TRUSTED = "trusted"
    UNTRUSTED = "untrusted"
    CHANGED = "changed"
    """It was trusted, and has new items since then."""


@record
class TrustRecord:
    """One trusted folder."""

    folder: str
    items: frozenset[str]
    hooks: frozenset[str]
    names: tuple[str, ...] = ()
    at: str = ""


class TrustStore:
    """The records of one user."""

    def __init__(self, state: Path) -> None:
        self._state = state
        self._folder = state / "trust"

    def file_of(self, folder: str) -> Path:
        """Where the record of a folder is kept."""
        return trust_file(self._state, os.path.realpath(folder))

    def record_of(self, folder: str) -> TrustRecord | None:
        """The record of a folder, if there is one that only this user can have written."""
        real = os.path.realpath(folder)
        found = _read(self.file_of(real))
        return found if found and found.folder == real else None

    def judge(self, folder: str, items: Iterable[TrustItem]) -> Trust:
        """Whether the items of the folder are those that were trusted."""
        known = self.record_of(folder)
        if known is None:
            return Trust.UNTRUSTED
        return Trust.TRUSTED if covers(known, record_for(folder, items)) else Trust.CHANGED

    def trust(self, folder: str, items: Iterable[TrustItem]) -> TrustRecord:
        """Trust a folder with these items in it and no others. Items of folders above it are added to their records."""
        given, real = tuple(items), os.path.realpath(folder)
        above = dict.fromkeys(item.folder for item in given if item.folder not in ("", real))
        trusted = record_for(folder, [item for item in given if item.folder not in above])
        with self._lock():
            self._write(trusted)
        for other in above:
            self.add(other, [item for item in given if item.folder == other])
        return trusted

    def add(self, folder: str, items: Iterable[TrustItem]) -> None:
        """Trust these items too, whatever else is in the folder."""
        more = record_for(folder, items)
        with self._lock():  # what another process adds at the same time stays
            self._write(union(self.record_of(folder), more) or more)

    def revoke(self, folder: str) -> bool:
        """Forget a folder; whether it was known."""
        try:
            self.file_of(folder).unlink()
        except FileNotFoundError:
            return False
        return True

    def all(self) -> tuple[TrustRecord, ...]:
        """Every record, by folder."""
        files = sorted(self._folder.glob("*.json")) if self._folder.is_dir() else []
        return tuple(sorted(filter(None, map(_read, files)), key=lambda known: known.folder))

    def _lock(self) -> AbstractContextManager[None]:
        return lock_folder(make_private_folder(self._folder))

    def _write(self, record: TrustRecord) -> None:
        content = {
            "version": VERSION,
            "folder": record.folder,
            "at": record.at,
            "items": sorted(record.items),
            "hooks": sorted(record.hooks),
            "names": record.names,
        }
        replace_file(self.file_of(record.folder), json.dumps(content, indent=1).encode() + b"\n", mode=0o600)


def covers(known: TrustRecord, now: TrustRecord) -> bool:
    """Whether nothing is new, and no hook is gone."""
    return now.items <= known.items and now.hooks == known.hooks


def union(one: TrustRecord | None, other: TrustRecord | None) -> TrustRecord | None:
    """The record of all that either of two records covers."""
    if one is None or other is None:
        return one or other
    names = tuple(dict.fromkeys((*one.names, *other.names)))
    return TrustRecord(one.folder, one.items | other.items, one.hooks | other.hooks, names, other.at)


def record_for(folder: str, items: Iterable[TrustItem]) -> TrustRecord:
    """The record of a folder with these items in it."""
    real = os.path.realpath(folder)
    prints = [(item, fingerprint(item, real)) for item in items]
    return TrustRecord(
        real,
        frozenset(text for item, text in prints if not item.is_hook),
        frozenset(text for item, text in prints if item.is_hook),
        tuple(item.shown for item, _ in prints),
        time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
    )


def _read(file: Path) -> TrustRecord | None:
    """The record, if only this user can have written it. Raises SettingsError if a newer handrail wrote it."""
    try:
        data = own_bytes(file, MAX_BYTES)
    except OSError:
        return None
    try:
        content = json.loads(data)
        if content["version"] > VERSION:
            raise SettingsError(f"{file} was written by a newer handrail. Use that one, or remove the file.")
        items, hooks = frozenset(map(str, content["items"])), frozenset(map(str, content["hooks"]))
        return TrustRecord(str(content["folder"]), items, hooks, tuple(map(str, content["names"])), str(content["at"]))
    except (ValueError, KeyError, TypeError):
        return None
