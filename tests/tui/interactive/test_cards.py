"""The cards of calls as people see them."""

from pathlib import Path

import pytest
from tests.cli.test_run import variables
from tests.interactive import Conversing

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply

pytestmark = pytest.mark.anyio


async def test_a_result_too_large_names_its_file_and_errors_have_no_frame(tmp_path: Path) -> None:
    folder = tmp_path / "project"
    folder.mkdir()
    calls = (ToolUse("t1", "Bash", {"command": "seq 1 100000"}), ToolUse("t2", "Unheard", {}))
    async with (
        ModelServer([Reply(calls), Reply((Text("Counted."),))], strict=True) as server,
        Conversing(folder, variables(server, folder), "Count them.", columns=200) as terminal,
    ):
        await terminal.until("Counted.")
        shown = terminal.whole

    line = next(line for line in shown.split("\n") if "(all of it is in " in line)
    file = Path(line.partition("(all of it is in ")[2].rstrip(")"))
    assert file.read_text().endswith("99999\n100000\n")
    assert "    There is no tool 'Unheard'." in shown
    assert "tool_use_error" not in shown
