"""The rules of a folder count in the folders below it too, which a client may name as the place of its run."""

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest

from handrail.conversation.blocks import Text, ToolUse
from handrail.testing.model_server import ModelServer, Reply
from tests.remote.serving import ANN, all_lines, served, start, write_config

pytestmark = pytest.mark.anyio

CLOSED = {"permissionMode": "dontAsk", "questions": False, "settingSources": []}
GUARD = {"type": "command", "command": "exit 2", "if": "Read(secret/**)"}
RULES: dict[str, dict[str, Any]] = {
    "plain": {**CLOSED, "deny": ["Read(secret/**)"]},
    "dot": {**CLOSED, "deny": ["Read(./secret/**)"]},
    "slash": {**CLOSED, "deny": ["Read(/secret/**)"]},
    "settings": {**CLOSED, "settings": {"permissions": {"deny": ["Read(secret/**)"]}}},
    "settings-slash": {**CLOSED, "settings": {"permissions": {"deny": ["Read(/secret/**)"]}}},
    "hook": {**CLOSED, "settings": {"hooks": {"PreToolUse": [{"hooks": [GUARD]}]}}},
    "project": {**CLOSED, "settingSources": ["project"]},
}
PATHS = ("", "secret", "secret/repository")


async def test_the_path_of_a_run_does_not_move_what_is_denied(tmp_path: Path) -> None:
    shop = tmp_path / "shop"
    (shop / "secret" / "repository" / ".git").mkdir(parents=True)
    (shop / "secret" / "repository" / "plan.txt").write_text("the plan")
    (shop / ".handrail").mkdir()
    (shop / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["Read(secret/**)"]}}')
    config = write_config(
        tmp_path,
        folders={"shop": {"path": str(shop), "policies": ["open", *RULES]}},
        policies={"open": CLOSED, **RULES},
        clients={"ann": ANN},
    )
    cases = [(policy, path) for policy in ("open", *RULES) for path in PATHS]
    look = ToolUse("c1", "Read", {"file_path": str(shop / "secret" / "repository" / "plan.txt")})
    replies = [Reply((block,)) for _ in cases for block in (look, Text("Done."))]
    read = []
    async with (
        asyncio.timeout(90),
        ModelServer(replies) as model,
        served(model, tmp_path, config) as server,
        server.client() as ann,
    ):
        for policy, path in cases:
            run = await start(ann, "Read it.", path=path, policy=policy)
            if "the plan" in json.dumps(await all_lines(ann, run["id"])):
                read.append((policy, path))

    assert read == [("open", path) for path in PATHS]
