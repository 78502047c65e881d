"""Calls that are not made: what the policy, the hooks and the sandbox of a folder would do with them."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn, Self

from handrail.builtin.bash.permission import sandbox_check
from handrail.builtin.bash.shell import programs
from handrail.builtin.services import ToolServices
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import ToolUse
from handrail.dispatch.approval.approvers import needs_person
from handrail.dispatch.approval.decide import ask_own_checks
from handrail.dispatch.call_hooks import CallHooks
from handrail.errors import HandrailError
from handrail.hooks.runner import Hooks
from handrail.hooks.specs import Hook
from handrail.permissions.case import Case
from handrail.permissions.decide import LOOKUP, case_of
from handrail.permissions.facts import Evidence
from handrail.permissions.file_access import Lookup
from handrail.permissions.layers import decide, winner
from handrail.permissions.policy import ModeAvailability, Policy
from handrail.processes.sandbox_contract import Standing
from handrail.records import record
from handrail.session.hooks import open_hooks
from handrail.session.services import tool_services
from handrail.session.settings.load import broken_file_problem
from handrail.session.settings.session_settings import SessionSettings, open_settings
from handrail.session.skill_use import SkillLoader
from handrail.session.skills.notes import SessionSkills
from handrail.session.state_folder import run_folder_name, state_folder
from handrail.session.tools import builtin_loaders
from handrail.shell.analysis import analyse
from handrail.tools.flags import parse
from handrail.tools.permission import Allow, Decision, Opinion, Strength, Verdict
from handrail.tools.request import CallRequest

EVERY_MODE = ModeAvailability(bypass_available=True, auto_available=True)
"""Modes may be looked at that could not be entered here."""


@record
class PreviewedCall:
    """What would happen to a call: the decision, the hooks that would be asked, and where a command would run."""

    request: CallRequest
    """The call, with the input that hooks have made of it."""
    evidence: Evidence
    case: Case
    decision: Decision
    hooks: tuple[Hook, ...]
    standing: Standing | None
    """Where its command line would run; None if it has none, or no sandbox is in use."""
    lookup: Lookup

    @property
    def decider(self) -> Opinion:
        """The opinion that decided: the strongest, unless a hook answered the question."""
        decision, last = self.decision, self.decision.opinions[-1]
        return last if (last.verdict, last.reason) == (decision.verdict, decision.reason) else winner(decision)


class CallPreview:
    """
    The settings of a folder, asked about calls that are not made. No tool runs.

    With `run_hooks`, the hooks are asked for real; without, they are only named. With `trust`, the folder counts as
    trusted.
    """

    def __init__(
        self,
        cwd: Path | str,
        variables: Mapping[str, str],
        *,
        mode: str = "",
        settings: str = "",
        add_dirs: Iterable[str] = (),
        trust: bool = False,
        run_hooks: bool = False,
        on_warning: Callable[[str], None],
    ) -> None:
        given = SettingsFlags(settings=settings, folders=tuple(add_dirs), trust=trust)
        self._settings = open_settings(cwd, variables, state_folder(variables), given, on_warning)
        if mode and (broken := broken_file_problem(self._settings.loaded.settings, mode)):
            on_warning(str(broken))
            mode = "default"
        try:
            policy = self._settings.policy().with_availability(EVERY_MODE)
            self.policy: Policy = policy.with_mode(mode) if mode else policy
        except ValueError as error:
            raise HandrailError(str(error)) from error
        self._run_hooks = run_hooks
        loaded, places = self._settings.loaded, self._settings.places
        self._hooks = open_hooks(loaded, Path(places.cwd), session_id=run_folder_name())
        self._hooks.mode = lambda: self.policy.mode
        for problem in self._hooks.problems:
            on_warning(str(problem))
        self._calls = CallHooks(self._hooks)
        self._working_dirs = self.policy.working_dirs
        self._services = cache(self._open_services)
        self.loaders: Mapping[str, Callable[[], Any]] = builtin_loaders(loaded.env, self._services)
        """Name -> how to make the built-in tool, as a session of this folder would have it."""

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self._hooks.aclose()
        if self._services.cache_info().currsize and (sandbox := self._services().sandbox) is not None:
            sandbox.close()

    def _open_services(self) -> ToolServices:
        """The services of tools, with the working folders of the policy that is asked."""
        services = replace(tool_services(self._settings), working_dirs=lambda: self._working_dirs)
        return replace(services, skills=_skills_to_judge(self._settings))

    @property
    def ignores_folder(self) -> bool:
        """Whether settings of the folder are ignored because it is not trusted."""
        return bool(self._settings.loaded.settings.ignored)

    @property
    def files(self) -> tuple[str, ...]:
        """The settings files that count here, the strongest first."""
        return tuple(layer.document.file.shown for layer in self._settings.loaded.settings.layers)

    @property
    def has_broken_file(self) -> bool:
        """Whether the rules of a settings file are not known, because it cannot be read."""
        return self._settings.loaded.settings.doubtful

    async def look(
        self, request: CallRequest, policy: Policy, evidence: Evidence | None = None, lookup: Lookup = LOOKUP
    ) -> PreviewedCall:
        """What would happen to a call under a policy. Without evidence, the tool's own checks are asked."""
        self._working_dirs = policy.working_dirs
        hooks = tuple(await self._calls.matching("PreToolUse", request))
        opinion: Opinion | None = None
        if hooks and self._run_hooks:
            request, opinion = await self._ask_hooks(request)
        given = await ask_own_checks(request) if evidence is None else evidence
        if self._run_hooks:
            given = replace(given, hook=opinion)
        standing = await self._standing(request)
        if standing is not None and (check := sandbox_check(standing, request.access.runs or "")) is not None:
            given = replace(given, check=check)
        case = case_of(request, policy, given, lookup)
        decision = decide(case)
        if decision.verdict is Verdict.ASK:
            hooks = (*hooks, *await self._calls.matching("PermissionRequest", request))
            if self._run_hooks:
                decision = await self._ask_permission(request, decision)
        return PreviewedCall(request, given, case, decision, hooks, standing, lookup)

    async def _ask_hooks(self, request: CallRequest) -> tuple[CallRequest, Opinion | None]:
        """The call as its hooks leave it, and what they say of it."""
        answer = await self._calls.before(request)
        if answer.stop is not None:
            reason = f"a hook stops the run: {answer.stop}" if answer.stop else "a hook stops the run"
            return request, Opinion(Strength.DENY, Verdict.DENY, "hooks", reason)
        if answer.updated_input is None:
            return request, answer.opinion
        use = ToolUse(request.use.id, request.use.name, answer.updated_input)
        if (problem := parse(request.tool, use.input)[1]) is not None:
            reason = f"the input that a hook made of it does not fit: {problem}"
            return request, Opinion(Strength.DENY, Verdict.DENY, "input", reason)
        return CallRequest.hypothetical(use, request.tool, request.ctx.run), answer.opinion

    async def _ask_permission(self, request: CallRequest, decision: Decision) -> Decision:
        """The decision with the answer of PermissionRequest hooks, if they give one that counts."""
        answer = await self._calls.permission_request(request)
        if answer is None or (isinstance(answer, Allow) and needs_person(request, decision, answer)):
            return decision
        verdict = Verdict.ALLOW if isinstance(answer, Allow) else Verdict.DENY
        reason = "a hook agreed" if isinstance(answer, Allow) else answer.message or "a hook said no"
        answered = Opinion(Strength.PERSON, verdict, "hooks", reason)
        return replace(decision, verdict=verdict, reason=reason, opinions=(*decision.opinions, answered))

    async def _standing(self, request: CallRequest) -> Standing | None:
        access = request.access
        sandboxed = self._settings.loaded.sandbox.get("enabled", False) is not False
        if not sandboxed or access.runs is None or access.shell != "bash":
            return None
        sandbox = self._services().sandbox
        wants_out = request.use.input.get("dangerouslyDisableSandbox") is True
        return None if sandbox is None else await sandbox.standing(programs(analyse(access.runs)), wants_out=wants_out)


def _skills_to_judge(settings: SessionSettings) -> SessionSkills:
    """The skills of a folder, which are judged here and not loaded."""
    skills = SessionSkills(Path(settings.places.cwd), settings)
    skills.make_loader = lambda: SkillLoader(
        lambda: skills.skills, settings, Hooks(), _not_here, conversation=_not_here, session_id=""
    )
    return skills


def _not_here() -> NoReturn:
    raise HandrailError("There is no conversation to load a skill into.")
