"""Runs the main conversation as a defined agent: `--agent NAME`."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from handrail.agents.definitions import NOT_FOR_SUBAGENTS, AgentDefinition, partial_tools
from handrail.agents.notes import notes_prompt, notes_tools
from handrail.errors import HandrailError
from handrail.extensions.places import ConfigFolder
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.providers.model_aliases import is_relative
from handrail.session.agents.definitions import session_agents
from handrail.session.agents.equipment import AgentEquipment, EquipmentDoors, add_hooks, notes_of
from handrail.session.settings.session_settings import SessionSettings
from handrail.session.spec import SessionSpec
from handrail.session.tools import builtin_names
from handrail.tools.context import AgentIdentity
from handrail.tools.pool import NO_DEFERRAL
from handrail.tools.tool import McpInfo


def with_named_agent(
    name: str, spec: SessionSpec, env: Mapping[str, str], settings: SessionSettings, plugins: Sequence[ConfigFolder]
) -> tuple[SessionSpec, str]:
    """
    The specification as the agent of this name changes it; HandrailError if there is none, or it cannot lead.

    Beside it, the agent's short name for a model: what that stands for is known when the model is chosen.
    """
    agents, problems = session_agents(spec.cwd, env, spec.tools.agents, settings, plugins)
    if name not in agents:
        wrong = "".join(f"\n{problem}" for problem in problems)
        known = ", ".join(sorted(agents))
        raise HandrailError(f"--agent: there is no agent {name!r}. Known: {known}.{wrong}")
    agent = agents[name]
    family = agent.model if is_relative(agent.model) and not spec.model.model else ""
    notes = notes_of(agent, settings) if agent.memory else None
    return with_agent(spec, agent, notes), family


def with_agent(spec: SessionSpec, agent: AgentDefinition, notes: tuple[Path, str] | None = None) -> SessionSpec:
    """The agent leads: flags go before its prompt and model; of tools, turns and modes the narrower counts."""
    turns = [most for most in (spec.limits.turns, agent.max_turns) if most is not None]
    tools, listed, folder = spec.tools, agent.tools, ""
    append = [spec.prompt.append] if spec.prompt.append else []
    if notes is not None:
        folder = str(notes[0])
        append.append(notes_prompt(*notes))
        if listed is not None:
            listed = (*listed, *(each for each in notes_tools(notes[0]) if not _is_named(each, listed)))
    if listed is not None:
        given = replace(agent, tools=listed)
        names = sorted(builtin_names()) if tools.builtin is None else tools.builtin
        offered = tuple(name for name in names if is_offered(given, name))
        tools = replace(tools, builtin=offered, deferral=NO_DEFERRAL)  # named tools are wanted in full
    own = {name: entry for name, entry in agent.servers.items() if entry is not None}
    return replace(
        spec,
        # programs give an empty prompt when they want none of their own
        prompt=replace(
            spec.prompt,
            system=spec.prompt.system or agent.prompt,
            append="\n\n".join(append),
            first=agent.initial_prompt,
        ),
        model=replace(spec.model, model=spec.model.model or ("" if is_relative(agent.model) else agent.model)),
        flags=replace(spec.flags, disallowed=(*spec.flags.disallowed, *denied_tools(agent))),
        limits=replace(spec.limits, turns=min(turns, default=None)),
        identity=AgentIdentity(type=agent.name, mode=agent.mode, tools=partial_tools(listed), notes=folder),
        tools=replace(tools, mcp_servers={**own, **tools.mcp_servers}),
        lead=agent,
    )


def lead_equipment(agent: AgentDefinition, doors: EquipmentDoors) -> AgentEquipment:
    """The hooks and skills of an agent that leads; they hold for the session."""
    if agent.hooks:
        add_hooks(agent, "main", doors)
    return AgentEquipment(doors, agent)


def leaves_out(agent: AgentDefinition, tool: str, mcp: McpInfo | None) -> bool:
    """Whether an agent that leads has a list of tools, and it gives no such tool of a server."""
    if mcp is None or agent.tools is None:
        return False
    return not agent.may_use(tool, gives=mcp.server in agent.servers)


def _is_named(form: str, tools: tuple[str, ...]) -> bool:
    return form.partition("(")[0] in {each.partition("(")[0].strip() for each in tools}


def is_offered(agent: AgentDefinition, tool: str) -> bool:
    """Whether the list of an agent names a tool; one that leads may have those that sub-agents may not."""
    named = {each.partition("(")[0].strip() for each in agent.tools or ()}
    return agent.may_use(tool) or (tool in NOT_FOR_SUBAGENTS and bool(named & {tool, "*"}))


def denied_tools(agent: AgentDefinition) -> tuple[str, ...]:
    """Rules that take away what an agent must not have; as for sub-agents, one with brackets takes the whole tool."""
    refused = tuple(each.partition("(")[0].strip() for each in agent.disallowed)
    for each in refused:
        if isinstance(found := parse_rule(each, Behaviour.DENY), RuleProblem):  # a limit would be lost
            raise HandrailError(f"--agent: {agent.name!r} forbids {each!r}: {found.message}.")
    return refused
