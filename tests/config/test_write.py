"""Writing settings: no change is lost, nothing is half-written, and nothing is written where it must not be."""

import json
import stat
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from handrail.config.files import lock_folder
from handrail.config.persist import persist
from handrail.config.rewrite import set_value
from handrail.config.write import edit
from handrail.errors import SettingsError
from tests.config.world import World


def put(world: World, source: str, key: str, value: Any) -> Path:
    return edit(world.places.file(source), world.places, lambda text: set_value(text, key.split("."), value))


def test_a_file_keeps_its_mark_order_line_ends_mode_and_unknown_keys(world: World) -> None:
    path = world.file("user")
    path.write_bytes(b'\xef\xbb\xbf{\r\n    "zeta": [1,2],\r\n    "model": "a",\r\n    "alpha": {}\r\n}')
    path.chmod(0o640)

    put(world, "user", "model", "b")

    assert path.read_bytes() == b'\xef\xbb\xbf{\r\n    "zeta": [1,2],\r\n    "model": "b",\r\n    "alpha": {}\r\n}'
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert [file.name for file in path.parent.iterdir()] == ["settings.json"]


def test_a_link_to_the_users_settings_stays_a_link(world: World) -> None:
    real = world.write("home/dotfiles/settings.json", "{}\n")
    world.file("user").symlink_to(real)

    put(world, "user", "model", "m")

    assert world.file("user").is_symlink()
    assert json.loads(real.read_text()) == {"model": "m"}


@pytest.mark.parametrize("content", ["{", '{"model": "a", "model": "b"}', '{"a": 1} // comment', "[]", ""], ids=repr)
def test_a_broken_file_is_not_touched(world: World, content: str) -> None:
    path = world.write("project", content)

    with pytest.raises(SettingsError, match=r"\.handrail/settings\.json is broken and was not changed"):
        put(world, "project", "model", "m")

    assert path.read_text() == content


def test_a_project_cannot_lead_writing_out_of_itself(world: World) -> None:
    victim = world.write("home/.bashrc", "{}")
    world.file("project/.handrail/settings.local.json").symlink_to(victim)
    with pytest.raises(SettingsError, match="outside of the project, and is not written"):
        put(world, "local", "model", "m")

    outside = world.root / "outside"
    outside.mkdir()
    elsewhere = world.root / "project" / ".handrail"
    (elsewhere / "settings.local.json").unlink()
    elsewhere.rmdir()
    elsewhere.symlink_to(outside)
    with pytest.raises(SettingsError, match="outside of the project, and is not written"):
        put(world, "project", "model", "m")

    assert victim.read_text() == "{}"
    assert list(outside.iterdir()) == []


def test_local_settings_are_kept_out_of_git_when_they_are_made(world: World) -> None:
    folder = world.root / "project" / ".handrail"
    put(world, "project", "model", "m")
    assert not (folder / ".gitignore").exists()

    put(world, "local", "model", "m")
    assert (folder / ".gitignore").read_text() == "settings.local.json\n.gitignore\n"

    (folder / "settings.local.json").unlink()
    (folder / ".gitignore").write_text("mine\n")
    put(world, "local", "model", "m")
    assert (folder / ".gitignore").read_text() == "mine\n"


@pytest.mark.needs("git")
def test_git_does_not_see_local_settings(world: World) -> None:
    subprocess.run(["git", "init", "-q", world.places.cwd], check=True)
    put(world, "local", "model", "m")

    status = subprocess.run(
        ["git", "-C", world.places.cwd, "status", "--porcelain"], capture_output=True, text=True, check=True
    )

    assert status.stdout == ""


def test_new_files_are_for_their_owner_except_the_projects_own(world: World) -> None:
    modes = {
        source: stat.S_IMODE(put(world, source, "model", "m").stat().st_mode) for source in ("user", "local", "project")
    }

    assert modes == {"user": 0o600, "local": 0o600, "project": 0o644}


WRITER = """
import sys
from pathlib import Path
from handrail.config.places import SettingsPlaces
from handrail.config.rewrite import add_items
from handrail.config.write import edit

root, name, count = Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])
home = root / "home"
places = SettingsPlaces(str(root / "project"), str(home), home / ".handrail", home / ".claude", root, ())
print("ready", flush=True)
sys.stdin.readline()
for number in range(count):
    rule = f"Bash({name} {number})"
    edit(places.file("project"), places, lambda text: add_items(text, ("permissions", "allow"), [rule]))
"""


def test_processes_that_write_at_once_lose_nothing(world: World) -> None:
    names, count = ("a", "b", "c"), 15
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(world.root), name, str(count)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for name in names
    ]
    for writer in writers:
        assert writer.stdout
        assert writer.stdout.readline() == "ready\n"

    for writer in writers:
        assert writer.stdin
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate(timeout=60)
        assert writer.returncode == 0

    rules = json.loads(world.file("project").read_text())["permissions"]["allow"]
    assert sorted(rules) == sorted(f"Bash({name} {number})" for name in names for number in range(count))
    assert [file.name for file in world.file("project").parent.iterdir()] == ["settings.json"]


