"""How a request is made from what the run and the conversation hold. The same pool gives the same bytes."""

from handrail.conversation.request import Request, ToolDefinition
from handrail.loop.dialogue import Dialogue
from handrail.loop.setup import Setup
from handrail.tools.pool import Pool, definition_json
from handrail.tools.stand_in import Listed


class Tools:
    """The tools of a request, made once per pool."""

    def __init__(self) -> None:
        self._pool: Pool | None = None
        self._definitions: tuple[ToolDefinition, ...] = ()
        self._activated: tuple[str, ...] = ()

    def of(self, pool: Pool, dialogue: Dialogue) -> tuple[tuple[ToolDefinition, ...], tuple[str, ...]]:
        """
        All definitions and the names of deferred tools that were found.

        What is sent in full stands first, in the pool's order; what is or was held back follows, also in the pool's
        order, so that finding a tool moves nothing; what came while the conversation went on stands last.
        """
        if pool is not self._pool:
            self._pool = pool
            self._activated = tuple(name for name in pool.activated if name in pool.held)
            held = set(pool.deferred) | set(self._activated)
            ahead = [tool for tool in pool.active if tool.name not in held and tool.name not in pool.late]
            behind = [tool for tool in pool.listed if tool.name in held]
            late = [tool for tool in pool.active if tool.name in pool.late]
            self._definitions = (
                *(ToolDefinition(tool.name, _definition(tool, dialogue)) for tool in ahead),
                *(ToolDefinition(tool.name, _definition(tool, dialogue), deferred=True) for tool in behind),
                *(ToolDefinition(tool.name, _definition(tool, dialogue)) for tool in late),
            )
        return self._definitions, self._activated


def _definition(tool: Listed, dialogue: Dialogue) -> bytes:
    """The tool as the conversation has sent it before, whatever its prompt depends on has become since."""
    known = dialogue.definitions.get(tool.name)
    if known is None or known[0] != tool:
        if dialogue.view is None:
            dialogue.view = dialogue.catalog.pool.view(dialogue.context)
        known = dialogue.definitions[tool.name] = tool, definition_json(tool, dialogue.view)
    return known[1]


def request_for(setup: Setup, dialogue: Dialogue, tools: Tools) -> Request:
    """The next request. Nothing here grows with the history."""
    pool = dialogue.catalog.refresh()
    definitions, activated = tools.of(pool, dialogue)
    options = setup.options
    return Request(
        model=setup.model_name,
        history=dialogue.history,
        system=setup.system,
        tools=definitions,
        last_builtin=pool.own_count - 1,
        activated=activated,
        max_tokens=options.max_tokens,
        thinking=options.thinking,
        effort=options.effort,
        task_budget=options.task_budget,
        tool_choice=options.tool_choice,
        schema=setup.structured.schema if setup.structured else None,
        betas=options.betas,
        chain=dialogue.chain,
    )
