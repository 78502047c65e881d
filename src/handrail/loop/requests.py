"""Builds requests from the configuration of a run and its conversation. The same pool gives the same bytes."""

from handrail.conversation.request import Request, ToolDefinition
from handrail.loop.conversation_state import ConversationState
from handrail.loop.run_config import RunConfig
from handrail.tools.pool import Pool, definition_json
from handrail.tools.stub import ListedTool


class ToolDefinitions:
    """The tool definitions of a request, built once per pool."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._definitions: tuple[ToolDefinition, ...] = ()
        self._activated: tuple[str, ...] = ()

    def for_pool(
        self, pool: Pool, conversation: ConversationState
    ) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
        """
        All definitions and the names of deferred tools that were found.

        Definitions sent in full come first; those that are or were deferred follow, so that finding a tool moves
        nothing; tools added during the conversation come last. Each group is in the order of the pool.
        """
        if pool is not self._pool:
            self._pool = pool
            self._activated = tuple(name for name in pool.activated if name in pool.held)
            held = set(pool.deferred) | set(self._activated)
            ahead = [tool for tool in pool.active if tool.name not in held and tool.name not in pool.late]
            behind = [tool for tool in pool.listed if tool.name in held]
            late = [tool for tool in pool.active if tool.name in pool.late]
            self._definitions = (
                *(ToolDefinition(tool.name, _definition(tool, conversation)) for tool in ahead),
                *(ToolDefinition(tool.name, _definition(tool, conversation), deferred=True) for tool in behind),
                *(ToolDefinition(tool.name, _definition(tool, conversation)) for tool in late),
            )
        return self._definitions, self._activated


def _definition(tool: ListedTool, conversation: ConversationState) -> bytes:
    """The definition as this conversation first sent it, even if what its prompt depends on has changed since."""
    known = conversation.definitions.get(tool.name)
    if known is None or known[0] != tool:
        if conversation.view is None:
            conversation.view = conversation.catalog.pool.view(conversation.context)
        known = conversation.definitions[tool.name] = tool, definition_json(tool, conversation.view)
    return known[1]


def build_request(config: RunConfig, conversation: ConversationState, tools: ToolDefinitions) -> Request:
    """The next request. Nothing here grows with the history."""
    pool = conversation.catalog.refresh()
    definitions, activated = tools.for_pool(pool, conversation)
    options = config.options
    return Request(
        model=config.model_name,
        history=conversation.history,
        system=config.system,
        tools=definitions,
        last_builtin=pool.own_count - 1,
        activated=activated,
        max_tokens=options.max_tokens,
        thinking=options.thinking,
        effort=options.effort,
        task_budget=options.task_budget,
        schema=config.structured.schema if config.structured else None,
        betas=options.betas,
        chain=conversation.chain,
    )
