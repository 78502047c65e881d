"""
Loads a skill for the model or for a person: its commands run under the rules, and its own rules hold for the turn.

Nothing of a project's skill runs, allows or hooks anything before its folder is trusted.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Literal

from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.conversation.messages import Attachment, UserMessage
from handrail.extensions.commands import CommandFile
from handrail.extensions.definition_files import UnreadFile
from handrail.extensions.places import repository_of
from handrail.extensions.skill_list import skill_text
from handrail.extensions.skills import read_skill
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import HookSource
from handrail.loop.complete_prompt import CompletedPrompt, PromptRefusal
from handrail.loop.prompt import SKILL
from handrail.session.command_turn import (
    CommandTurn,
    complete_command,
    new_call,
    open_turn,
    run_calls,
    turn_rules,
    turn_variables,
    with_turn_rules,
)
from handrail.session.conversation import Conversation
from handrail.session.settings.session_settings import SessionSettings
from handrail.tools.abort import AbortSignal
from handrail.tools.context import AgentIdentity, RunContext, ToolContext
from handrail.tools.delegation import AgentTask
from handrail.tools.pool import Pool
from handrail.tools.skills import LoadedSkill
from handrail.tools.stub import fetch
from handrail.tools.wording import did_you_mean

USUAL_AGENT = "general-purpose"
PLACEHOLDER = UserMessage((Text(""),))


class SkillLoader:
    """Loads the skills of a session, and takes back at the end of a turn what they were lent."""

    def __init__(
        self,
        skills: Callable[[], Mapping[str, CommandFile]],
        settings: SessionSettings,
        hooks: Hooks,
        services: Callable[[], ToolServices],
        *,
        conversation: Callable[[], Conversation],
        session_id: str,
    ) -> None:
        self._skills = skills
        self._settings = settings
        self._hooks = hooks
        self._services = services
        self._conversation = conversation
        self._session_id = session_id
        self._take_back: dict[tuple[str, ...], list[Callable[[], None]]] = {}
        """By the path of the agent that loaded a skill, what ends that its rules hold."""
        self._by_person: dict[str, CommandFile] = {}
        """What people have started, by the id of the call."""

    def end_turn(self, path: tuple[str, ...] = ()) -> None:
        """The turn of the agent at this path is over: take back the rules of the skills that it loaded."""
        for each in self._take_back.pop(path, ()):
            each()

    # The tool

    def refuse(self, name: str, call: str) -> str:
        """Why the call with this id cannot have this skill; empty if it can."""
        if call in self._by_person:
            return ""
        skills = self._skills()
        skill = skills.get(name.removeprefix("/"))
        if skill is None:
            names = [each.name for each in skills.values() if each.is_for_model]
            hint = did_you_mean(name, names)
            return f"There is no skill {name!r}.{hint} Known: {', '.join(names[:50])}."
        if not skill.is_for_model:
            return f"The skill {name!r} is for the user to start. Tell them to type /{name}."
        return ""

    def question(self, name: str, call: str) -> str:
        """What a person should know before the skill is loaded; empty = there is nothing to ask."""
        skill = self._skills().get(name.removeprefix("/"))
        if skill is None or call in self._by_person:  # one that is not there is refused before anyone is asked
            return ""
        fresh = self.read(skill)
        skill = skill if isinstance(fresh, UnreadFile) else fresh
        wants = {"allows": skill.allowed, "forbids": skill.disallowed, "adds hooks for": tuple(skill.hooks)}
        parts = [f"{verb} {', '.join(values)}" for verb, values in wants.items() if values]
        return f"the skill {skill.name} {' and '.join(parts)} ({skill.shown})" if parts else ""

    async def load(self, name: str, words: str, ctx: ToolContext) -> LoadedSkill:
        """Load a skill into the conversation of a call, or let a sub-agent do it."""
        fresh = self._by_person.pop(ctx.use.id, None) or self.read(self._skills()[name.removeprefix("/")])
        if isinstance(fresh, UnreadFile):
            return LoadedSkill(str(fresh), is_error=True)
        turn = self.open_turn(fresh, words)
        completed = await self.complete(turn, PLACEHOLDER, ctx.abort, ctx.run)
        if isinstance(completed, PromptRefusal):
            return LoadedSkill(completed.text, is_error=True)
        text = text_of(completed)
        if fresh.context == "fork":
            return await self._delegate(fresh, text, ctx)
        note = skill_attachment(fresh, text)
        warnings = "".join(f" {warning}" for warning in completed.warnings)
        if note in ctx.run.history:
            return LoadedSkill(f"The skill {fresh.name} is loaded already: its text stands above.{warnings}")
        return LoadedSkill(f"Launching skill: {fresh.name}.{warnings}", (note, *completed.notes))

    async def _delegate(self, skill: CommandFile, text: str, ctx: ToolContext) -> LoadedSkill:
        delegate, kind = self._services().delegate, skill.agent or USUAL_AGENT
        if delegate is None or kind not in delegate.agent_types():
            return LoadedSkill(f"{skill.shown}: there is no sub-agent {kind!r} to do it.", is_error=True)
        report = await delegate.work(
            AgentTask(kind, text, skill.name, skill.model, skill.effort, background=False), ctx
        )
        if report.problem and not report.text:
            return LoadedSkill(
                f"The sub-agent of the skill {skill.name} did not finish: {report.problem}", is_error=True
            )
        return LoadedSkill(report.text)

    # What commands of people need too

    def read(self, skill: CommandFile) -> CommandFile | UnreadFile:
        """A skill with its text, as its file is now."""
        cwd = Path(self._settings.places.cwd)
        return read_skill(skill, (repository_of(cwd) or cwd) if skill.source == "project" else None)

    def open_turn(self, skill: CommandFile, words: str) -> CommandTurn:
        """A use of a skill."""
        effort, places = self._conversation().config.options.effort, self._settings.places
        return open_turn(skill, words, self._settings, turn_variables(skill, places, self._session_id, effort))

    async def complete(
        self, turn: CommandTurn, message: UserMessage, signal: AbortSignal, run: RunContext | None = None
    ) -> CompletedPrompt | PromptRefusal:
        """
        The text of a command or skill after its commands ran, as the message.

        Its rules hold until `end_turn`, its hooks for the session; if a sub-agent loads it, for that agent and those
        below it.
        """
        agent = AgentIdentity() if run is None else run.agent
        skill, settings, conversation = turn.command, self._settings, self._conversation()
        wanted = turn_rules(turn, settings, conversation.tools.names())
        if wanted.unusable_limits:  # a limit would be lost
            return PromptRefusal(f"/{skill.name} was not started. {skill.shown}: {'; '.join(wanted.unusable_limits)}.")
        if wanted.rules:
            take_back = settings.in_force().lend(with_turn_rules(wanted.rules), agent.path)
            self._take_back.setdefault(agent.path, []).append(take_back)
        completed = await complete_command(turn, message, conversation, settings, signal, run=run)
        if isinstance(completed, PromptRefusal):
            return completed
        notes = [f"{skill.shown}: allowed-tools: {each}. It allows nothing." for each in wanted.unusable_grants]
        if skill.hooks and turn.is_trusted and (note := self._add_hooks(skill, agent)):
            notes.append(note)
        return replace(completed, warnings=(*completed.warnings, *notes))

    def _add_hooks(self, skill: CommandFile, agent: AgentIdentity) -> str:
        """Add a skill's hooks; returns why they are ignored, if they are."""
        settings = self._settings.loaded.settings
        if settings.get("disableAllHooks") or settings.get_managed("allowManagedHooksOnly"):
            return f"{skill.shown}: its hooks are ignored, because the settings turn hooks off."
        family: Literal[".claude", ".handrail"] = ".claude" if "/.claude/" in skill.file else ".handrail"
        owner = "" if agent.is_main else agent.id
        source = HookSource(f"skill:{skill.name}", family, skill.shown, skill.folder, agent=owner)
        self._hooks.add(source, _filled_hooks(skill))
        return ""

    async def fork(self, skill: CommandFile, words: str, signal: AbortSignal) -> PromptRefusal:
        """Let a sub-agent do what a person started; its answer is that of the run."""
        tool = fetch("handrail.builtin.skill").Skill(replace(self._services(), skills=self))
        use = new_call(tool.name, {"skill": skill.name, "args": words})
        self._by_person[use.id] = skill
        (outcome,) = await run_calls([use], self._conversation(), signal, pool=Pool((tool,), ()))
        return PromptRefusal(outcome.result.text)


def skill_attachment(skill: CommandFile, text: str) -> Attachment:
    """A skill's text in the conversation; a summary keeps it."""
    return Attachment(f"{SKILL}{skill.name}", (Text(skill_text(skill, text)),))


def text_of(completed: CompletedPrompt) -> str:
    """What stands in the place of the words that were typed."""
    first = completed.message.content[0]
    return first.text if isinstance(first, Text) else ""


def _filled_hooks(skill: CommandFile) -> Mapping[str, object]:
    """The hooks of a skill, with the folder of its file filled in."""

    def fill(value: object) -> object:
        match value:
            case str():
                for maker in ("CLAUDE", "HANDRAIL"):
                    value = value.replace(f"${{{maker}_SKILL_DIR}}", skill.folder)
                return value
            case list():
                return [fill(each) for each in value]
            case dict():
                return {name: fill(each) for name, each in value.items()}
            case _:
                return value

    return {name: fill(value) for name, value in skill.hooks.items()}
