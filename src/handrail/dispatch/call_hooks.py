"""Runs the hooks around one call, and turns their answers into what the pipeline understands."""

import os
from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from handrail.conversation.blocks import Json, Text
from handrail.dispatch.gate import NO_ANSWER, HookAnswer
from handrail.hooks.news import HookNews
from handrail.hooks.runner import Hooks
from handrail.hooks.texts import escape_frames
from handrail.lazy import lazy
from handrail.tools.output import Output, json_text
from handrail.tools.permission import Allow, Deny, Update, Verdict
from handrail.tools.request import CallRequest

if TYPE_CHECKING:
    import pydantic_core

    from handrail.hooks import ask
    from handrail.hooks.results import HookResult
    from handrail.hooks.specs import Hook
else:
    ask = lazy("handrail.hooks.ask")
    pydantic_core = lazy("pydantic_core")

NO_FIELDS: Json = {}
MCP_FIELDS = frozenset(("content", "structuredContent", "_meta", "isError"))


class CallHooks:
    """The hooks of a session, as the pipeline and the permission gate use them."""

    def __init__(self, hooks: Hooks) -> None:
        self._hooks = hooks

    async def before(self, request: CallRequest) -> HookAnswer:
        """PreToolUse: an opinion, a changed input, or the end of the run."""
        await self._hooks.refresh(request.ctx.run, request.ctx.progress)
        if not self._hooks.wants("PreToolUse"):
            return NO_ANSWER
        answer = await self._fire("PreToolUse", request)
        if answer is ask.NOTHING:
            return NO_ANSWER
        opinion = ask.opinion_of(answer)
        opinion = opinion and replace(opinion, reason=escape_frames(opinion.reason))
        defers = answer.defers and answer.verdict is Verdict.ASK
        return HookAnswer(opinion, answer.updated_input, answer.context, None, answer.stop, defers, asked=True)

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        """PostToolUse or PostToolUseFailure: a changed output, text for the model, or the end of the run."""
        if output is None or output.is_error:
            if not self._hooks.wants("PostToolUseFailure"):
                return NO_ANSWER
            text = error or _text(request, output)
            failure = {"error": text, "is_interrupt": False, "duration_ms": round(seconds * 1000)}
            answer = await self._fire("PostToolUseFailure", request, failure)
            return _read_answer(answer, None)
        if not self._hooks.wants("PostToolUse"):
            return NO_ANSWER
        response = _response(request, output)
        fields = {"tool_response": response, "duration_ms": round(seconds * 1000)}
        answer = await self._fire("PostToolUse", request, fields)
        changed = _replace_output(request, output, response, answer.updated_output)
        if answer.updated_output is not None and changed is None:
            request.ctx.progress(
                HookNews(f"a hook's new output of {request.tool.name} has another shape, so it is ignored")
            )
        return _read_answer(answer, changed)

    async def permission_request(self, request: CallRequest, suggestions: Sequence[Update] = ()) -> Allow | Deny | None:
        """PermissionRequest: a hook's answer in place of the user's. None = the user is asked."""
        if not self._hooks.wants("PermissionRequest"):
            return None
        more = {"permission_suggestions": list(suggestions)} if suggestions else {}
        return (await self._fire("PermissionRequest", request, more)).permission

    def about_to_ask(self, request: CallRequest, reason: str) -> None:
        """Notification: the user is about to be asked. The question does not wait for the hooks."""
        if not self._hooks.wants("Notification"):
            return
        name = request.tool.name
        text = f"{request.summary} needs your permission: {reason}"
        fields = {"message": text, "title": f"Permission for {name}", "notification_type": "permission_prompt"}
        self._hooks.announce("Notification", fields, request.ctx.run, on_news=request.ctx.progress)

    async def _fire(self, event: str, request: CallRequest, more: Json = NO_FIELDS) -> "HookResult":
        fields, ctx = {**_fields(request), **more}, request.ctx
        return await self._hooks.fire(event, fields, ctx.run, request=request, on_news=ctx.progress)

    async def matching(self, event: str, request: CallRequest) -> "list[Hook]":
        """The hooks that would be asked about a call."""
        if not self._hooks.wants(event):
            return []
        return await self._hooks.matching(event, _fields(request), request.ctx.run, request=request)


def _fields(request: CallRequest) -> dict[str, Any]:
    return {"tool_name": request.tool.name, "tool_input": absolute(request), "tool_use_id": request.use.id}


def absolute(request: CallRequest) -> Json:
    """The input with its subject as an absolute path, so that a hook need not know the working folder."""
    given, access = request.use.input, request.access
    subject = given.get(request.tool.subject)
    if subject not in access.files and subject not in access.walks:
        return given
    path = os.path.join(request.ctx.cwd, os.path.expanduser(subject))  # noqa: PTH118, PTH111  # a spelling, no file
    return {**given, request.tool.subject: path}


def _read_answer(answer: "HookResult", output: Output | None) -> HookAnswer:
    context = answer.context if answer.block is None else (*answer.context, answer.block)
    return HookAnswer(None, None, context, output, answer.stop)


def _text(request: CallRequest, output: Output | None) -> str:
    blocks = request.tool.result_blocks(output) if output else ()
    return "\n".join(block.text for block in blocks if isinstance(block, Text))


def _response(request: CallRequest, output: Output) -> Any:
    """The tool's structured data if it has any, else the text that the model gets."""
    if output.data is None:
        return _text(request, output)
    return pydantic_core.to_jsonable_python(output.data, fallback=str)


def _replace_output(request: CallRequest, output: Output, response: Any, new: Any) -> Output | None:
    """
    The output with what a hook puts in its place, for the model and for programs; None if it does not fit.

    A text or text blocks fit every tool, an object that which has the same fields, and an MCP result its tools.
    """
    match new:
        case str():
            other = Output(text=new, data=None if output.data is None else new)
        case list() if request.tool.mcp is not None:
            other = request.tool.output_from_data({"content": new})
        case list() if texts := _texts(new):
            other = Output(blocks=texts, data=None if output.data is None else new)
        case list() if isinstance(response, list):
            other = Output(text=json_text(new), data=new)
        case dict() if isinstance(response, dict) and new.keys() <= response.keys() | _mcp_fields(request):
            other = request.tool.output_from_data(new)
        case _:
            return None
    return replace(other, messages=output.messages, context_change=output.context_change, used=output.used)


def _texts(blocks: Sequence[Any]) -> tuple[Text, ...]:
    """The texts of a list of text blocks; empty if it is another list."""
    texts = [block.get("text") for block in blocks if isinstance(block, dict) and block.get("type") == "text"]
    found = tuple(Text(text) for text in texts if isinstance(text, str))
    return found if len(found) == len(blocks) else ()


def _mcp_fields(request: CallRequest) -> frozenset[str]:
    return MCP_FIELDS if request.tool.mcp is not None else frozenset()
