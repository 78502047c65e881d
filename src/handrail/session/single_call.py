"""
One governed call, without a model: the same executor, rails and hooks as for a model's call.

Tools that change a file only change what was read. There is no conversation in which that could have happened, so the
file is read first, by a call of Read that is governed in the same way.
"""

import os
from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

from handrail import __version__
from handrail.config.execution import result_limits, run_features, search_choice
from handrail.config.flags import SettingsFlags
from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.call_hooks import CallHooks
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.file_tracking import file_to_read
from handrail.dispatch.gate import Rails
from handrail.lazy import lazy
from handrail.records import record
from handrail.session.background import end_tasks
from handrail.session.gate import open_gate
from handrail.session.hooks import follow_settings, open_hooks
from handrail.session.language_servers import SessionLanguageServers
from handrail.session.redactor import redactor_for
from handrail.session.services import tool_services
from handrail.session.settings.session_settings import open_settings
from handrail.session.state_folder import result_store, state_folder
from handrail.session.tools import LSP_TOOL, make_catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.conversation.redact import Redactor
    from handrail.session.web import search
    from handrail.telemetry import setup as telemetry_setup
    from handrail.telemetry.observer import SessionTelemetry
else:
    search = lazy("handrail.session.web.search")
    telemetry_setup = lazy("handrail.telemetry.setup")


@record
class SingleCall:
    """How a call ended. `read` is the call of Read before it, if there was one; if that failed, it was the only one."""

    outcome: Outcome
    read: Outcome | None = None


async def call_tool(
    name: str,
    raw: Json,
    cwd: Path,
    *,
    env: Mapping[str, str] | None = None,
    flags: SettingsFlags,
    on_warning: Callable[[str], None],
) -> SingleCall:
    """Run one call under the settings of a folder; SettingsError if policy or flags cannot be used."""
    start_env = os.environ if env is None else env
    settings = open_settings(cwd, start_env, state_folder(start_env), flags, on_warning)
    variables = settings.loaded.env
    language_servers = SessionLanguageServers(
        settings,
        lambda: services(),  # noqa: PLW0108  # it is made below
        dict,
        on_warning,
    )
    choice = search_choice(settings.loaded.settings, variables, by_provider=False)
    backend = search.open_search(choice, variables, None) if choice else None
    services = cache(lambda: replace(tool_services(settings), language_servers=language_servers, search=backend))
    features = run_features(settings.loaded.settings, variables, choice) - {"agents"}  # there is no model to run them
    catalog = make_catalog(
        variables=variables,
        denied=settings.denies_tool,
        services=services,
        features=features,
        offers={LSP_TOOL: language_servers.is_available},
    )
    results = result_store(variables, result_limits(settings.loaded.settings, variables))
    hooks = open_hooks(settings.loaded, cwd, session_id=results.folder.name)
    follow_settings(hooks, settings, on_warning)
    redactor = redactor_for(variables)
    telemetry = open_call_telemetry(start_env, redactor, on_warning, results.folder.name)
    rails = Rails(open_gate(settings, redactor=redactor), CallHooks(hooks), observer=telemetry)
    try:
        run = RunContext(cwd, undo=lambda: services().undo)
        async with ToolExecutor(catalog.pool, run, results, rails=rails, activate=catalog.activate) as executor:
            read: Outcome | None = None
            if path := file_to_read(catalog.pool.find(name), raw, cwd, services().home):
                executor.add(ToolUse("call-0", "Read", {"file_path": path}))
                read = await anext(executor.rest())
                if read.result.is_error:
                    return SingleCall(read, read)
            executor.add(ToolUse("call-1", name, raw))
            return SingleCall(await anext(executor.rest()), read)
    finally:
        await hooks.aclose()
        rails.close()
        await language_servers.aclose()
        await end_tasks(services)
        if telemetry is not None:
            await telemetry.aclose()


def open_call_telemetry(
    env: Mapping[str, str], redactor: "Redactor", on_warning: Callable[[str], None], session_id: str
) -> "SessionTelemetry | None":
    """What sends a span of the call, if the variables of the process ask for it."""
    if not any(name.startswith("OTEL_") for name in env):
        return None
    return telemetry_setup.open_telemetry(
        env, redactor, on_warning, version=__version__, session_id=session_id, provider=""
    )
