"""What lies in `.claude` or `.handrail` without an effect, named from a listing."""

from pathlib import Path

import pytest

from handrail.extensions.places import config_folders
from handrail.extensions.unsupported import (
    FolderListing,
    extension_notes,
    folder_notes,
    list_folder,
    start_notes,
)


def listing(family: str, source: str, *names: str) -> FolderListing:
    return FolderListing(family if source == "project" else f"~/{family}", source, family, names)


@pytest.mark.parametrize(
    ("folder", "notes"),
    [
        pytest.param(
            listing(".claude", "project", "CLAUDE.md", "agents/", "commands/", "rules/", "settings.json"),
            [],
            id="what is read needs no word",
        ),
        pytest.param(
            listing(".claude", "user", "history.jsonl", "projects/", "statusline.sh", "todos/"),
            [],
            id="other programs' records and people's own scripts are no one's business",
        ),
        pytest.param(
            listing(".claude", "project", "output-style/", "plugins/", "command/"),
            [
                ".claude/output-style/ is not read: output styles are read from output-styles/",
                ".claude/plugins/ is not read: plugins are added with: handrail plugins add",
                ".claude/command/ is not read: commands are read from commands/",
            ],
            id="what has a meaning elsewhere, or is misspelt",
        ),
        pytest.param(
            listing(".handrail", "project", "CLAUDE.md", "rules/"),
            [
                ".handrail/CLAUDE.md is not read: memory files are read from the project's folder and from .claude",
                ".handrail/rules/ is not read: rules are read from .claude/rules",
            ],
            id="what lies in the wrong family",
        ),
        pytest.param(
            listing(".handrail", "user", "CLAUDE.md", "rules/", "settings.local.json"),
            ["~/.handrail/settings.local.json is not read: local settings belong to a project"],
            id="at home other things are read",
        ),
        pytest.param(
            listing(".handrail", "user", "keybindings.json", "mcp.json"),
            [],
            id="keys and servers are read from the folder of handrail at home",
        ),
        pytest.param(
            listing(".claude", "user", "keybindings.json", "mcp.json"),
            [
                "~/.claude/keybindings.json is not read: key bindings are read from ~/.handrail",
                "~/.claude/mcp.json is not read: MCP servers are read from .mcp.json in the project's folder",
            ],
            id="and from no other",
        ),
    ],
)
def test_what_a_folder_holds_without_effect_is_named(folder: FolderListing, notes: list[str]) -> None:
    assert list(folder_notes([folder])) == notes


def test_folders_are_listed_with_what_is_in_them(tmp_path: Path) -> None:
    home, work = tmp_path / "home", tmp_path / "work"
    (work / ".claude/themes/dark").mkdir(parents=True)
    (work / ".claude/plugins").mkdir()
    (work / ".claude/keybindings.json").write_text("{}")
    (home / ".claude").mkdir(parents=True)
    folders = config_folders(work, {"HOME": str(home)})

    assert list_folder(folders[0]).names == ("keybindings.json", "themes/")
    assert extension_notes(folders) == (
        ".claude/keybindings.json is not read: key bindings are read from ~/.handrail",
        ".claude/themes/ is not read: themes of your own are not supported yet",
    )


def test_a_session_begins_with_a_few_notes_and_says_where_the_others_are() -> None:
    notes = tuple(f"note {number}" for number in range(9))
    assert start_notes(notes[:4]) == notes[:4]
    assert start_notes(notes) == (*notes[:3], "6 more notes of this kind: see handrail doctor")
