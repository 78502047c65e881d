"""Names that run or decide something later: one table with sources, read by rules, questions and the sandbox alike."""

import json
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.cli.main import run
from handrail.permissions.paths import protected_name
from handrail.permissions.protected_names import TABLE, Reach, names_of
from handrail.session.settings.confinement import protected_names
from tests.permissions.world import World

IN_PROJECTS = names_of(Reach.PROJECT, Reach.IF_THERE, Reach.BY_NAME, Reach.STARTUP)
OF_THE_ISSUE = (
    ".cursor/mcp.json", ".gemini/settings.json", ".codex/config.toml", ".qwen/settings.json", ".kiro/hooks/a.kiro.hook",
    ".roo/mcp.json", ".amazonq/mcp.json", ".opencode/plugin/a.ts", ".zed/tasks.json", ".devcontainer.json",
    ".devcontainer/a/devcontainer.json", "team.code-workspace", "mise.toml", ".mise.toml", "mise.local.toml",
    ".config/mise/config.toml", "lefthook.yml", "lefthook-local.yml", ".hg/hgrc", ".pnpmfile.cjs", ".bazelrc",
    ".github/workflows/ci.yml", ".github/actions/a/action.yml", ".exrc", ".nvim.lua", ".dir-locals.el",
    ".venv/bin/gzip", "venv/bin/python", "node_modules/.bin/eslint", ".windsurf/hooks.json", ".clinerules/hooks/a",
    "lib/site-packages/x.pth", ".yarnrc.local", ".crushrc", "crushrc", ".kilo/kilo.json", "kilo.jsonc",
    ".agent/mcp_config.json", "mise/config.toml", "_agents/hooks.json", ".config/lefthook.yml", "lefthook.jsonc",
    "simple-git-hooks.json", ".jj/repo/config-id",
    ".jj/workspace-config.toml", "devenv.yaml", ".gvimrc", ".githooks/pre-commit",
    ".openhands/setup.sh", ".vibe/config.toml",
    ".pdbrc", ".iex.exs", "rust-toolchain.toml", ".flox/env/manifest.toml", ".bsp/sbt.json", "env/bin/python",
    "captainhook.json", ".shadowenv.d/a.lisp", ".ghci", ".replit",
)  # fmt: skip


@pytest.mark.proves("X21")
@pytest.mark.parametrize("name", OF_THE_ISSUE)
def test_what_agents_editors_and_builds_run_is_asked_about(name: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits", rules={"allow": ["Edit(**)", "Write"]})

    assert world.says("Write", {"file_path": name}) == "ask"
    assert world.says("Write", {"file_path": f"packages/a/{name}"}) == "ask"
    assert world.bash(f"cp a.txt {name}") == "ask"
    assert world.bash(f"echo x > sub/{name}") == "ask"


@pytest.mark.parametrize(
    "name",
    [
        ".github/CODEOWNERS", "workflows/ci.yml", "cursor/a.py", "bin/tool", "src/venv.py", "code-workspace.md",
        "hg/hgrc", "docs/mise.md", "lefthook.md", "node_modules/a/index.js", "a.pth", "Makefile", "README.md",
        "env/a.py", "githooks.md", ".env.example", "rust/toolchain.toml", "conftest.py", "package.json",
    ],
)  # fmt: skip
def test_everyday_files_are_not_protected(name: str, tmp_path: Path) -> None:
    assert World(tmp_path, mode="acceptEdits").says("Write", {"file_path": name}) == "allow"


@pytest.mark.proves("X21")
@given(
    st.sampled_from(IN_PROJECTS),
    st.lists(st.sampled_from(("a", "src", "packages")), max_size=3),
    st.lists(st.sampled_from(("x", "b.json")), max_size=2),
    st.data(),
)
def test_every_name_of_the_table_is_protected_at_any_depth_and_in_any_spelling(
    name: str, above: list[str], under: list[str], data: st.DataObject
) -> None:
    letters = [data.draw(st.sampled_from((each, each.upper(), each + "\u200b"))) for each in name.replace("*", "x")]

    assert protected_name("/".join(["/home/dev/p", *above, "".join(letters), *under]), "/home/dev")


@pytest.mark.proves("X21")
def test_each_row_names_its_source_and_no_name_stands_twice() -> None:
    names = [(row.reach, name) for row in TABLE for name in row.names]

    assert all(row.source.startswith(("https://", "docs/")) and row.names for row in TABLE)
    assert len(names) == len(set(names))
    assert all(set(row.unseen) <= set(row.names) for row in TABLE)
    assert {".cursor", ".git"} - set(protected_names().project) == {".git"}
    assert not {".venv/bin", "node_modules/.bin"} & {*protected_names().project, *protected_names().if_there}
    assert ".hg/hgrc" in protected_names().project


@pytest.mark.proves("X21")
def test_no_call_plants_a_protected_file_where_edits_are_accepted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    project = tmp_path / "project"
    (project / "packages" / "a").mkdir(parents=True)
    (project / "notes").write_text("PLANTED")
    monkeypatch.chdir(project)
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(tmp_path / "state"))

    def call(tool: str, **given: str) -> str:
        run(["call", "--json", "--permission-mode", "acceptEdits", tool, json.dumps(given)])
        return str(json.loads(capsys.readouterr().out)["status"])

    for name in OF_THE_ISSUE[::2]:
        where = f"packages/a/{name}"
        (project / where).parent.mkdir(parents=True, exist_ok=True)
        assert call("Write", file_path=where, content="PLANTED") == "denied", name
    for name in OF_THE_ISSUE[::4]:
        assert call("Bash", command=f"cp notes packages/a/{name}") == "denied", name
    assert [path.name for path in project.rglob("*") if path.is_file()] == ["notes"]
    assert call("Bash", command="cp notes packages/a/notes") == "ok"
