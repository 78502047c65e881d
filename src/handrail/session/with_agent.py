"""The main conversation in the part of an agent that people wrote down: `--agent NAME`."""

from collections.abc import Mapping
from dataclasses import replace

from handrail.agents.definitions import NOT_FOR_SUBAGENTS, AgentDefinition
from handrail.errors import HandrailError
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.providers.model_aliases import is_relative
from handrail.session.agent_definitions import find_agents
from handrail.session.spec import SessionSpec
from handrail.session.tools import builtin_names
from handrail.tools.context import AgentIdentity
from handrail.tools.pool import NO_DEFERRAL

SERVER_TOOLS = "mcp__*"


def with_named_agent(spec: SessionSpec, env: Mapping[str, str]) -> tuple[SessionSpec, str]:
    """
    The specification as the agent that it names changes it; HandrailError if there is none, or it cannot lead.

    Beside it, the agent's short name for a model: what that stands for is known when the settings are.
    """
    agents, problems = find_agents(spec.cwd, env, spec.tools.agents, spec.flags.instruction_sources)
    if spec.agent not in agents:
        wrong = "".join(f"\n{problem}" for problem in problems)
        known = ", ".join(sorted(agents))
        raise HandrailError(f"--agent: there is no agent {spec.agent!r}. There are: {known}.{wrong}")
    agent = agents[spec.agent]
    family = agent.model if is_relative(agent.model) and not spec.model.model else ""
    return with_agent(spec, agent), family


def with_agent(spec: SessionSpec, agent: AgentDefinition) -> SessionSpec:
    """The agent leads: flags go before its prompt and model; of tools, turns and modes the narrower counts."""
    turns = [most for most in (spec.limits.turns, agent.max_turns) if most is not None]
    tools = spec.tools
    if agent.tools is not None:
        names = sorted(builtin_names()) if tools.builtin is None else tools.builtin
        offered = tuple(name for name in names if is_offered(agent, name))
        tools = replace(tools, builtin=offered, deferral=NO_DEFERRAL)  # named tools are wanted in full
    return replace(
        spec,
        # programs give an empty prompt when they want none of their own
        prompt=replace(spec.prompt, system=spec.prompt.system or agent.prompt),
        model=replace(spec.model, model=spec.model.model or ("" if is_relative(agent.model) else agent.model)),
        flags=replace(spec.flags, disallowed=(*spec.flags.disallowed, *denied_tools(agent))),
        limits=replace(spec.limits, turns=min(turns, default=None)),
        identity=AgentIdentity(type=agent.name, mode=agent.mode),
        tools=tools,
    )


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
    wanted = {each.partition("(")[0].strip() for each in agent.tools or ()}
    if agent.tools is None or wanted & {"*", SERVER_TOOLS}:
        return refused
    if some := sorted(each for each in wanted if each.startswith("mcp__")):
        raise HandrailError(
            f"--agent: {agent.name!r} wants {some[0]!r} and no other tools of servers, and that cannot be kept yet. "
            f"Write {SERVER_TOOLS} among its tools for all of them, or leave them out for none."
        )
    return (*refused, SERVER_TOOLS)
