"""The main conversation in the part of an agent that people wrote down: `--agent NAME`."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from handrail.agents.definitions import NOT_FOR_SUBAGENTS, AgentDefinition
from handrail.errors import HandrailError
from handrail.loop.limits import Limits
from handrail.permissions.rules import Behaviour, RuleProblem, parse_rule
from handrail.session.subagents import ALIASES, find_agents
from handrail.session.tools import builtin_names
from handrail.session.work import Work
from handrail.tools.context import AgentIdentity
from handrail.tools.pool import NO_DEFERRAL

SERVER_TOOLS = "mcp__*"


def with_agent(
    work: Work, options: Mapping[str, Any], name: str, env: Mapping[str, str]
) -> tuple[Work, dict[str, Any]]:
    """
    The work and the options of a conversation that the agent of this name leads.

    It brings its prompt, model, tools and limits. What was asked for by flags goes before its prompt and its model;
    of tools, turns and modes the narrower counts.

    Raises:
        HandrailError: there is no such agent, or it cannot lead.
    """
    agents, problems = find_agents(work.cwd, env, work.agents, work.asked.instruction_sources)
    if name not in agents:
        wrong = "".join(f"\n{problem}" for problem in problems)
        raise HandrailError(f"--agent: there is no agent {name!r}. There are: {', '.join(sorted(agents))}.{wrong}")
    agent = agents[name]
    model = "" if agent.model in ALIASES else agent.model
    asked = replace(work.asked, disallowed=(*work.asked.disallowed, *denied_tools(agent)))
    led_work = replace(
        work,
        system=work.system or agent.prompt,  # programs give an empty one when they want none of their own
        wishes=replace(work.wishes, model=work.wishes.model or model),
        asked=asked,
    )
    limits: Limits = options.get("limits") or Limits()
    turns = [most for most in (limits.turns, agent.max_turns) if most is not None]
    made = {
        **options,
        "limits": replace(limits, turns=min(turns, default=None)),
        "identity": AgentIdentity(type=agent.name, mode=agent.mode),
    }
    if agent.tools is not None:
        made["builtin_tools"] = [
            tool for tool in options.get("builtin_tools", sorted(builtin_names())) if is_offered(agent, tool)
        ]
        made["deferral"] = NO_DEFERRAL  # whoever names the tools wants them in full
    return led_work, made


def is_offered(agent: AgentDefinition, tool: str) -> bool:
    """Whether the list of an agent names a tool; one that leads may have those that sub-agents may not."""
    named = {each.partition("(")[0].strip() for each in agent.tools or ()}
    return agent.may_use(tool) or (tool in NOT_FOR_SUBAGENTS and bool(named & {tool, "*"}))


def denied_tools(agent: AgentDefinition) -> tuple[str, ...]:
    """
    Rules that take away what an agent must not have. As for sub-agents, a rule with brackets takes the whole tool.

    Raises:
        HandrailError: it forbids what is not understood, or wants only some tools of servers, which rules cannot say.
    """
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
