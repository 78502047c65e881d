"""What was too big for the conversation is on disk, and Read can show every part of it."""

import re
from pathlib import Path

import pytest

from handrail.builtin.read.tool import Read
from handrail.builtin.services import ToolServices
from handrail.conversation.blocks import Text
from handrail.dispatch.results import ResultStore
from handrail.tools.context import ToolContext

BIG = "".join(f"line {n} \x1b[31m ☃\n" for n in range(1, 20_001))


@pytest.mark.proves("I7")
def test_a_stored_result_is_read_in_parts(ctx: ToolContext, services: ToolServices, tmp_path: Path) -> None:
    [block] = ResultStore(tmp_path / "results").fit("call-1", (Text(BIG),), 5_000)
    assert isinstance(block, Text)
    found = re.search(r"The whole text is in (.*)\. Use Read with offset and limit", block.text)
    assert found

    tool = Read(services)
    args = tool.parse({"file_path": found[1], "offset": 12_345, "limit": 2})
    [shown] = tool.result_blocks(tool.call_blocking(args, ctx))

    assert isinstance(shown, Text)
    first, second = shown.text.split("\n")
    assert first.startswith("12345\tline 12345 \x1b[31m ☃")
    assert second.startswith("12346\tline 12346")
    whole = tool.call_blocking(tool.parse({"file_path": found[1]}), ctx).text
    assert whole.startswith("PARTIAL: lines 1 to ")
