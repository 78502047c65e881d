"""Which servers are used: those of settings, and those that are found."""

from pathlib import Path
from typing import Any

import pytest

from handrail.errors import LspError
from handrail.lsp.known import advice_for, choose_servers, installed_servers, language_of, parse_server
from handrail.lsp.servers import root_of


def programs(folder: Path, *names: str) -> str:
    for name in names:
        (folder / name).write_text("")
        (folder / name).chmod(0o755)
    return f"relative/bin::{folder}"


def test_of_each_group_one_server_is_found_and_never_by_a_relative_path(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = programs(tmp_path, "ty", "pyright-langserver", "ruff", "clangd")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "relative" / "bin").mkdir(parents=True)
    programs(tmp_path / "relative" / "bin", "gopls")

    assert [each.name for each in installed_servers(path)] == ["pyright", "ruff", "clangd"]
    assert [each.name for each in installed_servers(path, {"pyright"})] == ["ty", "ruff", "clangd"]
    assert [each.command for each in installed_servers(path)][1] == (str(tmp_path / "ruff"), "server")


def test_a_configured_server_takes_the_place_of_those_that_are_found_for_its_files(tmp_path: Path) -> None:
    own = parse_server("mine", {"command": "mine", "extensionToLanguage": {"py": "python"}})
    assert own is not None
    found = installed_servers(programs(tmp_path, "ty", "ruff", "gopls"))

    assert [each.name for each in choose_servers([own], found)] == ["mine", "ruff", "gopls"]
    assert language_of(own, "/a/B.PY") == "python"
    assert language_of(own, "/a/b.go") == ""


def test_a_known_server_needs_no_command_in_its_entry() -> None:
    spec = parse_server("rust-analyzer", {"settings": {"a": 1}, "startupTimeout": 5000})

    assert spec is not None
    assert (spec.command, spec.languages, spec.start_seconds) == (("rust-analyzer",), {".rs": "rust"}, 5.0)
    assert spec.options["cargo"] == {"buildScripts": {"enable": False}}
    assert parse_server("ruff", {"disabled": True}) is None


@pytest.mark.parametrize(
    ("entry", "said"),
    [
        ("zls", "must be an object"),
        ({}, 'has no command. Please add "command"'),
        ({"command": "zls"}, 'names no files. Please add "extensionToLanguage"'),
        ({"command": ["zls"]}, "lspServers.zig.command must be a text"),
        ({"command": "zls", "args": "-v"}, "lspServers.zig.args must be a list"),
        ({"command": "zls", "maxRestarts": True}, "lspServers.zig.maxRestarts must be a number"),
        ({"command": "zls", "disabled": "yes"}, "must be true or false"),
    ],
)
def test_an_entry_that_cannot_be_used_says_what_is_wrong(entry: Any, said: str) -> None:
    with pytest.raises(LspError, match=said):
        parse_server("zig", entry)


def test_what_to_install_is_said_for_known_files_and_how_to_name_a_server_for_others() -> None:
    assert advice_for("/x/a.go") == "Install gopls (go install golang.org/x/tools/gopls@latest)."
    assert "lspServers" in advice_for("/x/a.zig")


@pytest.mark.parametrize(
    ("path", "root"),
    [
        ("/p/src/a.py", "/p"),
        ("/p/.handrail/worktrees/one/src/a.py", "/p/.handrail/worktrees/one"),
        ("/p/.handrail/worktrees/a.py", "/p"),
        ("/elsewhere/.handrail/worktrees/one/a.py", "/p"),
    ],
)
def test_a_worktree_of_an_agent_is_a_root_of_its_own(path: str, root: str) -> None:
    assert root_of(path, "/p") == root


def test_the_server_of_typescript_is_used_with_the_compiler_beside_it_and_never_with_one_of_the_project(
    tmp_path: Path,
) -> None:
    packages, programs = tmp_path / "lib/node_modules", tmp_path / "bin"
    server = packages / "typescript-language-server/lib/cli.mjs"
    for each in (server.parent, programs):
        each.mkdir(parents=True)
    server.write_text("#!/usr/bin/env node\n")
    server.chmod(0o755)
    (programs / "typescript-language-server").symlink_to(server)

    assert list(installed_servers(str(programs))) == []

    compiler = packages / "typescript/lib/tsserver.js"
    compiler.parent.mkdir(parents=True)
    compiler.touch()
    assert [each.options for each in installed_servers(str(programs))] == [{"tsserver": {"path": str(compiler)}}]
