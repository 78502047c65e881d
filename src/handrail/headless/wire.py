"""Builds JSON lines: blocks, token counts, results, in the format that agent clients already read."""

import time
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from handrail.conversation.block_json import OWN, Block, block_value
from handrail.conversation.stream import StreamFailure, Usage
from handrail.headless.ways_out import allowing_flags
from handrail.lazy import lazy
from handrail.loop.events import SYNTHETIC, BlockComplete, Denial, RunEnded
from handrail.loop.run_hooks import failure_kind
from handrail.loop.state import Why
from handrail.loop.usage import ModelUsage
from handrail.loop.windows import window_of
from handrail.tools.outcome import Outcome
from handrail.tools.output import Output
from handrail.transcripts.writer import new_id

Line = dict[str, Any]

SUBTYPES = {
    Why.COMPLETED: "success",
    Why.REFUSED: "success",
    Why.HOOK_STOPPED: "success",
    Why.TOOL_DEFERRED: "success",
    Why.MODEL_FAILED: "success",  # readers expect an API failure as an erroneous success with its status
    Why.MAX_TURNS: "error_max_turns",
    Why.MAX_DOLLARS: "error_max_budget_usd",
    Why.UNFIT_ANSWERS: "error_max_structured_output_retries",
}

if TYPE_CHECKING:
    import pydantic_core
else:
    pydantic_core = lazy("pydantic_core")  # the first request does not need it


def system(subtype: str, **values: object) -> Line:
    """A line that comes from neither the user nor the model."""
    return {"type": "system", "subtype": subtype, **values}


def user(content: Iterable[Block]) -> Line:
    """A line with what is sent to the model."""
    seconds = time.time()
    moment = time.strftime("%Y-%m-%dT%H:%M:%S", time.gmtime(seconds))
    return {
        "type": "user",
        "message": {"role": "user", "content": [wire_block(block) for block in content]},
        "parent_tool_use_id": None,
        "timestamp": f"{moment}.{int(seconds % 1 * 1000):03d}Z",
    }


def assistant(event: BlockComplete, used: Usage) -> Line:
    """One block of an answer, with its token counts so far."""
    return _assistant(event.message_id, event.model, wire_block(event.block), used)


def model_failure(failure: StreamFailure, text: str) -> Line:
    """The text in place of an answer that never came; `error` names the kind of failure for programs."""
    line = _assistant(f"msg_{new_id()}", SYNTHETIC, {"type": "text", "text": text}, Usage())
    return {**line, "error": failure_kind(failure)}


def _assistant(message_id: str, model: str, block: Line, used: Usage) -> Line:
    message = {
        "id": message_id,
        "type": "message",
        "role": "assistant",
        "model": model,
        "content": [block],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage(used),
    }
    return {"type": "assistant", "message": message, "parent_tool_use_id": None}


def tool_result(outcome: Outcome) -> Line:
    """The result of a call, and its data for programs."""
    line = user([outcome.result])
    line["tool_use_result"] = (
        f"Error: {outcome.result.text}" if outcome.result.is_error else result_data(outcome.output)
    )
    return line


def jsonable(value: object) -> Any:
    """The value as JSON; anything else, also circular or too deep values, becomes text."""
    try:
        return pydantic_core.to_jsonable_python(value, fallback=str)
    except ValueError:  # lone surrogates, too deep, circular: the data of a tool must not end a run
        return f"[data that JSON cannot hold: {str(value)[:1_000]}]"


def wire_block(block: Block) -> Line:
    """A block in the Messages format, without our own fields."""
    value = block_value(block)
    value.pop(OWN, None)
    return value


def usage(used: Usage) -> Line:
    """Token counts under the names readers know; what the provider did not say is zero."""
    return {
        "input_tokens": used.fresh_input,
        "output_tokens": used.whole_output,
        "cache_read_input_tokens": used.cache_read_tokens or 0,
        "cache_creation_input_tokens": used.cache_write_tokens or 0,
    }


def result(event: RunEnded, window: Callable[[str], int] = window_of) -> Line:
    """The one result of a run; `window` gives the size of a model's window."""
    line: Line = {
        "type": "result",
        "subtype": SUBTYPES.get(event.why, "error_during_execution"),
        "is_error": event.is_error,
        "duration_ms": round(event.seconds * 1000),
        "duration_api_ms": round(event.model_seconds * 1000),
        "num_turns": event.turns,
        "result": event.report or event.text if event.is_error else event.text,
        "stop_reason": event.stop_reason or None,
        "terminal_reason": event.why.value,
        "total_cost_usd": event.dollars,
        "usage": _total(event.spent.values() if event.own is None else (event.own,)),
        "modelUsage": {model: _model_usage(spent, window(model)) for model, spent in event.spent.items()},
        "permission_denials": [_denial(denial) for denial in event.denials],
    }
    if event.structured is not None:
        line["structured_output"] = jsonable(event.structured)
    if event.failure and event.failure.status:
        line["api_error_status"] = event.failure.status
    if event.is_error:
        line["errors"] = [event.report]
    if event.deferred is not None:
        use = event.deferred
        line["deferred_tool_use"] = {"id": use.id, "name": use.name, "input": jsonable(use.input)}
    return line


def _denial(denial: Denial) -> Line:
    line: Line = {
        "tool_name": denial.use.name,
        "tool_use_id": denial.use.id,
        "tool_input": jsonable(denial.use.input),
        "decision_reason": denial.reason,
    }
    if denial.remedy:
        line["permission_suggestions"] = jsonable(denial.remedy)
        line["allow_with"] = allowing_flags(denial.remedy)
    if denial.unasked:
        line["unasked"] = True
    if denial.broken:
        line["broken_rule"] = denial.broken
    return line


def failed_result(problem: str, session_id: str = "") -> Line:
    """The result of a prompt that could not be started."""
    return {
        "type": "result",
        "subtype": "error_during_execution",
        "is_error": True,
        "duration_ms": 0,
        "duration_api_ms": 0,
        "num_turns": 0,
        "result": problem,
        "errors": [problem],
        "session_id": session_id,
        "uuid": new_id(),
        "permission_denials": [],
        "total_cost_usd": 0.0,
        "usage": usage(Usage()),
        "modelUsage": {},
    }


def _total(spent: Iterable[ModelUsage]) -> Line:
    every = list(spent)
    return {
        "input_tokens": sum(s.input_tokens for s in every),
        "output_tokens": sum(s.output_tokens for s in every),
        "cache_read_input_tokens": sum(s.cache_read_tokens for s in every),
        "cache_creation_input_tokens": sum(s.cache_write_tokens for s in every),
    }


def _model_usage(spent: ModelUsage, window: int) -> Line:
    return {
        "inputTokens": spent.input_tokens,
        "outputTokens": spent.output_tokens,
        "cacheReadInputTokens": spent.cache_read_tokens,
        "cacheCreationInputTokens": spent.cache_write_tokens,
        "webSearchRequests": spent.web_searches,
        "costUSD": spent.dollars,
        "contextWindow": window,
    }


def result_data(output: Output | None) -> Any:
    """The data of a result for programs, with what an MCP server sent besides its content."""
    data = jsonable(output.data) if output else None
    if output is None or output.mcp is None or not isinstance(data, dict):
        return data
    beside = {"_meta": output.mcp.meta or None, "structuredContent": output.mcp.structured_content}
    return {**data, **{name: jsonable(value) for name, value in beside.items() if value is not None}}
