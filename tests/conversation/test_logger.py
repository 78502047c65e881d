"""What handrail logs holds no secret."""

import logging

import pytest

from handrail import Agent, tool
from handrail.conversation.logger import get_logger
from handrail.testing import ScriptedModel, say, use

KEY = "sk-ant-api03-" + "a1B2c3D4" * 12
OF_ENVIRONMENT = "correct-horse-battery"


@pytest.mark.anyio
@pytest.mark.proves("R10")
@pytest.mark.parametrize("secret", [KEY, OF_ENVIRONMENT], ids=["of a known shape", "of the environment"])
async def test_the_traceback_of_a_tool_that_fails_holds_no_secret(
    secret: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SHOP_TOKEN", OF_ENVIRONMENT)

    @tool(read_only=True)
    async def fetch() -> str:
        """Fetch the prices."""
        raise RuntimeError(f"401: {secret} was refused")

    async with Agent(ScriptedModel([[use("1", "fetch")], [say("It failed.")]]), tools=[fetch], env={}) as agent:
        await agent.ask("Fetch.")

    formatter = logging.Formatter()
    logged = "\n".join(map(formatter.format, caplog.records))
    assert "RuntimeError: 401: [redacted:" in logged
    assert secret not in logged + repr([vars(record) for record in caplog.records])


@pytest.mark.proves("R10")
def test_neither_does_a_message_nor_its_arguments(caplog: pytest.LogCaptureFixture) -> None:
    get_logger("handrail.test").warning("refused: %s", {"key": KEY})

    [record] = caplog.records
    assert record.getMessage().startswith("refused: {'key': '[redacted:")
    assert KEY not in repr(vars(record))


def test_a_value_without_a_text_does_not_make_logging_fail(caplog: pytest.LogCaptureFixture) -> None:
    class Broken:
        def __repr__(self) -> str:
            raise ValueError("no text")

    get_logger("handrail.test").warning("%s raised", Broken())

    assert [record.getMessage() for record in caplog.records] == ["%s raised (ValueError: its values cannot be shown)"]
