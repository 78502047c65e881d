"""Protected names in the sandbox: what runs later without being called is neither changed nor planted there."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from handrail.processes.sandbox.choose import Method
from handrail.tools.outcome import Status
from tests.session.test_sandbox import World, confined_by

pytestmark = [pytest.mark.anyio, pytest.mark.needs("bwrap")]


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path)
    yield made
    for sandbox in made.closing:
        sandbox.close()


@pytest.mark.proves("X21")
@pytest.mark.parametrize("method", [Method.BUBBLEWRAP, Method.LANDLOCK])
async def test_files_of_agents_editors_and_builds_stay_as_they_are(
    method: Method, world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    confined_by(method, monkeypatch)
    world.begin({"enabled": True})
    present = [world.project / name for name in ("mise.toml", "a.code-workspace", ".bazelrc", ".zed/tasks.json")]
    for path in present:
        path.parent.mkdir(exist_ok=True)
        path.write_text("mine")
    names = [*map(str, present), ".cursor/mcp.json", ".codex/config.toml", ".github/workflows/ci.yml", ".hg/hgrc"]
    script = "".join(f"mkdir -p $(dirname {name}); echo planted > {name}; mv {name} x; rm {name}\n" for name in names)

    outcome = await world.bash(world.script(script))

    assert (outcome.status, world.questions) == (Status.ERROR, [])
    assert [path.read_text() for path in present] == ["mine"] * len(present)
    assert not [path for path in world.project.rglob("*") if path.is_file() and path.read_text() == "planted\n"]
