"""A question about a call, and the Protocols of those that answer it."""

from collections.abc import Mapping, Sequence
from typing import Protocol, TypeAlias

from handrail.conversation.blocks import Json, ToolUse
from handrail.permissions.case import Case
from handrail.permissions.risk import Risk, risk
from handrail.permissions.suggest import Suggestion, suggest
from handrail.permissions.update import rule_update
from handrail.records import record
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.cards import Card, FormField
from handrail.tools.context import AgentIdentity
from handrail.tools.flags import ask_tool, describe, display_name
from handrail.tools.permission import Allow, Decision, Deny, Opinion, Update
from handrail.tools.request import CallRequest
from handrail.tools.tool import PromptView

ApprovalAnswer: TypeAlias = Allow | Deny


@record
class Proposal:
    """A change that "always allow" would make: what it is, and where it would be written."""

    text: str
    update: Update
    where: str


@record
class Question:
    """A question about one call: what it would do, why it needs an answer, how risky it is."""

    id: str
    use: ToolUse
    summary: str
    reason: str
    risk: Risk
    name: str = ""
    """The tool's name for people."""
    description: str = ""
    """What the call would do, in a line for people."""
    proposals: tuple[Proposal, ...] = ()
    blocked_path: str = ""
    agent: AgentIdentity = AgentIdentity()
    mode: str = "default"
    cwd: str = ""
    opinions: tuple[Opinion, ...] = ()
    access: Access = EXCLUSIVE
    """What the tool declares that the call accesses."""
    read_only: bool = False
    form: tuple[FormField, ...] = ()
    """The questions to answer in place of a plain yes; see `filled_in`."""
    document: Card | None = None
    """What the person reads first."""
    diff: str = ""
    """What the call would change, if its tool can draw that."""
    next_mode: str = ""
    """The mode that a yes to a plan leads to."""
    note: str = ""
    """What automatic checks have said since."""

    @property
    def tool(self) -> str:
        """The name of the tool."""
        return self.use.name

    @property
    def input(self) -> Json:
        """The input of the call."""
        return self.use.input

    @property
    def suggestions(self) -> tuple[Update, ...]:
        """The updates that would allow this call and similar ones from now on."""
        return tuple(proposal.update for proposal in self.proposals)

    def filled_in(self, answers: Mapping[str, str | Sequence[str]]) -> Allow:
        """The yes with the person's answers to the questions of the form."""
        return Allow({**self.input, "answers": dict(answers)})

    def always(self) -> Allow:
        """The answer "always allow"."""
        return Allow(updated_permissions=self.suggestions)

    def plain_no(self) -> Deny:
        """A no without words: it ends the turn of the main agent; a sub-agent goes on without the call."""
        return Deny(interrupt=not self.agent.path)

    def allow_for(self, destination: str) -> Allow:
        """The answer that allows it from now on for the `agent` that asks, or for the `session`."""
        return Allow(updated_permissions=tuple({**each, "destination": destination} for each in self.suggestions))


PERSON = "person"
"""The name under which what people answer is recorded."""


class Handler(Protocol):
    """Answers questions about calls. Cancelling `ask` takes the question back: another one has answered it."""

    @property
    def who(self) -> str:
        """The name under which its answers are recorded."""
        ...

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        """The answer; None when there is no one to ask."""
        ...

    def update(self, question: Question) -> None:
        """A question that is being asked has changed."""
        ...


class PermissionHooks(Protocol):
    """Hooks that may answer in place of the user, or before."""

    async def permission_request(self, request: CallRequest, suggestions: Sequence[Update]) -> ApprovalAnswer | None:
        """The hooks' answer; None when they leave it open."""
        ...

    def about_to_ask(self, request: CallRequest, reason: str) -> None:
        """Notify hooks that the handler is asked now, without waiting for them."""
        ...


class SettingsWriter(Protocol):
    """Writes permission updates to settings files."""

    def holds(self, update: Update) -> bool:
        """Whether the rules of an update are still in its file, in force or not."""
        ...

    def where(self, destination: str) -> str:
        """The file of a destination, as shown to people."""
        ...

    def refuses(self, update: Update) -> str:
        """Why an update is forbidden, even for this session; empty if it is not."""
        ...

    def persist(self, update: Update) -> None:
        """Write an update to its file, in a thread, and keep the rest; HandrailError or OSError if that fails."""
        ...


FILES = {
    "session": "this session",
    "localSettings": ".handrail/settings.local.json",
    "projectSettings": ".handrail/settings.json",
    "userSettings": "~/.handrail/settings.json",
}


def make_question(
    number: int, request: CallRequest, case: Case, decision: Decision, persist: SettingsWriter | None = None
) -> Question:
    """Build the question about a case."""
    blocked = next((file.place.absolute for file in case.files if file.doubt and file.place), "")
    document = request.tool.document(request.args)
    return Question(
        id=f"{request.use.id}#{number}",
        use=case.use,
        summary=request.summary,
        reason=decision.reason,
        risk=risk(case),
        name=display_name(request.tool, request.args),
        description=describe(request.tool, request.args, _view(request, case)),
        proposals=tuple(proposal(each, persist) for each in suggest(case)),
        blocked_path=blocked,
        form=request.tool.form(request.args),
        document=document,
        diff=_diff(request, case),
        next_mode=case.policy.leaving_plan().mode if document is not None and case.policy.mode == "plan" else "",
        agent=request.ctx.agent,
        mode=case.policy.mode,
        cwd=case.policy.cwd,
        opinions=decision.opinions,
        access=case.access,
        read_only=case.read_only,
    )


def _diff(request: CallRequest, case: Case) -> str:
    """The change as the tool knows it from the file, or else draws it from the input alone."""
    tool = request.tool
    if preview := ask_tool(tool.name, "change_preview", lambda: tool.change_preview(request.args, request.ctx), ""):
        return preview
    card = ask_tool(tool.name, "use_card", lambda: tool.use_card(case.use.input), Card(tool.name))
    return card.body if card.body_kind == "diff" else ""


def _view(request: CallRequest, case: Case) -> PromptView:
    options = request.ctx.options
    return PromptView(options.interactive, frozenset(options.tools()), options.agents(), lambda: case.policy)


def proposal(suggestion: Suggestion, persist: SettingsWriter | None) -> Proposal:
    destination = suggestion.destination
    if suggestion.mode:
        update: Update = {"destination": destination, "type": "setMode", "mode": suggestion.mode}
    else:
        update = rule_update([suggestion.rule], destination)
    where = persist.where(suggestion.destination) if persist else FILES[suggestion.destination]
    text = suggestion.rule or f"mode {suggestion.mode}"
    return Proposal(text, update, where)


def read_answer(value: object) -> ApprovalAnswer | str:
    """Parse an answer of a callback or another program, or say what is wrong with it."""
    if isinstance(value, Allow | Deny):
        return value
    if not isinstance(value, Mapping):
        return f"it returned {value!r}, not Allow or Deny"
    match value.get("behavior"):
        case "allow":
            changed, updates = value.get("updatedInput"), value.get("updatedPermissions") or ()
            if not (changed is None or isinstance(changed, Mapping)):
                return f"its updatedInput is {changed!r}, not an object"
            if not isinstance(updates, list | tuple) or not all(isinstance(each, Mapping) for each in updates):
                return f"its updatedPermissions are {updates!r}, not a list of objects"
            return Allow(changed, tuple(updates))
        case "deny":
            return Deny(str(value.get("message") or ""), interrupt=value.get("interrupt") is True)
        case other:
            return f"its behavior is {other!r}, not allow or deny"
