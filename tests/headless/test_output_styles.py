"""Output styles through a session: chosen by exact name, told as a reminder, changed without moving the prefix."""

import json
from pathlib import Path

import pytest

from handrail.extensions.output_styles import BUILT_IN
from handrail.headless.engine import EngineOptions
from tests.headless.in_process import peer
from tests.headless.test_skills import DONE, said

pytestmark = pytest.mark.anyio


def choose(tmp_path: Path, name: str) -> None:
    file = tmp_path / "home/.handrail/settings.json"
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(json.dumps({"outputStyle": name}))


def style(folder: Path, file: str, head: str, body: str) -> None:
    path = folder / "output-styles" / file
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"---\n{head}\n---\n{body}")


async def test_a_style_is_a_reminder_and_another_one_counts_from_the_next_prompt_on(tmp_path: Path) -> None:
    style(tmp_path / "home/.claude", "p.md", "name: Pirate\nkeep-coding-instructions: true", "Talk like a pirate.")
    choose(tmp_path, "Concise")
    async with peer(tmp_path, [DONE] * 4, options=EngineOptions()) as p:
        lines = await p.turn("One.")
        assert lines[0]["output_style"] == "Concise"
        assert said(p, 0).count(BUILT_IN[2].body) == 1

        await p.turn("Two.")
        assert said(p, 1).count(BUILT_IN[2].body) == 1
        choose(tmp_path, "Pirate")
        await p.turn("Three.")
        assert "Talk like a pirate." in said(p, 2)
        choose(tmp_path, "default")
        await p.turn("Four.")
        assert "no output style any more" in said(p, 3)
        bodies = [request.body for request in p.server.requests]
        assert all(body["system"] == bodies[0]["system"] and body["tools"] == bodies[0]["tools"] for body in bodies)


@pytest.mark.parametrize("name", ["concise", "Pirates", "plain"])
async def test_case_counts_and_an_unknown_style_changes_nothing_but_is_named(tmp_path: Path, name: str) -> None:
    style(tmp_path / "home/.claude", "plain.md", "name: Plain", "Be plain.")
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn("One.")
        usual = p.server.requests[0].body["system"]
    choose(tmp_path, name)
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        lines = await p.turn("One.")
        assert lines[0]["output_style"] == name
        assert "output style" not in said(p, 0)
        assert p.server.requests[0].body["system"] == usual


async def test_a_style_of_ones_own_leaves_out_how_to_work_on_software_unless_it_keeps_that(tmp_path: Path) -> None:
    style(tmp_path / "work" / ".claude", "plain.md", "description: d", "Be plain.")
    choose(tmp_path, "plain")
    async with peer(tmp_path, [DONE], options=EngineOptions()) as p:
        await p.turn("One.")
        assert "Be plain." in said(p, 0)
        assert "# How to work" not in json.dumps(p.server.requests[0].body["system"])
