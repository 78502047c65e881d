"""
The list of skills that the conversations of a session see, sent again when it changes.

Files are looked at when a prompt begins. What changed since is told behind what was said, so that nothing of the cached
prefix moves.
"""

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment
from handrail.extensions.places import SKILL_FAMILIES, ConfigFolder, config_folders, repository_of
from handrail.hooks.texts import reminder
from handrail.lazy import lazy
from handrail.loop.memory import matches
from handrail.loop.prompt import SKILLS
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.builtin.task_list import task_text as task_texts
    from handrail.extensions import commands as command_files
    from handrail.extensions import skill_list
    from handrail.extensions import skills as skill_files
    from handrail.extensions.commands import CommandFile
    from handrail.extensions.skills import SkillHead, SkillsByName
    from handrail.session.skill_use import SkillLoader
    from handrail.session.skills.plugins import SessionPlugins
    from handrail.tools.skills import LoadedSkill
else:
    task_texts = lazy("handrail.builtin.task_list.task_text")
    command_files = lazy("handrail.extensions.commands")
    skill_files = lazy("handrail.extensions.skills")  # many people have none
    skill_list = lazy("handrail.extensions.skill_list")

TASK_LIST, PLAN = "task-list", "plan"
MAX_PLAN = 40_000


def _nothing() -> None:
    """Nothing else is looked at."""


class SessionSkills:
    """The commands and skills that hold in the folder of a session, as they were when a prompt last began."""

    def __init__(self, cwd: Path, settings: SessionSettings) -> None:
        self._cwd = cwd
        self._settings = settings
        self._heads: Mapping[str, SkillHead] | None = None
        self._problems: tuple[str, ...] = ()
        self._has_begun = False
        self.plugins: SessionPlugins | None = None
        self.on_prompt: Callable[[], None] = _nothing
        """Called when a prompt begins: others look at their files again too."""
        self._nested: dict[Path, list[ConfigFolder]] = {}
        """Folders below the working one in which a file was used, with the folders for skills in each."""
        self._noted: set[str] = set()
        self.make_loader: Callable[[], SkillLoader]
        """Makes what loads skills, once the session is open."""

    @cached_property
    def loader(self) -> "SkillLoader":
        """What loads the skills of this session."""
        return self.make_loader()

    def refuse(self, name: str, call: str) -> str:
        """Why the call with this id cannot have this skill; empty if it can."""
        return self.loader.refuse(name, call)

    def question(self, name: str, call: str) -> str:
        """What a person should know before the skill is loaded; empty = there is nothing to ask."""
        return self.loader.question(name, call)

    async def load(self, name: str, words: str, ctx: ToolContext) -> "LoadedSkill":
        """Load a skill into the conversation of a call."""
        return await self.loader.load(name, words, ctx)

    def end_turn(self, path: tuple[str, ...] = ()) -> None:
        """Take back what skills were lent for the turn that is over, of the main agent or of the one at this path."""
        if "loader" in self.__dict__:  # it was needed
            self.loader.end_turn(path)

    def begin_prompt(self) -> None:
        """Look at the files again when they are next needed; what was found at the start serves the first prompt."""
        if self._has_begun:
            self._heads = None
            self.on_prompt()
        self._has_begun = True

    def set_plugins(self, plugins: "SessionPlugins") -> None:
        """Other plugins count from now on."""
        self.plugins, self._heads = plugins, None

    @property
    def skills(self) -> "SkillsByName":
        """The skills by name, without their texts."""
        return skill_files.SkillsByName(self.heads)

    @property
    def heads(self) -> "Mapping[str, SkillHead]":
        """What lists need of the skills, by name."""
        return self._look() if self._heads is None else self._heads

    def _look(self) -> "Mapping[str, SkillHead]":
        heads: Mapping[str, SkillHead] = {}
        self._problems = ()
        folders = [*skill_folders(self._cwd, self._settings), *self.plugin_folders()]
        if folders:
            cache = skill_files.head_cache(self._settings.places.state)
            found = skill_files.find_skills(folders, cache, again=not self._has_begun)
            heads, self._problems = found.by_name.heads, found.problems
        for folder, places in self._nested.items():
            if places:
                heads = self._with_nested(heads, folder, places)
        self._heads = heads
        return heads

    def _with_nested(
        self, known: "Mapping[str, SkillHead]", folder: Path, places: list[ConfigFolder]
    ) -> "Mapping[str, SkillHead]":
        """The skills with those of a folder below; one whose name is taken is called by its folder too."""
        found = skill_files.find_skills(places, skill_files.head_cache(self._settings.places.state))
        self._problems += found.problems
        more: dict[str, SkillHead] = {}
        for name, head in found.by_name.heads.items():
            full = f"{folder.relative_to(self._cwd)}:{name}" if name in known else name
            if full in known:  # a folder that is called as a plugin is
                self._problems += (f"{head.shown}: the skill {full} is another one. Rename it to use both.",)
                continue
            more[full] = head.with_name(full)
        return {**known, **more}

    def note_used(self, name: str) -> None:
        """A file of this folder was used: skills in it and around it, up to the working one, are found from now on."""
        if name in self._noted:
            return
        self._noted.add(name)
        path = Path(name)
        if "project" not in self._settings.flags.instruction_sources or not path.is_relative_to(self._cwd):
            return
        for folder in (path, *path.parents):
            if folder == self._cwd or folder in self._nested:
                break
            places = [
                ConfigFolder(place, "project", str(place.relative_to(self._cwd)), repository_of(self._cwd) or self._cwd)
                for place in (folder / family for family in SKILL_FAMILIES)
                if (place / "skills").is_dir()
            ]
            self._nested[folder] = places
            if places:
                self._heads = None

    @property
    def problems(self) -> tuple[str, ...]:
        """What a person should know about the skills."""
        if self._heads is None:
            self._look()
        return self._problems

    def all(self) -> "dict[str, CommandFile]":
        """Commands and skills by name; a skill goes before a command."""
        settings = self._settings
        folders = config_folders(self._cwd, settings.loaded.env, settings.flags.instruction_sources)
        return {**command_files.find_commands((*folders, *self.plugin_folders())).by_name, **self.skills}

    def plugin_folders(self) -> tuple[ConfigFolder, ...]:
        """The folders that plugins bring."""
        return self.plugins.folders() if self.plugins else ()

    def has_any(self) -> bool:
        """Whether there is a skill that the model may load."""
        return any(head.is_for_model for head in self.heads.values())


