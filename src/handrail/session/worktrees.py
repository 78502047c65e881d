"""
Moves a session into a worktree and back: the working folder, rules, memory files and what was read go along.

Hooks of WorktreeCreate make the folder where there are such hooks, also without git; those of WorktreeRemove remove it.
A worktree with work that exists nowhere else is only removed by a call that a person agreed to.
"""

import asyncio
import hashlib
import json
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from handrail.agents import pending_worktrees
from handrail.agents.worktrees import (
    Worktree,
    add_worktree,
    cannot_isolate,
    find_worktree,
    remove_worktree,
    unsaved_work,
)
from handrail.builtin.services import ToolServices
from handrail.errors import ToolError
from handrail.files.memory import FileMemory
from handrail.files.private_folder import make_private_folder
from handrail.hooks.runner import Hooks
from handrail.session.context.session_context import SessionContext
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.state_folder import state_folder
from handrail.tools.context import RunContext
from handrail.tools.worktrees import WorktreeMove

MAX_FOLLOWED = 2_000
MAX_BYTES = 50_000_000
KEPT = "worktree.json"
"""Where a session notes the worktree that it is in, for when it is resumed."""
BY_HOOK = "hook"
"""The branch of a worktree that a hook made: git need not know it."""


class SessionWorktrees:
    """The worktree that a session is in, if it is in one."""

    def __init__(
        self,
        settings: SessionSettings,
        services: Callable[[], ToolServices],
        hooks: Hooks,
        context: SessionContext | None,
    ) -> None:
        self._settings = settings
        self._services = services
        self._hooks = hooks
        self._context = context
        self._worktree: Worktree | None = None
        self._is_own = False
        """Whether this session made it."""
        self._origin = ""
        self._take_back: Callable[[], None] = lambda: None

    @property
    def current(self) -> str:
        """The folder of the worktree that the session is in; empty if it is in none."""
        return self._worktree.path if self._worktree else ""

    async def enter(self, name: str, path: str, run: RunContext) -> WorktreeMove:
        """Make a worktree and go there, or go to the one at `path`; ToolError if that cannot be had."""
        services = self._services()
        if path:
            found = await asyncio.to_thread(find_worktree, run.cwd / path, run.cwd, services.env)
            if not any(f"{found.path}/".startswith(f"{folder}/") for folder in self._settings.folders()):
                raise ToolError(f"{found.path} is outside the working folders. Ask the user to add it: --add-dir.")
            worktree = found
        else:
            name = name or f"work-{os.urandom(3).hex()}"
            worktree = await make_worktree(name, run, services, self._hooks)
        await self._move(worktree, str(run.cwd), run.files, is_own=not path)
        pending_worktrees.forget_pending(worktree.path)
        return WorktreeMove(worktree.cwd, _arrival(worktree), "" if worktree.branch == BY_HOOK else worktree.branch)

    async def resume(self, run: RunContext) -> Path | None:
        """Go back to the worktree that an earlier run of the session was in; None if there is none any more."""
        file = self._services().state / KEPT
        try:
            kept = json.loads(file.read_text("utf-8"))
            worktree, origin = Worktree.from_json(json.dumps(kept["worktree"])), str(kept["origin"])
        except (OSError, ValueError, LookupError, TypeError):
            return None
        if not is_folder(worktree.cwd) or origin not in self._settings.folders():
            file.unlink(missing_ok=True)
            return None
        await self._move(worktree, origin, run.files, is_own=bool(kept.get("own")))
        return Path(worktree.cwd)

    def take_over(self, before: "SessionWorktrees") -> Path | None:
        """Go on in the worktree of the session before, which keeps nothing of it but where it was; None = in none."""
        worktree = self._worktree = before._worktree
        if worktree is None:
            return None
        self._origin, self._is_own, self._take_back = before._origin, before._is_own, before._take_back
        kept = {"worktree": json.loads(worktree.as_json()), "origin": self._origin}
        self._note({**kept, "own": self._is_own})
        before._note({**kept, "own": False})
        before._worktree = None
        if self._context is not None:
            self._context.move(Path(worktree.cwd))
        return Path(worktree.cwd)

    async def _move(self, worktree: Worktree, origin: str, files: FileMemory, *, is_own: bool) -> None:
        real = real_path(worktree.path)
        top = origin if worktree.branch == BY_HOOK else worktree.repository
        self._take_back = self._settings.in_force().lend(lambda policy: policy.moved_to(real).with_worktree(top, real))
        self._worktree, self._origin, self._is_own = worktree, origin, is_own
        await asyncio.to_thread(follow_reads, files, Path(top), Path(worktree.path))
        if self._context is not None:
            self._context.move(Path(worktree.cwd))
        self._note({"worktree": json.loads(worktree.as_json()), "origin": origin, "own": is_own})

    def _note(self, kept: object) -> None:
        file = self._services().state / KEPT
        with suppress(OSError):
            if kept is None:
                file.unlink(missing_ok=True)
                return
            make_private_folder(file.parent)
            draft = file.with_suffix(".draft")  # half a note would let a resumed session work in the wrong folder
            fd = os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
            with os.fdopen(fd, "w", encoding="utf-8") as stream:
                json.dump(kept, stream)
            draft.replace(file)

    async def unsaved_work(self) -> str:
        """What would be lost if the worktree were removed; empty = nothing."""
        if self._worktree is None:
            return ""
        if self._worktree.branch == BY_HOOK:
            return "a hook made it, and what exists only there is not known"
        try:
            return await asyncio.to_thread(unsaved_work, self._worktree, self._services().env)
        except ToolError as error:
            return f"what exists only there is not known ({error})"

    async def leave(self, run: RunContext, *, remove: bool) -> WorktreeMove:
        """Go back to where the session came from; `remove` the worktree with all that is in it."""
        worktree = self._worktree
        assert worktree is not None
        await asyncio.to_thread(follow_reads, run.files, Path(worktree.path), Path(worktree.repository))
        if remove:
            await end_worktree_of(worktree, run, self._services(), self._hooks)
        self._take_back()
        self._worktree = None
        if self._context is not None:
            self._context.move(Path(self._origin))
        self._note(None)
        done = "It was removed, and its branch too." if remove else f"It is kept: {_place(worktree)}."
        return WorktreeMove(self._origin, f"You are back in {self._origin}. {done}")

    async def aclose(self, run: RunContext) -> str:
        """The session ends: a worktree of its own in which nothing is unsaved goes; else where it is."""
        worktree = self._worktree
        if worktree is None or not self._is_own:
            return ""
        if await self.unsaved_work():
            return f"The worktree is kept: {_place(worktree)}."
        try:
            await end_worktree_of(worktree, run, self._services(), self._hooks)
        except ToolError as error:
            return f"The worktree {worktree.path} is kept: {error}"
        self._note(None)
        self._worktree = None
        return ""


