"""Facts: what is known about a call besides its input. Live calls, explain, test and simulate build them here."""

from collections.abc import Callable
from functools import partial

from handrail.records import record
from handrail.tools.access import EXCLUSIVE, Access, matches_nothing
from handrail.tools.flags import fits, subject_of, subject_paths, warnings_of
from handrail.tools.permission import NO_OPINION, Check, Opinion, Verdict
from handrail.tools.request import CallRequest
from handrail.tools.tool import WARNINGS, McpInfo


@record
class Evidence:
    """What hooks, the tool's own checks and the conditions of a command line say about a call."""

    hook: Opinion | None = None
    doubt: str = ""
    """Why the tool's validation was not sure."""
    check: Check = NO_OPINION
    unmet: tuple[str, ...] = ()
    """Conditions of the shell analysis that do not hold here."""


NOTHING_SAID = Evidence()


@record
class Facts:
    """What the tool of a call declares, and what hooks and checks said."""

    mcp: McpInfo | None = None
    access: Access = EXCLUSIVE
    """What the tool declares for this input; by default nothing is declared."""
    matches: Callable[[str], bool | None] = matches_nothing
    """Whether the content of a rule for this tool matches the call; None = the tool cannot tell."""
    subject: str = ""
    """What the call is about, in the words of the tool."""
    subject_paths: Callable[[], tuple[str, ...]] = tuple
    """What the call is about, if rules may be about it as a path."""
    read_only: bool = False
    warnings: tuple[str, ...] = ()
    """Warnings from the tool's flags, for people."""
    needs_person: bool = False
    hook: Opinion | None = None
    classifier: Opinion | None = None
    """The answer of a classifier that was asked beforehand; the built-in classifier runs as a layer."""
    doubt: str = ""
    check: Check = NO_OPINION
    unmet: tuple[str, ...] = ()

    @property
    def destructive(self) -> bool:
        """Whether the tool calls it destructive, or could not say that it is not."""
        return WARNINGS["is_destructive"] in self.warnings


def matches_unknown(_content: str) -> None:
    """For an input that says nothing: it cannot be told whether a rule matches."""


def _is_answered_by_hook(request: CallRequest, evidence: Evidence) -> bool:
    allows = evidence.hook is not None and evidence.hook.verdict is Verdict.ALLOW
    return allows and request.args is not None and request.tool.is_answered(request.args)


def facts_of(request: CallRequest, evidence: Evidence = NOTHING_SAID) -> Facts:
    """The facts about a call from its tool and the evidence; a flag that raises counts as the careful answer."""
    tool, args = request.tool, request.args
    unread = args is None  # an input without a field of the tool: there is nothing to ask the tool about
    return Facts(
        mcp=tool.mcp,
        access=request.access,
        matches=matches_unknown if unread else partial(fits, tool, args),
        subject=subject_of(tool, args) if tool.subject and not unread else "",
        subject_paths=tuple if unread else partial(subject_paths, tool, args),
        read_only=request.read_only,
        warnings=tuple(WARNINGS.values()) if unread else warnings_of(tool, args),
        needs_person=tool.requires_user_interaction and not _is_answered_by_hook(request, evidence),
        hook=evidence.hook,
        doubt=evidence.doubt,
        check=evidence.check,
        unmet=evidence.unmet,
    )
