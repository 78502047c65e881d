"""The entries for clients that the docs give start a gateway."""

import json
import os
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import anyio
import pytest

from mcp import Client, StdioServerParameters

PAGE = Path(__file__).parents[2] / "docs" / "gateway.md"
FENCE = re.compile(r"^```(json|toml)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def entries() -> Iterator[list[str]]:
    """The command lines in all entries of the page."""
    for kind, text in FENCE.findall(PAGE.read_text("utf-8")):
        whole: dict[str, Any] = tomllib.loads(text) if kind == "toml" else json.loads(text)
        for servers in whole.values():
            entry = servers.get("rails")
            if entry is not None:
                command = entry["command"]
                yield [*command] if isinstance(command, list) else [command, *entry["args"]]


@pytest.mark.anyio
async def test_the_entries_for_all_clients_start_the_same_gateway(tmp_path: Path) -> None:
    found = list(entries())
    assert len(found) == 5
    assert all(each == found[0] for each in found)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "HANDRAIL_STATE_DIR": str(tmp_path / "state")}
    with anyio.fail_after(120):
        async with Client(
            StdioServerParameters(command=found[0][0], args=found[0][1:], env=env, cwd=tmp_path)
        ) as client:
            assert (await client.list_tools()).tools == []
