"""
Tool: a capability that a model may use.

Only `name`, `input_model` and `call` are required. Every other member has a careful default, so that a forgotten flag
makes a tool slow, or asked about, but never dangerous.

Pydantic is loaded with the first input model, not with this module: the first request of a run needs none.
"""

from abc import ABC
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property
from typing import TYPE_CHECKING, Any, ClassVar, Literal

from handrail.conversation.blocks import Json, ResultBlock, Text
from handrail.errors import ToolDefinitionError
from handrail.lazy import lazy
from handrail.records import record
from handrail.tools.access import EXCLUSIVE, SHARED, Access
from handrail.tools.cards import Card, In, ToolDisplay
from handrail.tools.context import AgentType, Progress, RunContext, ToolContext
from handrail.tools.output import Output, json_text, sendable
from handrail.tools.permission import NO_OPINION, Ask, Check, NoRules, PermissionSnapshot, Refuse
from handrail.tools.plain_input import PlainInput
from handrail.tools.search import words
from handrail.tools.wording import brief_repr

if TYPE_CHECKING:
    from importlib import resources

    from pydantic import BaseModel

    from handrail.tools import schema
else:
    resources = lazy("importlib.resources")  # 9 ms; the texts of built-in tools are known without it
    schema = lazy("handrail.tools.schema")  # Pydantic, 250 ms

DEFAULT_RESULT_CHARS = 30_000
MAX_NAME = 128
HINT_WORDS = range(3, 11)
YES_OR_NO_MEMBERS = ("requires_user_interaction", "error_cancels_siblings", "should_defer", "always_load")
YES_OR_NO = ("read_only", "concurrency_safe", "destructive", *YES_OR_NO_MEMBERS)
CHECKED_MEMBERS = (*YES_OR_NO_MEMBERS, "interrupt", "timeout", "max_result_chars")
STAR = "\0"
FLAGS = ("is_read_only", "is_destructive")
"""The flags that `handrail tools` lists."""
WARNINGS: Mapping[str, str] = {"is_destructive": "the tool calls it destructive"}
"""Flags that raise the risk of a call unless they say no, in the words of questions and `explain`."""


@record
class McpInfo:
    """The server of an MCP tool, and the tool's name there. MCP tools are sorted by it."""

    server: str
    tool: str

    def __lt__(self, other: "McpInfo") -> bool:
        return (self.server, self.tool) < (other.server, other.tool)


@record
class PromptView:
    """
    What the texts of a tool may depend on. `Pool.view` makes it, for prompts once per conversation.

    `permissions` returns the policy in force. It changes during a run, so a description, which a person reads, may use
    it; a prompt that uses it is sent as it was in the first request. MCP tools come and go and are not in `tools`.
    """

    interactive: bool = False
    tools: frozenset[str] = frozenset()
    agents: tuple[AgentType, ...] = ()
    permissions: Callable[[], PermissionSnapshot] = NoRules

    @property
    def mode(self) -> str:
        """The permission mode."""
        return self.permissions().mode


PLAIN_VIEW = PromptView()


