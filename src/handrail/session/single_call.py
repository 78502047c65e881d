"""One governed call, without a model."""

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING

from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.session.gate import FolderGate
from handrail.session.session_settings import SessionSettings
from handrail.session.state_folder import result_store
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome

if TYPE_CHECKING:
    from handrail.hooks.runner import Hooks


async def call_once(
    catalog: Catalog,
    name: str,
    raw: Json,
    cwd: Path,
    variables: Mapping[str, str],
    *,
    live: SessionSettings | None = None,
    told: Callable[[str], None] = lambda _note: None,
) -> Outcome:
    """
    Run one call through the same executor, rails and hooks as a model's.

    `live` are the settings that count; `told` hears what does not work of their hooks.
    """
    store = result_store(variables)
    rails = Rails(FolderGate(cwd, variables, in_force=live.in_force if live else None))
    hooks = _hooks(live, cwd, variables, store.folder.name, told) if live and live.loaded.hooks else None
    if hooks is not None:
        rails = import_module("handrail.session.hooks").hooked(rails, hooks, variables)
    try:
        run = RunContext(cwd)
        async with ToolExecutor(catalog.pool, run, store, rails=rails, activate=catalog.activate) as executor:
            executor.add(ToolUse("call-1", name, raw))
            return await anext(executor.rest())
    finally:
        if hooks is not None:
            await hooks.aclose()


def _hooks(
    live: SessionSettings, cwd: Path, variables: Mapping[str, str], run: str, told: Callable[[str], None]
) -> "Hooks":
    made: Hooks = import_module("handrail.session.hooks").session_hooks(
        live.loaded, variables, cwd, {}, session_id=run, transcript=""
    )
    for problem in made.problems:
        told(str(problem))
    return made
