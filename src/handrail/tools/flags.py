"""Asks a tool about one call; where the tool raises, the careful answer counts."""

from collections.abc import Callable, Mapping
from pathlib import PurePath
from typing import Any, NoReturn, TypeVar

from handrail.conversation.blocks import Json
from handrail.conversation.logger import get_logger
from handrail.errors import HandrailError, InputError, ToolDefinitionError
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import FAILED, Access
from handrail.tools.context import RunContext
from handrail.tools.pool import AnyTool
from handrail.tools.tool import WARNINGS, PromptView, Tool
from handrail.tools.wording import missing_field

log = get_logger(__name__)

T = TypeVar("T")


def ask_tool(tool: str, method: str, question: Callable[[], T], careful: T) -> T:
    """What the tool answers, or the careful answer if it raises."""
    try:
        return question()
    except Exception:
        log.exception("%s.%s raised; the careful answer is used", tool, method)
        return careful


def flag(question: Callable[[Any], bool], args: Any) -> bool:
    """Whether the tool answers True; anything else, also an exception, counts as no."""
    try:
        return question(args) is True
    except Exception:
        log.exception("%s raised; the careful answer is used", getattr(question, "__qualname__", question))
        return False


def is_enabled(tool: AnyTool) -> bool:
    """Whether the tool can be used now."""
    try:
        return bool(tool.is_enabled())
    except Exception:
        log.exception("%s.is_enabled raised; it counts as switched off", tool.name)
        return False


def warnings_of(tool: AnyTool, args: Any) -> tuple[str, ...]:
    """The warnings about a call: of each flag that does not say False, also because it raises."""
    found: tuple[str, ...] = ()
    for name, text in WARNINGS.items():
        try:
            says_no = getattr(tool, name)(args) is False
        except Exception:
            log.exception("%s.%s raised; the careful answer is used", tool.name, name)
            says_no = False
        found = found if says_no else (*found, text)
    return found


def declaration(tool: AnyTool, args: Any, run: RunContext) -> Access:
    """What the tool declares that the call accesses; `failed` if it raises or returns something else."""
    try:
        access: object = tool.access(args, run)
    except Exception:
        log.exception("%s.access raised; the careful answer is used", tool.name)
        return FAILED
    return access if isinstance(access, Access) else FAILED


def fits(tool: AnyTool, args: Any, spec: str) -> bool | None:
    """Whether a rule such as `Tool(spec)` matches the call; None when the tool cannot tell."""
    found: object = ask_tool(tool.name, "permission_matcher", lambda: tool.permission_matcher(args)(spec), None)
    if isinstance(found, bool):
        return found
    return False if _names_parameter(tool, spec) else None


def _names_parameter(tool: AnyTool, spec: str) -> bool:
    """Whether a rule is about one parameter, `Tool(parameter:value)`, which is matched against the input."""
    name, colon, _ = spec.partition(":")
    properties: Json = ask_tool(tool.name, "input_schema", lambda: tool.input_schema.get("properties", {}), {})
    return bool(colon) and name in properties


def subject_of(tool: AnyTool, args: Any) -> str:
    """The subject of the call as the tool gives it; empty if it has none."""
    try:
        return tool.subject_text(args) or ""
    except Exception:
        log.exception("%s.subject_text raised; the careful answer is used", tool.name)
        return ""


def subject_paths(tool: AnyTool, args: Any) -> tuple[str, ...]:
    """The paths that the call may be about: its subject, one or several; none if the tool matches rules itself."""
    if not tool.subject or type(tool).permission_matcher is not Tool.permission_matcher:
        return ()
    value = args.get(tool.subject) if isinstance(args, Mapping) else getattr(args, tool.subject, None)
    values = value if isinstance(value, list | tuple) else (value,)
    return tuple(map(str, values)) if all(isinstance(each, str | PurePath) for each in values) else ()


def short(tool: AnyTool, args: Any) -> str:
    """A summary of the call; the tool's name if the tool raises."""
    return ask_tool(tool.name, "summary", lambda: str(tool.summary(args)), tool.name)


def describe(tool: AnyTool, args: Any, view: PromptView) -> str:
    """One line about the call for the user who decides on it; the summary if the tool raises."""
    line = ask_tool(tool.name, "description", lambda: str(tool.description(args, view)), None)
    return short(tool, args) if line is None else line


def display_name(tool: AnyTool, args: Any) -> str:
    """The name that users see; the tool's own if the tool raises."""
    return ask_tool(tool.name, "display_name", lambda: str(tool.display_name(args)), tool.name)


def parse(tool: AnyTool, raw: Json) -> tuple[Any, HandrailError | None]:
    """The validated input, or the error."""
    try:
        return tool.parse(raw), None
    except (InputError, ToolDefinitionError) as error:
        return None, error
    except Exception as error:
        log.exception("%s could not parse its input", tool.name)
        return None, InputError((f"It could not be checked: {type(error).__name__}: {error}.",))


def input_problems(tool: AnyTool, raw: Json) -> tuple[str, ...]:
    """What is wrong with the input of a call that is not made: it may lack fields that do not say what it is about."""
    error = parse(tool, raw)[1]
    if error is None:
        return ()
    problems = error.problems if isinstance(error, InputError) else (str(error),)
    required = tool.input_schema.get("required", ()) if raw else ()
    optional = {missing_field([name]) for name in required if name != tool.subject}
    return tuple(problem for problem in problems if problem not in optional)


def abort(signal: AbortSignal, reason: AbortReason) -> None:
    """Abort the signal of a call. What its listeners raise is logged."""
    try:
        signal.abort(reason)
    except Exception:
        log.exception("a listener raised when its call was aborted")


class _AnyInput:
    """Stands for an input that is not known. A flag that looks at it depends on it."""

    def __getattr__(self, name: str) -> NoReturn:
        raise LookupError(name)


def whatever_the_input(question: Callable[[Any], Any]) -> Any:
    """The tool's answer if it is the same for every input, else "depends"."""
    try:
        return question(_AnyInput())
    except LookupError:
        return "depends"