def skill_folders(cwd: Path, settings: SessionSettings) -> list[ConfigFolder]:
    """The folders that have skills: the project's, the nearest first, the user's and the policy's."""
    env, sources = settings.loaded.env, settings.flags.instruction_sources
    policy = [ConfigFolder(folder, "policy", str(folder)) for folder in settings.places.policy]
    found = (*config_folders(cwd, env, sources, SKILL_FAMILIES), *policy)
    return [folder for folder in found if (folder.path / "skills").is_dir()]


class SkillNotes:
    """What one conversation knows of the skills."""

    def __init__(self, skills: SessionSkills, has_tool: Callable[[], bool]) -> None:
        self._skills = skills
        self._has_tool = has_tool
        self._listed = ""
        self._touched: list[Path] = []

    def attachments(self, outcomes: Sequence[Outcome], run: RunContext) -> Iterable[Attachment]:
        """The list of skills, if the conversation does not have it yet or it has changed."""
        if not outcomes and not self._listed:
            self._listed = last_list(run.history)
        files = [file for each in outcomes if not each.result.is_error for file in each.access.files]
        for folder in dict.fromkeys([file[: file.rfind("/") + 1] for file in files]):
            self._skills.note_used(os.path.join(run.cwd, folder))  # noqa: PTH118  # after every turn
        if not self._skills.heads or not self._has_tool():
            return
        heads = self._skills.heads.values()
        if any(head.has_paths for head in heads):
            done = (each for each in outcomes if not each.result.is_error)
            self._touched += (run.cwd / path for each in done for path in each.access.files)
        offered = [each for each in heads if not each.has_paths or self._is_offered(each.skill, run.cwd)]
        text = skill_list.skill_list(offered)
        if text and text != self._listed:
            self._listed = text
            yield Attachment(SKILLS, (Text(reminder(text)),))

    def _is_offered(self, skill: "CommandFile", cwd: Path) -> bool:
        """Whether a skill is about a file that was used."""
        base = Path(skill.folder).parents[2] if skill.source == "project" else cwd
        return any(
            path.is_relative_to(base) and any(matches(glob, path.relative_to(base)) for glob in skill.paths)
            for path in self._touched
        )


def last_list(history: Sequence[Any]) -> str:
    """The list that a conversation was told last, for one that is taken up again."""
    for message in reversed(history):
        if isinstance(message, Attachment) and message.kind == SKILLS:
            text = message.content[0].text if isinstance(message.content[0], Text) else ""
            return text.removeprefix("<system-reminder>\n").removesuffix("\n</system-reminder>")
    return ""


def lost_attachments(services: Callable[[], ToolServices], run: RunContext) -> Iterable[Attachment]:
    """What a summary may have lost and the session still knows: the task list, as its tool shows it, and the plan."""
    if (services().state / "todo").is_dir() and (text := task_texts.task_text(services(), run.agent.id)):
        yield Attachment(TASK_LIST, (Text(reminder(f"The task list as it is now:\n{text}")),))
    if run.agent.is_main and (plan := _plan_text(services().plan_file)):
        yield Attachment(PLAN, (Text(reminder(f"The plan in {services().plan_file}:\n{plan}")),))


def _plan_text(file: Path) -> str:
    try:
        return file.read_text("utf-8", "replace")[:MAX_PLAN] if file.is_file() else ""
    except OSError:
        return ""
