"""
Opinions and decisions: whether a call may run, and why.

Layers give opinions, the fold picks the strongest, a Decision keeps them all. The order of `Strength` is the policy.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import Enum, IntEnum
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from handrail.conversation.blocks import Json, ResultBlock
from handrail.records import record

if TYPE_CHECKING:
    from handrail.files.paths import Place


class Verdict(Enum):
    """What happens to a call."""

    ALLOW = "allow"
    ASK = "ask"
    DENY = "deny"

    __hash__ = object.__hash__  # fast: every record of a decision looks verdicts up


class Strength(IntEnum):
    """How much an opinion weighs. The highest decides, whatever the lower ones say."""

    UNANSWERED = 0
    PERSON = 1
    CLASSIFIER = 2
    MODE = 3
    TOOL_ASK = 4
    ALLOW = 5
    PROTECTED_PATH = 6
    ASK = 7
    CRITICAL_PATH = 8
    DENY = 9


@record
class Opinion:
    """What one layer thinks of a call, and why. `source` says where the reason is written (file and line)."""

    strength: Strength
    verdict: Verdict
    layer: str
    reason: str
    source: str = ""


@record
class Decision:
    """The answer for one call, with all opinions and the version of the policy it was based on."""

    verdict: Verdict
    reason: str
    opinions: tuple[Opinion, ...] = ()
    version: int = 0
    updated_input: Json | None = None
    feedback: tuple[ResultBlock, ...] = ()
    interrupt: bool = False
    """The person who refused also wants the turn to stop."""
    places: "tuple[Place, ...]" = ()
    """Where the paths of the call led when it was decided. A tool opens these and does not resolve again."""
    left_out: tuple[tuple[str, str], ...] = ()
    """The files that the call has to leave out: each with the name by which it does, and its path."""
    remedy: "tuple[Update, ...]" = ()
    """The permission updates that would have allowed a call that was refused; empty = none is known."""


Update: TypeAlias = Mapping[str, Any]
"""A change of the policy, for example `{"type": "addRules", "behavior": "allow", "rules": [...]}`."""


def rules_and_mode(updates: Iterable[Update]) -> tuple[list[str], str]:
    """The rules that these updates add, each once, and the mode that they set ("" = none)."""
    rules: dict[str, None] = {}
    mode = ""
    for update in updates:
        mode = str(update.get("mode") or mode)
        for rule in update.get("rules") or ():
            content = rule.get("ruleContent")
            rules[rule["toolName"] if content is None else f"{rule['toolName']}({content})"] = None
    return [*rules], mode


@record
class Allow:
    """A yes to a question, optionally with another input and lasting changes of the policy."""

    updated_input: Json | None = None
    updated_permissions: tuple[Update, ...] = ()
    by: str = ""
    """The name of the person who said it, where several can."""


@record
class Deny:
    """A no to a question. The model is told the message and the feedback; `interrupt` also stops the turn."""

    message: str = ""
    interrupt: bool = False
    feedback: tuple[ResultBlock, ...] = ()
    by: str = ""
    """The name of the person who said it, where several can."""


@record
class Check:
    """A tool's own opinion on one call: a verdict with its reason, and optionally a changed input."""

    verdict: Verdict | None = None
    reason: str = ""
    updated_input: Json | None = None
    mode: str = ""
    """The mode that a person may choose together with a yes."""
    parts: tuple[int, ...] = ()
    """The commands of a line that it is about: each of them needs a rule, although it would only read."""
    despite_rules: bool = False
    """No allow rule about what the call touches answers the question; one that names the tool does."""


NO_OPINION = Check()


@record
class Refuse:
    """The input is refused by `validate`; the model gets the message."""

    message: str


@record
class Ask:
    """`validate` leaves the decision to a person."""

    message: str


def fold(opinions: tuple[Opinion, ...], version: int) -> Decision:
    """The strongest opinion decides; among equals the most careful. Without any, a person is asked."""
    if not opinions:
        return Decision(Verdict.ASK, "it may change something, so a person has to agree", (), version)
    decisive = strongest(opinions)
    return Decision(decisive.verdict, decisive.reason, opinions, version)


def strongest(opinions: Sequence[Opinion]) -> Opinion:
    """The opinion that decides: the strongest, among equals the most careful, among those the first."""
    if len(opinions) == 1:
        return opinions[0]
    care = (Verdict.ALLOW, Verdict.ASK, Verdict.DENY).index
    return max(opinions, key=lambda opinion: (opinion.strength, care(opinion.verdict)))


RulesBySource: TypeAlias = Mapping[str, tuple[str, ...]]
"""Rules as written, by source: policy, cli, local, project, user, session."""


class PermissionSnapshot(Protocol):
    """What a tool may know of the policy in force. A snapshot never changes; each change makes a new version."""

    @property
    def version(self) -> int: ...

    @property
    def mode(self) -> str: ...

    @property
    def pre_plan_mode(self) -> str:
        """The mode that leaving plan mode restores; empty outside of plan mode."""
        ...

    @property
    def working_dirs(self) -> tuple[str, ...]:
        """Real paths of the working folders, the project first."""
        ...

    @property
    def allow_rules(self) -> RulesBySource: ...

    @property
    def ask_rules(self) -> RulesBySource: ...

    @property
    def deny_rules(self) -> RulesBySource: ...

    @property
    def bypass_available(self) -> bool:
        """Whether the mode bypassPermissions could be entered."""
        ...

    @property
    def auto_available(self) -> bool:
        """Whether the mode auto could be entered."""
        ...


@record
class NoRules:
    """The empty snapshot."""

    version: int = 0
    mode: str = "default"
    pre_plan_mode: str = ""
    working_dirs: tuple[str, ...] = ()
    allow_rules: RulesBySource = MappingProxyType({})
    ask_rules: RulesBySource = MappingProxyType({})
    deny_rules: RulesBySource = MappingProxyType({})
    bypass_available: bool = False
    auto_available: bool = False


NO_RULES = NoRules()
