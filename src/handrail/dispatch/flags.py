"""What a tool says about one call, asked with a guard: an answer that raises becomes the careful one."""

import logging
from collections.abc import Callable
from typing import Any

from handrail.conversation.blocks import Json
from handrail.errors import HandrailError, InputError, ToolDefinitionError
from handrail.tools.abort import AbortReason, AbortSignal
from handrail.tools.access import EXCLUSIVE, Access
from handrail.tools.context import RunContext
from handrail.tools.pool import AnyTool
from handrail.tools.tool import PromptView

log = logging.getLogger(__name__)


def flag(question: Callable[[Any], bool], args: Any) -> bool:
    """The tool's yes; anything else, also an exception, is a no."""
    try:
        return question(args) is True
    except Exception:
        log.exception("%s raised; the careful answer is used", getattr(question, "__qualname__", question))
        return False


def is_enabled(tool: AnyTool) -> bool:
    """Whether the tool says that it can be used now."""
    try:
        return bool(tool.is_enabled())
    except Exception:
        log.exception("%s.is_enabled raised; the tool is not used", tool.name)
        return False


def says_no(tool: AnyTool, name: str, args: Any) -> bool:
    """Whether a flag of the tool is surely not set; an exception is not a no."""
    return flag(lambda given: getattr(tool, name)(given) is False, args)


def declaration(tool: AnyTool, args: Any, run: RunContext) -> Access:
    """What the tool declares about the call. A tool that raises or answers something else has declared nothing."""
    try:
        access: object = tool.access(args, run)
    except Exception:
        log.exception("%s.access raised; the call runs alone", tool.name)
        return EXCLUSIVE
    return access if isinstance(access, Access) else EXCLUSIVE


def fits(tool: AnyTool, args: Any, spec: str) -> bool | None:
    """Whether the call is what a rule such as `Tool(spec)` means; None when the tool cannot say."""
    try:
        found: object = tool.permission_matcher(args)(spec)
    except Exception:
        log.exception("the matcher of %s raised; deny and ask rules count as matching", tool.name)
        return None
    return found if isinstance(found, bool) else None


def subject_of(tool: AnyTool, args: Any) -> str:
    """What the call is about, in the words of the tool; empty if it cannot say."""
    try:
        return tool.subject_text(args) or ""
    except Exception:
        log.exception("%s.subject_text raised; the call is about nothing in particular", tool.name)
        return ""


def short(tool: AnyTool, args: Any) -> str:
    """The call in short; the tool's name, if the tool cannot say."""
    try:
        return str(tool.summary(args))
    except Exception:
        log.exception("%s.summary raised; the name is used", tool.name)
        return tool.name


def describe(tool: AnyTool, args: Any, view: PromptView) -> str:
    """One line about the call for the person who decides on it; the call in short, if the tool cannot say."""
    try:
        return str(tool.description(args, view))
    except Exception:
        log.exception("%s.description raised; the summary is used", tool.name)
        return short(tool, args)


def display_name(tool: AnyTool, args: Any) -> str:
    """The name that people see; the tool's own, if the tool cannot say."""
    try:
        return str(tool.display_name(args))
    except Exception:
        log.exception("%s.display_name raised; the name is used", tool.name)
        return tool.name


def parse(tool: AnyTool, raw: Json) -> tuple[Any, HandrailError | None]:
    """The checked input, or why there is none."""
    try:
        return tool.parse(raw), None
    except (InputError, ToolDefinitionError) as error:
        return None, error
    except Exception as error:
        log.exception("%s could not parse its input", tool.name)
        return None, InputError((f"It could not be checked: {type(error).__name__}: {error}.",))


def abort(signal: AbortSignal, reason: AbortReason) -> None:
    """Set the signal of a call. What a tool does on hearing it is the tool's business, and so is what it raises."""
    try:
        signal.abort(reason)
    except Exception:
        log.exception("a listener raised when its call was aborted")
