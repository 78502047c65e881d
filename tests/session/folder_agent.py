"""Opens an agent in a folder with the whole session of the command line around it: settings, memory, sub-agents."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from handrail import Agent
from handrail.config.flags import NO_FLAGS_GIVEN, SettingsFlags
from handrail.providers.choose import ModelOptions
from handrail.session.spec import NO_HOST, PromptOptions, SessionHost, SessionSpec, ToolOptions
from handrail.tools.pool import AnyTool


def open_agent(
    folder: Path,
    env: Mapping[str, str],
    model: ModelOptions | None = None,
    *,
    system: str | None = None,
    flags: SettingsFlags = NO_FLAGS_GIVEN,
    tools: Sequence[AnyTool] = (),
    agents: Mapping[str, Any] | None = None,
    servers: Mapping[str, Any] | None = None,
    host: SessionHost = NO_HOST,
    **spec: Any,
) -> Agent[Any]:
    options = ToolOptions(custom=tuple(tools), agents=agents or {}, mcp_servers=servers or {})
    wanted = SessionSpec(
        folder, model or ModelOptions(), prompt=PromptOptions(system), tools=options, flags=flags, **spec
    )
    return Agent.from_spec(wanted, env, host)
