"""What tests start in place of a new process behaves like one."""

import asyncio
import os
import subprocess
import sys
from pathlib import Path

import pytest
from tests.cli.test_run import started, variables
from tests.forked import program

from handrail.conversation.blocks import Text
from handrail.testing.model_server import ModelServer, Reply


@pytest.mark.parametrize(
    ("arguments", "stdin"),
    [
        (["call", "Read", "-"], '{"file_path": "ä.txt"}'),
        (["config", "get", "model"], ""),
        (["call", "Read"], ""),
    ],
)
def test_a_fork_does_what_a_new_process_does(tmp_path: Path, arguments: list[str], stdin: str) -> None:
    (tmp_path / "ä.txt").write_text("größer\n")
    (tmp_path / ".handrail").mkdir()
    (tmp_path / ".handrail" / "settings.json").write_text('{"model": "m"}')
    env = {**os.environ, "HOME": str(tmp_path), "HANDRAIL_STATE_DIR": str(tmp_path / "state")}

    def ran(*command: str | Path) -> tuple[int, str, str]:
        done = subprocess.run(
            [*command, *arguments], cwd=tmp_path, env=env, input=stdin, capture_output=True, text=True, check=False
        )
        return done.returncode, done.stdout, done.stderr

    assert ran(program()) == ran(sys.executable, "-m", "handrail")


@pytest.mark.anyio
async def test_a_fork_ends_with_the_process_that_stands_for_it(tmp_path: Path) -> None:
    async with ModelServer([Reply((Text("never"),), stall_after=1)]) as server:
        process = await started(tmp_path, variables(server, tmp_path), "-p", "hi")
        assert process.stdin is not None
        process.stdin.close()
        await asyncio.wait_for(server.stalled.wait(), 30)

        process.kill()

        await asyncio.wait_for(process.communicate(), 30)  # only the fork still holds the other end of the pipes