def test_a_change_by_a_program_that_does_not_lock_is_not_lost(world: World) -> None:
    path = world.write("user", {"model": "a"})
    seen: list[str] = []

    def change(text: str) -> str:
        if not seen:
            world.write("user", {"model": "a", "language": "de"})  # an editor saves while we think
        seen.append(text)
        return set_value(text, ("model",), "b")

    edit(world.places.file("user"), world.places, change)

    assert json.loads(path.read_text()) == {"model": "b", "language": "de"}
    assert len(seen) == 2


def test_whoever_holds_the_lock_for_too_long_is_not_waited_for(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    path = world.write("user", "{}")
    monkeypatch.setattr("handrail.config.files.TIMEOUT", 0.0)

    with lock_folder(path.parent), pytest.raises(SettingsError, match="another process has been writing"):
        put(world, "user", "model", "m")

    assert path.read_text() == "{}"


# Updates


def rule(tool: str, content: str | None = None) -> dict[str, str | None]:
    return {"toolName": tool, "ruleContent": content}


def update(kind: str, destination: str = "localSettings", **fields: Any) -> dict[str, Any]:
    return {"type": kind, "destination": destination, **fields}


@pytest.mark.proves("G34")
def test_always_allow_is_written_to_the_projects_local_settings_and_counts_at_the_next_start(world: World) -> None:
    file = persist(update("addRules", behavior="allow", rules=[rule("Bash", "npm test *")]), world.places)

    assert file == world.root / "project" / ".handrail" / "settings.local.json"
    assert json.loads(file.read_text()) == {"permissions": {"allow": ["Bash(npm test *)"]}}
    [kept] = world.live().policy().rules
    assert (kept.text, str(kept.source)) == ("Bash(npm test *)", "local settings .handrail/settings.local.json:4")


@pytest.mark.proves("G34")
def test_an_agreed_rule_does_not_bring_the_rest_of_an_untrusted_folder_with_it(world: World) -> None:
    world.write("project", {"permissions": {"allow": ["Bash"]}, "hooks": {"Stop": []}})

    persist(update("addRules", behavior="allow", rules=[rule("Bash", "ls")]), world.places)

    assert world.gather().trust == "changed"
    assert world.live().policy().rules == ()


def test_an_agreed_rule_keeps_a_trusted_folder_trusted(world: World) -> None:
    world.write("project", {"permissions": {"allow": ["Read(//x)"]}})
    world.trust()

    persist(update("addRules", behavior="allow", rules=[rule("Bash", "ls")]), world.places)

    assert world.gather().trust == "trusted"
    assert world.gather().get("permissions", "allow") == ["Bash(ls)", "Read(//x)"]


def test_every_update_changes_its_file_and_nothing_else(world: World) -> None:
    path = world.write("project", '{"x": 1,\n "permissions": {"deny": ["Bash", "Bash(rm *)", "Read(.env)"]}}')

    persist(update("removeRules", "projectSettings", behavior="deny", rules=[rule("Bash", "*")]), world.places)
    assert json.loads(path.read_text())["permissions"] == {"deny": ["Bash(rm *)", "Read(.env)"]}
    persist(update("replaceRules", "projectSettings", behavior="deny", rules=[rule("Glob")]), world.places)
    persist(update("setMode", "projectSettings", mode="plan"), world.places)
    persist(update("addDirectories", "projectSettings", directories=["/a", "/b"]), world.places)
    persist(update("removeDirectories", "projectSettings", directories=["/a"]), world.places)

    assert json.loads(path.read_text()) == {
        "x": 1,
        "permissions": {"deny": ["Glob"], "defaultMode": "plan", "additionalDirectories": ["/b"]},
    }
    assert path.read_text().startswith('{"x": 1,\n "permissions": {')


def test_what_lives_in_the_session_is_not_written(world: World) -> None:
    assert persist(update("addRules", "session", behavior="allow", rules=[rule("Bash")]), world.places) is None
    assert not (world.root / "project" / ".handrail").exists()


@pytest.mark.parametrize(
    "bad",
    [
        {"type": "addRules", "destination": "elsewhere"},
        update("addRules", behavior="maybe", rules=[]),
        update("addRules", behavior="allow", rules="Bash"),
        update("addRules", behavior="allow", rules=[{"tool": "Bash"}]),
        update("addRules", behavior="allow", rules=[rule("Bash(")]),
        update("setMode", mode="yolo"),
        update("addDirectories", directories="/a"),
        update("conquer"),
    ],
)
def test_an_update_that_makes_no_sense_writes_nothing(world: World, bad: dict[str, Any]) -> None:
    with pytest.raises(SettingsError):
        persist(bad, world.places)

    assert not (world.root / "project" / ".handrail").exists()


def test_handrail_never_writes_into_the_other_family(world: World) -> None:
    file = next(file for file in world.places.files() if file.family == "claude")

    with pytest.raises(SettingsError, match="cannot be changed by handrail"):
        edit(file, world.places, lambda text: text)
