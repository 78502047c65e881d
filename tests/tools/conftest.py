import pytest
from hypothesis import settings

from handrail.conversation.blocks import ToolUse
from handrail.tools.abort import AbortSignal
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.permission import Decision, Verdict

settings.register_profile("handrail", deadline=None)  # a busy machine is no bug
settings.load_profile("handrail")


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture
def run(tmp_path_factory: pytest.TempPathFactory) -> RunContext:
    return RunContext(cwd=tmp_path_factory.mktemp("cwd"))


@pytest.fixture
def ctx(run: RunContext) -> ToolContext:
    async def refuse(use: ToolUse, run: RunContext) -> Decision:
        return Decision(Verdict.DENY, f"{use.name} may not be used by a test")

    return ToolContext(run, ToolUse("call-1", "Any", {}), AbortSignal(), lambda progress: None, refuse)