async def make_worktree(name: str, run: RunContext, services: ToolServices, hooks: Hooks) -> Worktree:
    """A new worktree: by a WorktreeCreate hook where there is one, else by git; ToolError if it cannot be had."""
    if not hooks.wants("WorktreeCreate"):
        return await asyncio.to_thread(_add_worktree, name, run, services)
    answer = await hooks.fire("WorktreeCreate", {"name": name}, run)
    if answer.block is not None or answer.stop is not None:
        raise cannot_isolate(f"a WorktreeCreate hook refused: {answer.block or answer.stop}")
    said = [line for text in answer.context for line in text.strip().splitlines()]
    path = said[-1].strip() if said else ""
    if not path.startswith("/") or not is_folder(path):
        raise cannot_isolate(f"the WorktreeCreate hook gave {path!r}, which is not the whole path of a folder")
    real = real_path(path)
    return Worktree(str(run.cwd), real, BY_HOOK, "", real)


def _add_worktree(name: str, run: RunContext, services: ToolServices) -> Worktree:
    """Have git make a worktree, which stays pending until `forget_pending` says that it is written down."""
    project, planned = Path(services.working_dirs()[0]), list[Worktree]()

    def note(worktree: Worktree) -> None:
        planned.append(worktree)
        pending_worktrees.note_pending(state_folder(services.env), worktree)

    try:
        return add_worktree(
            run.cwd, project, name, services.state, services.env, is_hidden=services.is_hidden, before=note
        )
    except BaseException:
        for each in planned:
            pending_worktrees.forget_pending(each.path)
        raise


async def end_worktree_of(worktree: Worktree, run: RunContext, services: ToolServices, hooks: Hooks) -> None:
    """Remove a worktree by what made it; ToolError if that fails."""
    if worktree.branch == BY_HOOK:
        if not hooks.wants("WorktreeRemove"):
            raise ToolError("a hook made it, and there is no WorktreeRemove hook. Remove it by hand.")
        await hooks.fire("WorktreeRemove", {"worktree_path": worktree.path}, run)
        return
    await asyncio.to_thread(remove_worktree, worktree, services.env)


def is_folder(path: str) -> bool:
    """Whether a folder is there."""
    return os.path.isdir(path)  # noqa: PTH112  # no error for an odd name


def real_path(path: str) -> str:
    """A path with all links followed."""
    return os.path.realpath(path)


def follow_reads(files: FileMemory, before: Path, after: Path) -> None:
    """What was read below one folder counts as read below another, where the files are the same."""
    room = MAX_BYTES
    for known in files.all_reads()[-MAX_FOLLOWED:]:
        if not known.path.is_relative_to(before) or known.path.is_relative_to(after) or known.size > room:
            continue
        path = after / known.path.relative_to(before)
        with suppress(OSError):
            if path.is_symlink() or not path.is_file() or path.stat().st_size != known.size:
                continue
            stat = path.stat()
            room -= known.size
            if hashlib.sha256(path.read_bytes()).hexdigest() == known.digest:
                files.note(path, stat, known.digest)


def _arrival(worktree: Worktree) -> str:
    if worktree.branch == BY_HOOK:
        return f"You work in the worktree {worktree.path} now. ExitWorktree brings you back."
    text = f"You work in the worktree {worktree.path} now, on the branch {worktree.branch} from {worktree.base[:12]}."
    patch = f" Changes that are not committed stayed behind; to have them here: git apply {worktree.patch}"
    return text + (patch if worktree.patch else "") + " ExitWorktree brings you back."


def _place(worktree: Worktree) -> str:
    return worktree.path if worktree.branch == BY_HOOK else f"{worktree.path}, on the branch {worktree.branch}"
