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
from collections.abc import Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import field
from enum import Enum
from pathlib import Path
from typing import Literal

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
    shown: Mapping[str, str] = field(default_factory=dict)
    """Each item in one line, by its fingerprint; empty in records of older versions."""

    def __contains__(self, fingerprint: str) -> bool:
        return fingerprint in self.items or fingerprint in self.hooks


@record
class TrustChange:
    """One difference to what was trusted: `kind` is new, changed or gone; `fingerprint` is that of the item now."""

    kind: Literal["new", "changed", "gone"]
    fingerprint: str
    now: str = ""
    before: str = ""


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
        own, *above = records_for(folder, items)
        self.save(own)
        for more in above:
            self.extend(more)
        return own

    def save(self, trusted: TrustRecord) -> None:
        """Trust what a record says, in the place of what was trusted before."""
        with self._lock():
            self._write(trusted)

    def extend(self, more: TrustRecord) -> None:
        """Trust what a record says too, whatever else is in its folder."""
        with self._lock():  # what another process adds at the same time stays
            self._write(union(self.record_of(more.folder), more) or more)

    def add(self, folder: str, items: Iterable[TrustItem]) -> None:
        """Trust these items too, whatever else is in the folder."""
        self.extend(record_for(folder, items))

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
            "shown": dict(record.shown),
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
    shown = {**one.shown, **other.shown}
    return TrustRecord(one.folder, one.items | other.items, one.hooks | other.hooks, names, other.at, shown)


def changes_since(known: TrustRecord, now: TrustRecord) -> tuple[TrustChange, ...]:
    """What is new, changed or gone since a folder was trusted."""
    new = {text: shown for text, shown in now.shown.items() if text not in known}
    gone = {text: shown for text, shown in known.shown.items() if text not in now}
    changed = {}
    for name in {_name(shown) for shown in new.values()}:
        after, before = ([text for text in each if _name(each[text]) == name] for each in (new, gone))
        if len(after) == len(before) == 1:  # of several in a list it is unknown which became which
            changed[after[0]] = before[0]
    return (
        *(
            TrustChange("changed", text, shown, gone[changed[text]])
            if text in changed
            else TrustChange("new", text, shown)
            for text, shown in new.items()
        ),
        *(TrustChange("gone", "", before=shown) for text, shown in gone.items() if text not in changed.values()),
    )


def _name(shown: str) -> str:
    return shown.partition(": ")[0]


def records_for(folder: str, items: Iterable[TrustItem]) -> tuple[TrustRecord, ...]:
    """What trusting a folder with these items means: its own record, then those of folders above that bring some."""
    given, real = tuple(items), os.path.realpath(folder)
    above = dict.fromkeys(item.folder for item in given if item.folder not in ("", real))
    own = record_for(folder, [item for item in given if item.folder not in above])
    return (own, *(record_for(other, [item for item in given if item.folder == other]) for other in above))


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
        {text: item.shown for item, text in prints},
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
        shown = {str(text): str(each) for text, each in content.get("shown", {}).items()}
        names = tuple(map(str, content["names"]))
        return TrustRecord(str(content["folder"]), items, hooks, names, str(content["at"]), shown)
    except (ValueError, KeyError, TypeError, AttributeError):
        return None
