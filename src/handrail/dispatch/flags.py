"""Asks a tool about one call; where the tool raises, the careful answer counts."""

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
        log.exception("%s.is_enabled raised; the tool is not used", tool.name)
        return False


def says_no(tool: AnyTool, name: str, args: Any) -> bool:
    """Whether a flag of the tool is False; an exception does not count as False."""
    return flag(lambda given: getattr(tool, name)(given) is False, args)


def declaration(tool: AnyTool, args: Any, run: RunContext) -> Access:
    """What the tool declares that the call accesses. A tool that raises or returns something else declares nothing."""
    try:
        access: object = tool.access(args, run)
    except Exception:
        log.exception("%s.access raised; the call runs alone", tool.name)
        return EXCLUSIVE
    return access if isinstance(access, Access) else EXCLUSIVE


def fits(tool: AnyTool, args: Any, spec: str) -> bool | None:
    """Whether a rule such as `Tool(spec)` matches the call; None when the tool cannot tell."""
    try:
        found: object = tool.permission_matcher(args)(spec)
    except Exception:
        log.exception("the matcher of %s raised; deny and ask rules count as matching", tool.name)
        return None
    return found if isinstance(found, bool) else None


def subject_of(tool: AnyTool, args: Any) -> str:
    """The subject of the call as the tool gives it; empty if it has none."""
    try:
        return tool.subject_text(args) or ""
    except Exception:
        log.exception("%s.subject_text raised; the call is about nothing in particular", tool.name)
        return ""


def short(tool: AnyTool, args: Any) -> str:
    """A summary of the call; the tool's name if the tool raises."""
    try:
        return str(tool.summary(args))
    except Exception:
        log.exception("%s.summary raised; the name is used", tool.name)
        return tool.name


def describe(tool: AnyTool, args: Any, view: PromptView) -> str:
    """One line about the call for the user who decides on it; the summary if the tool raises."""
    try:
        return str(tool.description(args, view))
    except Exception:
        log.exception("%s.description raised; the summary is used", tool.name)
        return short(tool, args)


def display_name(tool: AnyTool, args: Any) -> str:
    """The name that users see; the tool's own if the tool raises."""
    try:
        return str(tool.display_name(args))
    except Exception:
        log.exception("%s.display_name raised; the name is used", tool.name)
        return tool.name


def parse(tool: AnyTool, raw: Json) -> tuple[Any, HandrailError | None]:
    """The validated input, or the error."""
    try:
        return tool.parse(raw), None
    except (InputError, ToolDefinitionError) as error:
        return None, error
    except Exception as error:
        log.exception("%s could not parse its input", tool.name)
        return None, InputError((f"It could not be checked: {type(error).__name__}: {error}.",))


def abort(signal: AbortSignal, reason: AbortReason) -> None:
    """Abort the signal of a call. What its listeners raise is logged."""
    try:
        signal.abort(reason)
    except Exception:
        log.exception("a listener raised when its call was aborted")
