"""Opens the conversation of a sub-agent: its model, its tools, its limits, and what it is told at the start."""

from collections.abc import Callable
from dataclasses import replace
from functools import partial

from handrail.agents.definitions import partial_tools
from handrail.conversation.request import Chain
from handrail.loop.run_config import RequestOptions
from handrail.permissions.modes import narrower
from handrail.session.agents.run import least_limits, read_effort
from handrail.session.agents.state import AgentHost, Subagent
from handrail.session.conversation import Conversation
from handrail.session.models.choose import model_by_object
from handrail.session.models.options import named_model
from handrail.session.parts import ConversationSpec, SharedParts, open_conversation
from handrail.tools.context import AgentIdentity, AgentType, McpResource
from handrail.tools.delegation import Delegate
from handrail.tools.mcp_names import RESOURCE_TOOLS
from handrail.tools.pool import NO_DEFERRAL

TEAM_TOOLS = frozenset(("SendMessage", "ListAgents", "TaskCreate", "TaskGet", "TaskList", "TaskUpdate"))
"""What every member of a team has, whatever tools its definition names."""


def open_agent(
    agent: Subagent,
    parts: SharedParts,
    host: AgentHost,
    *,
    delegate: Delegate,
    types: Callable[[], tuple[AgentType, ...]],
) -> Conversation:
    """The conversation of a sub-agent, with what it knows; `delegate` runs agents of its own, of these types."""
    definition, entry, equipment = agent.definition, agent.record, agent.equipment
    chosen, loaded = parts.model.chosen, parts.settings.loaded
    by_variable = loaded.env.get("CLAUDE_CODE_SUBAGENT_MODEL", "")
    usual = (by_variable, definition.model) if definition.origin == "built-in" else (definition.model, by_variable)
    wanted = next(filter(None, (entry.model, *usual)), "")
    name = named_model(wanted, chosen.name, loaded)
    services = host.services
    may_delegate = entry.depth < host.settings().depth
    offered = frozenset(tool for tool in agent.offered if may_have(agent, tool) and (may_delegate or tool != "Agent"))
    identity = AgentIdentity(
        entry.id,
        entry.kind,
        narrower(agent.caller.mode, definition.mode),
        str(agent.transcript.path) if agent.transcript else "",
        agent.path,
        agent.background,
        entry.name,
        entry.team,
        (*agent.caller.tools, *partial_tools(equipment.tools if equipment else definition.tools)),
        equipment.notes if equipment else "",
    )
    own_tools = equipment.server_tools if equipment else ()
    replaced = RESOURCE_TOOLS.intersection(tool.name for tool in own_tools)
    offered |= {tool.name for tool in own_tools if may_have(agent, tool.name)}
    spec = ConversationSpec(
        cwd=agent.cwd,
        model=chosen if name == chosen.name else model_by_object(chosen.model, name),
        system=(definition.prompt, *(equipment.system if equipment else ())),
        services=lambda: replace(services(), delegate=delegate),
        options=replace(
            agent.options, agents=types if may_delegate else tuple, mcp_resources=partial(visible_resources, agent)
        ),
        chain=Chain(host.chain.id, host.chain.depth + entry.depth),
        denied=lambda tool, _mcp: tool not in offered,
        # tools that a definition names are wanted in full
        deferral=host.deferral if definition.tools is None else NO_DEFERRAL,
        identity=identity,
        request=RequestOptions(effort=read_effort(entry.effort or definition.effort)),
        context=host.context(agent.cwd) if host.context else None,
        transcript=agent.transcript,
        history=agent.history,
        mcp_tools=(*(tool for tool in host.mcp_tools() if tool.name not in replaced), *own_tools),
        files=agent.files,
    )
    return open_conversation(
        parts,
        spec,
        least_limits(host.settings().limits, definition.max_turns, agent.budget, timed=not agent.background),
    )


def visible_resources(agent: Subagent) -> dict[str, tuple[McpResource, ...]]:
    """What servers offer an agent to read: what its caller sees and what it brings along, within its own limits."""
    own = agent.equipment.resources() if agent.equipment else {}
    offered = {**own, **agent.options.mcp_resources()}
    return {server: each for server, each in offered.items() if not agent.definition.hides_server(server)}


def may_have(agent: Subagent, tool: str) -> bool:
    """Whether an agent gets a tool; members of a team always get those to talk, unless these are taken away."""
    is_for_team = bool(agent.record.team) and tool in TEAM_TOOLS
    definition = replace(agent.definition, tools=None) if is_for_team else agent.definition
    return definition.may_use(tool, gives=agent.equipment is not None and agent.equipment.gives(tool))
