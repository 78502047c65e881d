"""The files of the working folder, for completion."""

import os
from collections.abc import Sequence
from pathlib import Path

from handrail.builtin.support.ripgrep import packaged_rg
from handrail.processes.run import run

MAX_BYTES = 30_000_000
SECONDS = 30


async def project_files() -> Sequence[str]:
    """All files that git does not ignore, relative to the working folder; none without ripgrep."""
    program = os.environ.get("HANDRAIL_RG") or packaged_rg()
    if not program:
        return ()
    folder = str(Path.cwd())
    argv = [program, "--no-config", "--files", "--hidden", "--glob", "!.git", "--color", "never"]
    try:
        ended = await run(argv, cwd=folder, env=os.environ, timeout=SECONDS, max_bytes=MAX_BYTES)
    except OSError:
        return ()
    return ended.stdout.decode("utf-8", "surrogateescape").splitlines()
