"""Requests, built from what the run and the conversation hold. The same pool gives the same bytes."""

from handrail.conversation.request import Request, ToolDefinition
from handrail.loop.conversation_state import ConversationState
from handrail.loop.run_config import RunConfig
from handrail.tools.pool import Pool, definition_json
from handrail.tools.tool import PromptView


class ToolDefinitions:
    """The tool definitions of a request, built once per pool."""

    def __init__(self, view: PromptView) -> None:
        self._view = view
        self._pool: Pool | None = None
        self._definitions: tuple[ToolDefinition, ...] = ()
        self._activated: tuple[str, ...] = ()

    def for_pool(self, pool: Pool) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
        """
        All definitions and the names of deferred tools that were found.

        What is sent in full stands first, in the pool's order; what is or was held back follows, also in the pool's
        order, so that finding a tool moves nothing.
        """
        if pool is not self._pool:
            self._pool = pool
            self._activated = tuple(name for name in pool.activated if name in _activated_later(pool))
            held = set(pool.deferred) | set(self._activated)
            ahead = [tool for tool in pool.active if tool.name not in held]
            behind = [tool for tool in pool.listed if tool.name in held]
            view = self._view
            self._definitions = (
                *(ToolDefinition(tool.name, definition_json(tool, view)) for tool in ahead),
                *(ToolDefinition(tool.name, definition_json(tool, view), deferred=True) for tool in behind),
            )
        return self._definitions, self._activated


def _activated_later(pool: Pool) -> frozenset[str]:
    """Activated tools that had been held back: they stand at the end of the active ones."""
    names = [tool.name for tool in pool.active]
    found = [name for name in pool.activated if name in names]
    while found and names[-len(found) :] != found:
        found.pop(0)
    return frozenset(found)


def build_request(config: RunConfig, conversation: ConversationState, tools: ToolDefinitions) -> Request:
    """The next request. Nothing here grows with the history."""
    pool = conversation.catalog.pool
    definitions, activated = tools.for_pool(pool)
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
        tool_choice=options.tool_choice,
        schema=config.structured.schema if config.structured else None,
        betas=options.betas,
        chain=conversation.chain,
    )
