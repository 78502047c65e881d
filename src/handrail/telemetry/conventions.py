"""
The names of spans, attributes and metrics, in one place.

Those of `gen_ai` and `mcp` are the GenAI semantic conventions, which may still change: a new version of them is a new
version of this table. Those of `handrail` are ours.
"""

from typing import Final

NAME = "handrail"
"""Of the service and of what measures it."""
VERSION = "1.41.0"
"""The version of the semantic conventions that the names are from."""
SCHEMA_URL = f"https://opentelemetry.io/schemas/{VERSION}"

INVOKE_AGENT, CHAT, EXECUTE_TOOL = "invoke_agent", "chat", "execute_tool"
PERMISSION_WAIT = "handrail.permission_wait"
DECISION = "handrail.decision"
COMPACTED = "handrail.compacted"

OPERATION: Final = "gen_ai.operation.name"
PROVIDER = "gen_ai.provider.name"
CONVERSATION = "gen_ai.conversation.id"
AGENT_ID, AGENT_NAME = "gen_ai.agent.id", "gen_ai.agent.name"
REQUEST_MODEL, RESPONSE_MODEL = "gen_ai.request.model", "gen_ai.response.model"
RESPONSE_ID, FINISH_REASONS = "gen_ai.response.id", "gen_ai.response.finish_reasons"
INPUT_TOKENS, OUTPUT_TOKENS = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
CACHE_READ_TOKENS = "gen_ai.usage.cache_read.input_tokens"
CACHE_WRITE_TOKENS = "gen_ai.usage.cache_creation.input_tokens"
TOKEN_TYPE = "gen_ai.token.type"  # noqa: S105  # a kind of token that is counted
TOOL_NAME, TOOL_TYPE, CALL_ID = "gen_ai.tool.name", "gen_ai.tool.type", "gen_ai.tool.call.id"
MCP_METHOD = "mcp.method.name"
ERROR_TYPE = "error.type"
DENIED = "denied"

INPUT_MESSAGES, OUTPUT_MESSAGES = "gen_ai.input.messages", "gen_ai.output.messages"
CALL_ARGUMENTS, CALL_RESULT = "gen_ai.tool.call.arguments", "gen_ai.tool.call.result"

OUTCOME, TURNS, DOLLARS = "handrail.outcome", "handrail.turns", "handrail.dollars"
TURN, ATTEMPT, WHY = "handrail.turn", "handrail.attempt", "handrail.why"
STATUS, CAUSE = "handrail.call.status", "handrail.call.cause"
MCP_SERVER = "handrail.mcp.server"
QUEUED, VALIDATED, DECIDED = "handrail.stage.queued", "handrail.stage.validated", "handrail.stage.decided"
RAN, FITTED = "handrail.stage.ran", "handrail.stage.fitted"
VERDICT, LAYER = "handrail.decision.verdict", "handrail.decision.layer"
RULE, SOURCE, REASON = "handrail.decision.rule", "handrail.decision.source", "handrail.decision.reason"

OPERATION_DURATION = "gen_ai.client.operation.duration"
TOKEN_USAGE = "gen_ai.client.token.usage"  # noqa: S105  # a count
TOOL_DURATION = "handrail.tool.duration"
RUNNING_CALLS = "handrail.calls.running"
SECONDS_BUCKETS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
TOKEN_BUCKETS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
