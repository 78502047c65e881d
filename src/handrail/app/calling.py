"""One governed call, without a model."""

from collections.abc import Mapping
from pathlib import Path

from handrail.app.gate import FolderGate
from handrail.app.live import Live
from handrail.app.state import result_store
from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import Rails
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome


async def call_once(
    catalog: Catalog, name: str, raw: Json, cwd: Path, variables: Mapping[str, str], *, live: Live | None = None
) -> Outcome:
    """Run one call through the same executor and the same rails as a model's; `live` are the settings that count."""
    store = result_store(variables)
    rails = Rails(FolderGate(cwd, variables, in_force=live.in_force if live else None))
    async with ToolExecutor(catalog.pool, RunContext(cwd), store, rails=rails, activate=catalog.activate) as executor:
        executor.add(ToolUse("call-1", name, raw))
        return await anext(executor.rest())
