"""
Access: what one call touches, declared once by its tool from the parsed input.

Scheduling, rules, hook conditions, read-before-write, undo, audit, `explain` and questions all read this declaration,
so a tool says it in one place. Paths stay as they were spelled: relative paths start at the working folder of the run,
`~` is the home folder.
"""

import os
from collections.abc import Iterable, Mapping
from operator import attrgetter
from typing import Any, Literal, TypeAlias

from handrail.named_tuples import NamedTuple

Paths: TypeAlias = "str | os.PathLike[str] | Iterable[str | os.PathLike[str]]"
Width: TypeAlias = Literal["named", "shared", "exclusive"]
"""What may run beside a call: calls that do not conflict with its paths, calls that only read, or nothing."""


class Access(NamedTuple):
    """What a call reads, writes, removes, walks, runs and reaches; `declared` is False when its tool did not say."""

    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()
    removes: tuple[str, ...] = ()
    walks: tuple[str, ...] = ()
    """Folders whose files it may read, at any depth."""
    reaches: tuple[str, ...] = ()
    """Addresses (URLs) that it talks to."""
    runs: str | None = None
    """The command line that it runs."""
    shell: Literal["bash", "powershell"] = "bash"
    """The language of that command line."""
    filtered: bool = False
    """The tool skips files that the rules deny, so a folder does not stand for every file in it."""
    own: bool = False
    """It touches only handrail's own records; `reads` and `writes` name records, not files."""
    declared: bool = True
    width: Width = "named"
    failed: bool = False
    """The tool declares what it touches, but could not for this input: no rule that names the tool vouches for it."""
    consults: tuple[str, ...] = ()
    """Services outside that get its input. The person chose them, so no rule about addresses is about them."""
    group: str = ""
    """Calls of one group do not conflict with each other, because what they do inside is scheduled by itself."""
    may_touch: tuple[str, ...] = ()
    """Files that its input names, where a foreign program decides what becomes of them. They allow nothing."""
    may_reach: tuple[str, ...] = ()
    """Addresses of that kind: only rules that deny or ask look at them."""

    @classmethod
    def of(
        cls,
        *,
        reads: Paths = (),
        writes: Paths = (),
        removes: Paths = (),
        walks: Paths = (),
        runs: str | None = None,
        reaches: Paths = (),
        shell: Literal["bash", "powershell"] = "bash",
        filtered: bool = False,
        width: Width | None = None,
    ) -> "Access":
        """
        The whole of what a call touches; `Access.of()` touches no files, runs nothing and reaches nothing.

        A call that runs a command line or reaches an address runs alone, unless `width` says otherwise.
        """
        return cls(
            () if reads == () else _texts(reads),
            () if writes == () else _texts(writes),
            () if removes == () else _texts(removes),
            () if walks == () else _texts(walks),
            () if reaches == () else _texts(reaches),
            runs,
            shell,
            filtered,
            width=width or ("named" if runs is None and not reaches else "exclusive"),
        )

    @classmethod
    def bookkeeping(cls, reads: Paths = (), writes: Paths = (), *, width: Width = "named", group: str = "") -> "Access":
        """Only handrail's own records: nothing outside the conversation changes. `reads` and `writes` name records."""
        return cls(_texts(reads), _texts(writes), own=True, width=width, group=group)

    @classmethod
    def unknown(cls, *, width: Width = "exclusive") -> "Access":
        """Nothing is declared, so the call may touch anything; `width` says what may run beside it."""
        return cls(declared=False, width=width)

    def as_json(self) -> dict[str, Any]:
        """The declaration without empty fields; empty when the tool declares nothing."""
        if not self.declared:
            known = {name: value for name in ("may_touch", "may_reach", "failed") if (value := getattr(self, name))}
            return {"declared": False, "width": self.width, **known} if known else {}
        shown: dict[str, Any] = {name: value for name, value in zip(SHOWN, _shown(self), strict=True) if value}
        return shown if self.runs is None else {**shown, "runs": self.runs, "shell": self.shell}

    @classmethod
    def from_json(cls, shown: Mapping[str, Any]) -> "Access":
        """The declaration that `as_json` gave. Raises TypeError if the value is no declaration."""
        lists = {name: tuple(map(str, value)) for name, value in shown.items() if isinstance(value, list | tuple)}
        return cls(**{**shown, **lists}) if shown else EXCLUSIVE

    @property
    def changes_files(self) -> bool:
        """Whether it writes or removes files."""
        return bool(self.writes or self.removes) and not self.own

    @property
    def files(self) -> tuple[str, ...]:
        """The single files that it names, as spelled."""
        return () if self.own else (*self.reads, *self.writes, *self.removes)


def matches_nothing(_content: str) -> bool:
    """The matcher of a call that no rule with content matches."""
    return False


def _texts(paths: Paths) -> tuple[str, ...]:
    if isinstance(paths, str):
        return (paths,)
    if not isinstance(paths, list | tuple) and isinstance(paths, os.PathLike):
        return (os.fspath(paths),)
    return tuple([os.fspath(path) for path in paths])


SHOWN = (
    *("declared", "reads", "writes", "removes", "walks", "reaches", "consults", "filtered", "own", "width", "group"),
    *("may_touch", "may_reach"),
)
_shown = attrgetter(*SHOWN)
SHARED = Access.unknown(width="shared")
EXCLUSIVE = Access.unknown()
FAILED = Access(declared=False, width="exclusive", failed=True)
