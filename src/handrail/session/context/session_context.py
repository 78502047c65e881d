"""What the model is told of its surroundings: facts about the folder, memory files, and the types of sub-agents."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Text
from handrail.conversation.context import AGENT_TYPES
from handrail.conversation.messages import Attachment
from handrail.hooks.texts import escape_frames
from handrail.lazy import lazy
from handrail.loop.memory import Memory, MemoryFile, MemoryProblem
from handrail.loop.prompt import AGENTS, context_attachment, git_attachment, memory_attachment
from handrail.session.context.environment import GitProbe, gather
from handrail.session.context.memory_files import Switches, places, read_memory, read_memory_near
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.extensions import skill_list
    from handrail.hooks.runner import Hooks
else:
    skill_list = lazy("handrail.extensions.skill_list")  # few people have so many agents

MAX_TYPES = 40_000
"""The most bytes of the list of types."""
MEMORY_TYPES = {"policy": "Managed", "user": "User", "project": "Project", "local": "Local"}


class SessionContext:
    """Gathers what stands before the first prompt, and memory files near what was read.

    Those of these `sources` count, without the files whose paths the globs `excludes` match. Each problem of a memory
    file is told once, to `on_warning`."""

    def __init__(
        self,
        cwd: Path,
        env: Mapping[str, str],
        sources: Iterable[str],
        hooks: "Hooks",
        *,
        excludes: Iterable[str] = (),
        asks_git: bool = True,
        on_warning: Callable[[str], None] = lambda _text: None,
    ) -> None:
        self._cwd = cwd
        self._hooks = hooks
        self._probe = GitProbe(cwd, env, asks=asks_git)
        found = places(cwd, env)
        self._places = found if "user" in sources else replace(found, user=())
        self._switches = Switches(excludes=tuple(excludes), project="project" in sources, local="local" in sources)
        self._memory = Memory()
        self._looked: tuple[Memory, set[str]] = self._memory, set()
        self._env, self._has_user = env, "user" in sources
        self._new: tuple[MemoryFile, ...] = ()
        self._on_warning = on_warning
        self._told: set[MemoryProblem] = set()
        self._types = ""
        """The types of sub-agents, as the conversation was told of them."""

    def move(self, cwd: Path) -> None:
        """The work goes on in another folder: its memory files hold; those that say something new are told."""
        self._cwd = cwd
        self._looked = self._memory, set()
        found = places(cwd, self._env)
        self._places = found if self._has_user else replace(found, user=())
        if not self._memory.files and not self._memory.seen:  # the conversation has not begun
            self._probe.close()
            self._probe = GitProbe(cwd, self._env, asks=False)
            return
        known = {file.text for file in self._memory.files}
        self._memory = read_memory(self._places, self._switches)
        self._new = tuple(file for file in self._memory.files if file.text not in known)
        self._tell_problems()

    def first_attachments(self, run: RunContext) -> Iterable[Attachment]:
        """The facts and memory files that a conversation begins with."""
        self._memory = read_memory(self._places, self._switches)
        self._announce(self._memory.files, "session_start", run)
        self._tell_problems()
        facts = gather(self._cwd, self._probe, model=run.options.model)
        yield context_attachment(facts, self._memory.files)
        self._types = _type_list(run)
        if self._types:
            yield Attachment(AGENTS, (Text(self._types),))

    def attachments(self, outcomes: Sequence[Outcome], run: RunContext) -> Iterable[Attachment]:
        """Memory near the files that were just read, what git has answered since, and other types of sub-agents."""
        shown = len(self._memory.files)
        for outcome in outcomes:
            for path in () if outcome.result.is_error else outcome.access.files:
                self._read_near(path)
        found, self._new = (*self._new, *self._memory.files[shown:]), ()
        self._announce(found, "nested_traversal", run)
        if near := memory_attachment(found):
            yield near
        if (git := self._probe.late_facts()) is not None:
            yield git_attachment(git)
        if not outcomes and run.history:
            yield from self._changed_types(run)

    def _read_near(self, file: str) -> None:
        """Add the memory near a file; the files of one folder bring nothing new, unless rules wait for some."""
        folder = file[: file.rfind("/") + 1]  # as it is spelled: this happens after every call
        memory, looked_at = self._looked
        if memory is self._memory and folder in looked_at and not memory.waiting:
            return
        self._memory = read_memory_near(self._cwd / file, self._places, self._memory, self._switches)
        self._looked = self._memory, {folder, *looked_at} if memory is self._memory else {folder}
        self._tell_problems()

    def _tell_problems(self) -> None:
        for problem in self._memory.problems:
            if problem not in self._told:
                self._told.add(problem)
                path = problem.path
                shown = path.relative_to(self._cwd) if path.is_relative_to(self._cwd) else path
                self._on_warning(f"the memory file {shown} {problem.text}")

    def _changed_types(self, run: RunContext) -> Iterable[Attachment]:
        before, now = self._types or _last_types(run.history), _type_list(run)
        self._types = now
        if before and now != before:
            yield Attachment(AGENTS, (Text(now or f"{AGENT_TYPES}are not there any more."),))

    def memory_files(self) -> list[dict[str, Any]]:
        """The memory files that the model was told."""
        return [
            {"path": str(file.path), "type": MEMORY_TYPES[file.scope], "tokens": len(file.text) // 4}
            for file in self._memory.files
        ]

    def _announce(self, files: Iterable[MemoryFile], reason: str, run: RunContext) -> None:
        if self._hooks.wants("InstructionsLoaded"):
            for file in files:
                about = {"file_path": str(file.path), "memory_type": MEMORY_TYPES[file.scope], "load_reason": reason}
                self._hooks.announce("InstructionsLoaded", about, run)

    def close(self) -> None:
        """End git, if it still runs."""
        self._probe.close()


def _type_list(run: RunContext) -> str:
    """The types of sub-agents, a line each: no description can pass for another line, or for words of the program."""
    types = run.options.agents()
    about = [escape_frames(" ".join(each.description.split())) for each in types]
    lines = [f"- {each.name}: {text}" for each, text in zip(types, about, strict=True)]
    if sum(map(len, lines)) > MAX_TYPES:
        lines = skill_list.fitting_lines([each.name for each in types], about, MAX_TYPES)
    return "\n".join((f"{AGENT_TYPES}(subagent_type of Agent):", *lines)) if lines else ""


def _last_types(history: Sequence[Any]) -> str:
    """What a conversation that is taken up again was told last."""
    notes = [each for each in history if isinstance(each, Attachment) and each.kind == AGENTS]
    block = notes[-1].content[0] if notes else None
    return block.text if isinstance(block, Text) else ""
