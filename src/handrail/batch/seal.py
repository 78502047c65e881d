"""
Marks the lines of results that this user's handrail wrote on this machine.

A folder of results may come from others, and an agent may have been allowed to write there. The key lies in the state
folder, which agents neither read nor write unasked; one that may do both can forge a seal.
"""

import hashlib
import hmac
import json
import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from handrail.config.files import own_bytes
from handrail.files.private_folder import make_private_folder
from handrail.records import record

FIELD = "seal"
SIZE = 32


@record
class Seal:
    """What lines are marked with; an empty key fits no line."""

    key: bytes

    def add(self, value: Mapping[str, Any]) -> dict[str, Any]:
        """The object with its mark."""
        return {**value, FIELD: self._mark(value)}

    def fits(self, value: Mapping[str, Any]) -> bool:
        """Whether an object carries the mark of its content."""
        content = {name: each for name, each in value.items() if name != FIELD}
        return bool(self.key) and hmac.compare_digest(str(value.get(FIELD)).encode(), self._mark(content).encode())

    def _mark(self, value: Mapping[str, Any]) -> str:
        return hmac.new(self.key, json.dumps(value, sort_keys=True).encode(), hashlib.sha256).hexdigest()


def read_seal(state: Path) -> Seal:
    """The seal of this user; without one yet, or with one that others could have written, no line is theirs."""
    try:
        key = own_bytes(_file(state), SIZE)
    except OSError:
        key = b""
    return Seal(key if len(key) == SIZE else b"")


def open_seal(state: Path) -> Seal:
    """The seal of this user, made if there is none; OSError if it cannot be."""
    if not (seal := read_seal(state)).key:
        draft = make_private_folder(state) / f".batch.{os.getpid()}.{os.urandom(4).hex()}"
        draft.touch(0o600, exist_ok=False)
        draft.write_bytes(os.urandom(SIZE))
        with suppress(FileExistsError):
            os.link(draft, _file(state))  # whole, and never over that of another process
        draft.unlink()
        seal = read_seal(state)
    if not seal.key:
        raise PermissionError(f"{_file(state)} is not a key that only you can write. Remove it.")
    return seal


def _file(state: Path) -> Path:
    return state / "batch.key"