class Tool(ToolDisplay[In], ABC):
    """A capability that a model may use; the module docstring says what is required."""

    name: str
    aliases: tuple[str, ...] = ()
    search_hint: str = ""
    input_model: "type[BaseModel | PlainInput]"
    mcp: McpInfo | None = None
    subject: str = ""
    """The name of the argument that a call is about: `Deploy(prod)` in a rule is matched against its value."""

    interrupt: Literal["cancel", "block"] | None = None
    """On a submit-interrupt: stop, or finish. None = stop if the call is read-only, else finish."""
    requires_user_interaction: bool = False
    error_cancels_siblings: bool = False
    timeout: float | None = None
    max_result_chars: int | None = DEFAULT_RESULT_CHARS
    """None = the tool bounds its own results, which are then never moved to a file."""
    should_defer: bool = False
    always_load: bool = False
    blocking: ClassVar[bool] = False
    """True = `call_blocking` is run in a thread instead of `call`, so that it never blocks the event loop."""
    tracks_files: ClassVar[bool] = False
    """True = it checks, remembers and keeps for undo the files that it declares; else that is done around the call."""

    # What it accepts

    @cached_property
    def input_schema(self) -> Json:
        """The JSON Schema that goes to the model; its root is always an object."""
        return schema.model_schema(self.input_model)

    @cached_property
    def schema_json(self) -> bytes:
        """The schema as it is sent: always the same bytes."""
        return schema.schema_bytes(self.input_schema)

    def parse(self, raw: Json) -> In:
        """The checked input, or InputError with every problem at once."""
        model = self.input_model
        if issubclass(model, PlainInput):
            return model.take(raw) or schema.parse_plain(model, raw)  # type: ignore[return-value]  # In is what it makes
        return schema.parse_model(model, raw)  # type: ignore[return-value]  # the same

    @cached_property
    def output_schema(self) -> Json | None:
        """The JSON Schema of the data that it returns; None = it promises none."""
        return None

    async def validate(self, args: In, ctx: ToolContext) -> Refuse | Ask | None:
        """Whether the input makes sense here and now; None = it does."""
        return None

    def is_answered(self, args: In) -> bool:
        """Whether the input holds the person's answers, which a hook may bring in the place of the person."""
        return False

    # What it says of itself

    def prompt(self, view: PromptView) -> str:
        """The description that the model reads: by default the Markdown file beside the tool's module."""
        return markdown_beside(type(self).__module__)

    def description(self, args: In, view: PromptView) -> str:
        """One line about this call, for a person who has to decide on it."""
        return self.summary(args)

    def summary(self, args: In) -> str:
        """A short form of one call for messages, for example `Read(src/app.py)`."""
        values = args if isinstance(args, Mapping) else getattr(args, "__dict__", {})
        first = next((value for value in values.values() if value is not None), "")
        return f"{self.name}({brief_repr(first, 60)})" if first != "" else self.name

    def classifier_text(self, args: In) -> str:
        """What a safety classifier looks at. Empty = nothing of interest."""
        return ""

    # How it behaves

    def is_enabled(self) -> bool:
        """Whether the tool can work in this environment."""
        return True

    def is_quick(self, args: In, ctx: ToolContext) -> bool:
        """Whether a blocking call takes less time than handing it to a thread would."""
        return False

    def is_read_only(self, args: In) -> bool:
        """Whether this call changes nothing."""
        return False

    def is_concurrency_safe(self, args: In) -> bool:
        """Whether this call may run beside others that are safe."""
        return False

    def is_destructive(self, args: In) -> bool:
        """Whether this call destroys something that cannot be brought back."""
        return False

    def access(self, args: In, run: RunContext) -> Access:
        """All that this call touches. By default nothing is declared, and it runs as `is_concurrency_safe` says."""
        return SHARED if self.is_concurrency_safe(args) else EXCLUSIVE

    # What it thinks of permission

    async def check_permission(self, args: In, ctx: ToolContext) -> Check:
        """The tool's own opinion on this call; it may also change the input. By default it has none."""
        return NO_OPINION

    def permission_matcher(self, args: In) -> Callable[[str], bool | None]:
        """
        A predicate over the content of rules such as `Tool(content)`: by default a pattern for the subject.

        None means that the tool cannot say, which counts as a match for deny and ask rules.
        """
        text = self.subject_text(args)
        return lambda content: None if text is None else matches(content, text)

    def subject_text(self, args: In) -> str | None:
        """What the call is about, as a text; None when the tool names no subject, or it is not given."""
        if not self.subject:
            return None
        value = args.get(self.subject) if isinstance(args, Mapping) else getattr(args, self.subject, None)
        return None if value is None else value if isinstance(value, str) else json_text(value)

    # What it does

    async def call(self, args: In, ctx: ToolContext) -> Output:
        """Run the call. Raise ToolError with a message for the model when it fails."""
        raise NotImplementedError(f"{type(self).__name__} needs call")

    def call_blocking(self, args: In, ctx: ToolContext) -> Output:
        """Run the call in a thread. Used when `blocking` is set."""
        raise NotImplementedError(f"{type(self).__name__} is blocking and needs call_blocking")

    def result_blocks(self, output: Output) -> tuple[ResultBlock, ...]:
        """The blocks that the model gets for an output."""
        blocks = output.blocks
        if output.text:
            if not blocks:
                return (Text(sendable(output.text)),)
            blocks = (Text(output.text), *blocks)
        elif not blocks:
            blocks = (Text("" if output.data is None else json_text(output.data)),)
        return tuple(Text(sendable(block.text)) if isinstance(block, Text) else block for block in blocks)

    def output_from_data(self, data: Json) -> Output:
        """The output for data that a hook put in the place of a call's own; it may lack fields. By default as JSON."""
        return Output(text=json_text(data), data=data)

    def result_card(self, output: Output, progress: Sequence[Progress]) -> Card:
        """The finished call: by default the card of the output, else what the model gets."""
        texts = (block.text for block in self.result_blocks(output) if isinstance(block, Text))
        return output.card or Card(title=self.display_name(), body="\n".join(texts))

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if isinstance(cls.__dict__.get("name"), str):
            check_identity(cls.name, cls.aliases, cls.search_hint)


def matches(pattern: str, text: str) -> bool:
    r"""Whether a pattern covers a whole text: `*` stands for any text, `\*` for a star."""
    parts = [part.replace(STAR, "*") for part in pattern.replace(r"\*", STAR).split("*")]
    if len(parts) == 1:
        return parts[0] == text
    first, *middle, last = parts
    if not text.startswith(first) or not text[len(first) :].endswith(last):
        return False
    at, end = len(first), len(text) - len(last)
    for part in middle:
        found = text.find(part, at, end)
        if found < 0:
            return False
        at = found + len(part)
    return True


def check_identity(name: str, aliases: object, search_hint: str) -> None:
    """Check the name, aliases and search hint of a tool. Raises ToolDefinitionError with what to change."""
    if not isinstance(aliases, tuple):
        raise ToolDefinitionError(f"{name}: aliases is {aliases!r}. Give a tuple, for example ('OldName',).")
    for used in (name, *aliases):
        check_name(used)
    if not search_hint:
        return
    if search_hint.endswith("."):
        raise ToolDefinitionError(f"{name}: the search hint ends with a period: {search_hint!r}. Give bare words.")
    if len(search_hint.split()) not in HINT_WORDS:
        raise ToolDefinitionError(f"{name}: the search hint {search_hint!r} should have 3 to 10 words.")
    if _may_share_words(name, search_hint) and (doubled := sorted(set(words(name)) & set(words(search_hint)))):
        raise ToolDefinitionError(f"{name}: the search hint repeats {doubled[0]!r} from the name. Give other words.")


def _may_share_words(name: str, search_hint: str) -> bool:
    """False for hints of plain small words that are no part of the name, which most are: `words` takes longer."""
    is_plain = search_hint.islower() and search_hint.replace(" ", "").isalpha()
    return not is_plain or any(word in name.lower() for word in search_hint.split())


def check_tool(tool: object) -> None:
    """Check that it is a tool with all that a tool needs. Raises ToolDefinitionError with what to change."""
    if isinstance(tool, type) and issubclass(tool, Tool):
        raise ToolDefinitionError(f"{tool.__name__} is a class. Give an instance of it: {tool.__name__}().")
    if not isinstance(tool, Tool):
        name = getattr(tool, "__name__", repr(tool))
        raise ToolDefinitionError(f"{name} is not a tool. Put @tool above a function, or subclass Tool.")
    kind = type(tool)
    needs = {
        "name": not hasattr(tool, "name"),
        "input_model": kind.parse is Tool.parse and not hasattr(tool, "input_model"),
        "call": kind.call is Tool.call and not kind.blocking,
    }
    if missing := [name for name, lacks in needs.items() if lacks]:
        raise ToolDefinitionError(
            f"The tool {kind.__name__} has no {' and no '.join(missing)}. Define it in the class."
        )
    check_flags(tool.name, {flag: getattr(tool, flag) for flag in CHECKED_MEMBERS})


def check_flags(name: str, flags: Mapping[str, object]) -> None:
    """Check the values of flags: a text such as "no" would count as a yes. Raises ToolDefinitionError."""
    for flag, value in flags.items():
        if accepted := _accepted_values(flag, value):
            raise ToolDefinitionError(f"{name}: {flag} is {value!r}. Use {accepted}.")


def _accepted_values(flag: str, value: object) -> str:
    """What the flag takes, if it does not take this value."""
    if flag in YES_OR_NO:
        return "" if isinstance(value, bool) else "True or False"
    if flag == "interrupt":
        return "" if value in (None, "cancel", "block") else "'cancel', 'block' or None"
    if flag == "timeout":
        return "" if value is None or _is_above_zero(value) else "a number of seconds above 0, or None"
    if flag == "max_result_chars":
        fits = value is None or (isinstance(value, int) and _is_above_zero(value))
        return "" if fits else "a whole number above 0, or None"
    return ""


def _is_above_zero(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


def is_name(text: str) -> bool:
    """Whether model APIs accept a text as the name of a tool."""
    letters = text.replace("_", "").replace("-", "")
    return 1 <= len(text) <= MAX_NAME and text.isascii() and (letters.isalnum() or not letters)


def check_name(name: str) -> None:
    """Check that model APIs accept the name."""
    if not is_name(name):
        raise ToolDefinitionError(f"A tool cannot be called {name!r}. Use 1 to 128 of A-Z, a-z, 0-9, _ and -.")


@cache
def markdown_beside(module: str) -> str:
    """The text of `glob.md` for the module `handrail.builtin.glob`."""
    package, _, stem = module.rpartition(".")
    try:
        return resources.files(package).joinpath(f"{stem}.md").read_text("utf-8").strip()
    except (OSError, ImportError, TypeError, ValueError) as error:
        raise ToolDefinitionError(f"{module} has no {stem}.md beside it. Write one, or define prompt().") from error
