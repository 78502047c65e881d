"""Decisions on paths: links, spellings, special files, and what is protected, critical or secret."""

import os
from pathlib import Path

import pytest

from handrail.permissions.paths import critical, protected_name, secret
from tests.permissions.world import PROJECT, World


@pytest.mark.parametrize(
    "name",
    [
        ".git", ".git/config", "sub/.git/hooks/x", ".GIT/config", ".git./config", ".git /config", ".g\u200cit/config",
        "GIT~1/config", ".handrail/settings.json", ".claude/settings.json", ".vscode/tasks.json", ".idea/x",
        ".husky/pre-commit", ".cargo/config.toml", ".devcontainer/devcontainer.json", ".yarn/releases/x", ".mvn/x",
        ".config/git/config", ".gitconfig", ".gitmodules", ".bashrc", ".zshrc", ".profile", ".envrc", ".npmrc",
        ".yarnrc", ".yarnrc.yml", ".pre-commit-config.yaml", ".mcp.json", ".claude.json", ".Bashrc",
        ".claude/worktrees/a/.git/config",
    ],
)  # fmt: skip
def test_what_changes_later_runs_is_protected(name: str, tmp_path: Path) -> None:
    assert protected_name(f"/home/dev/proj/{name}", "/home/dev")
    for mode in ("default", "acceptEdits", "auto"):
        world = World(tmp_path, mode=mode, rules={"allow": ["Edit", "Write", "Edit(**)", "Edit(//**)"]})
        assert world.says("Write", {"file_path": name}) == "ask", mode
    assert World(tmp_path, mode="bypassPermissions").says("Write", {"file_path": name}) == "allow"


@pytest.mark.parametrize(
    "name", [".gitignore", ".github/CODEOWNERS", "git/config", ".claude/worktrees/a/b.py", "src/.gitkeep", ".env"]
)
def test_ordinary_names_are_not_protected(name: str, tmp_path: Path) -> None:
    assert not protected_name(f"/home/dev/proj/{name}", "/home/dev")
    assert World(tmp_path, mode="acceptEdits").says("Write", {"file_path": name}) == "allow"


@pytest.mark.parametrize(
    "name",
    [
        ".ssh/config", ".local/bin/git", ".config/autostart/x.desktop", ".aws/config", ".vimrc", ".emacs.d/init.el",
        ".local/lib/python3.11/site-packages/usercustomize.py", ".config/pip/pip.conf", ".tmux.conf", ".forward",
    ],
)  # fmt: skip
def test_what_starts_by_itself_at_home_is_protected_if_home_is_a_working_folder(name: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits", working_dirs=("/home/dev",))

    assert world.says("Write", {"file_path": f"/home/dev/{name}"}) == "ask"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto", "dontAsk"])
@pytest.mark.parametrize(
    ("tool", "given"),
    [
        ("Write", {"file_path": "/home/dev/st/trust/x.json"}),
        ("Edit", {"file_path": "link/audit/x.jsonl", "old_string": "a", "new_string": "b"}),
        ("Bash", {"command": "touch ~/st/trust/x.json"}),
        ("Bash", {"command": "cp a ~/st/sessions/x"}),
        ("Bash", {"command": "rm -r ~/st"}),
        ("Bash", {"command": "echo x > ~/st/new"}),
        ("Bash", {"command": "mv ~/parent ~/other"}),
    ],
)
def test_our_own_records_and_settings_are_protected_wherever_they_are(
    mode: str, tool: str, given: dict[str, str], tmp_path: Path
) -> None:
    allow = ["Edit", "Edit(//**)", "Write", "Bash(touch *)", "Bash(mv *)"]
    own = ("/home/dev/st", "/home/dev/parent/deep/config")
    world = World(tmp_path, mode=mode, working_dirs=(PROJECT, "/home/dev"), rules={"allow": allow}, own=own)
    world.file("/home/dev/st/trust/x.json")
    world.file("/home/dev/parent/deep/config/settings.json")
    world.link("link", "/home/dev/st")

    assert world.says(tool, given) == ("deny" if mode == "dontAsk" else "ask")
    assert world.says("Read", {"file_path": "/home/dev/st/trust/x.json"}) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "rm -rf /", "rm -rf /*", "rm -rf ~", "rm -rf ~/", "rm -rf ~/*", "rm -rf $HOME", 'rm -rf "$HOME"/*', "rm -rf .",
        "rm -rf ..", "rm -rf ../*", "rm -rf /etc", "rm -rf /usr/", "rmdir /home", "rm -rf $X/", 'rm -rf "$X"/*',
        "ls; rm -rf /", "bash -c 'rm -rf /'", "env rm -rf /", "rm -rf src/../..", "/bin/rm -rf /", "rm -rf ./*",
        "rm -rf //", "rm -r -- /",
    ],
)  # fmt: skip
def test_removing_what_is_critical_always_asks(command: str, tmp_path: Path) -> None:
    for mode in ("acceptEdits", "auto", "bypassPermissions"):
        world = World(tmp_path, mode=mode, rules={"allow": ["Bash", "Bash(rm:*)", f"Bash({command})"]})
        assert world.bash(command) == "ask", mode


@pytest.mark.parametrize(
    "command", ["rm -rf build", "rm -rf ./src/*", "rm -rf /home/dev/other", "rm -rf $X", "rm a /var/x"]
)
def test_removing_other_things_follows_the_rules(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="bypassPermissions")

    assert world.bash(command) == "allow"


def test_the_working_folder_and_all_above_it_are_critical() -> None:
    assert critical("/a/b/c", "/h/u", ("/a/b/c",))
    assert critical("/a/b", "/h/u", ("/a/b/c",))
    assert critical("/h/u", "/h/u", ())
    assert not critical("/a/b/c/d", "/h/u", ("/a/b/c",))
    assert not critical("/a/b/cc", "/h/u", ("/a/b/c",))


@pytest.mark.parametrize(
    "name",
    [".env", ".env.production", "certs/server.pem", "id_rsa", ".ENV", "x/.netrc", "server.KEY", ".env~", "id_rsa.bak",
     "..env.swp", ".npmrc.old"],
)  # fmt: skip
def test_secrets_are_asked_for_unless_a_rule_allows_them(name: str, tmp_path: Path) -> None:
    assert secret(f"/p/{name}")
    world = World(tmp_path)
    world.file(name)

    assert world.says("Read", {"file_path": name}) == "ask"
    assert world.bash(f"cat {name}") == "ask"
    world.rules = {"allow": [f"Read({name})"]}
    assert world.says("Read", {"file_path": name}) == "allow"
    assert world.bash(f"cat {name}") == "allow"


@pytest.mark.parametrize("name", [".env.example", ".env.sample", "environment.py", "keys.py", "tests/shadow.css"])
def test_names_that_only_look_like_secrets_are_read(name: str, tmp_path: Path) -> None:
    assert World(tmp_path).says("Read", {"file_path": name}) == "allow"


@pytest.mark.parametrize(
    "spelling",
    [
        "", " ", " a", "a ", "a\n", "file:///etc/passwd", "https://x/y", "C:\\x", "c:/x", "$HOME/x", "${X}", "`id`",
        "$(id)", "~root/x", "~x", "src/*", "a?", "{a,b}", "//host/share", "\\\\host\\share", "a\u202eb", "a\x00b",
        "a" * 5000, "a\\b",
    ],
)  # fmt: skip
def test_a_spelling_that_is_probably_no_literal_path_is_asked_about(spelling: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits")

    assert world.says("Read", {"file_path": spelling}) == "ask"
    assert world.says("Write", {"file_path": spelling}) == "ask"


@pytest.mark.parametrize(
    "name", ["[id].tsx", "docs/日本語.md", "a b.md", "a,b", "ünï.txt", "a'b", 'a"b', "~", "#x", "-x"]
)
def test_unusual_names_are_ordinary_paths(name: str, tmp_path: Path) -> None:
    expected = "ask" if name == "~" else "allow"  # the home folder, which is outside

    assert World(tmp_path).says("Read", {"file_path": name}) == expected


@pytest.mark.parametrize("name", ["a*b", "a?", "{x}", "a\\b"])
def test_a_wildcard_in_the_name_of_a_real_file_is_a_letter(name: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file(name)

    assert world.says("Read", {"file_path": name}) == "allow"


@pytest.mark.parametrize("tool", ["Read", "Write", "Edit"])
def test_links_are_decided_by_where_they_lead(tool: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits")
    world.file("/home/dev/other/x")
    world.link("file", "/home/dev/other/x")
    world.link("folder", "/home/dev/other")
    world.link("chain", "/home/dev/proj/folder")
    world.link("new", "/home/dev/other/not-there")
    world.link("round", "/home/dev/proj/round")
    world.link("in", "/home/dev/proj/src")

    for name in ("file", "folder/x", "chain/x", "new", "round", "src/../folder/x", "folder/../other/x"):
        assert world.says(tool, {"file_path": name}) == "ask", name
    assert world.says(tool, {"file_path": "in/a.py"}) == "allow"


def test_dots_behind_a_link_go_up_from_where_it_leads(tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file("/home/dev/other/deep/x")
    world.link("link", "/home/dev/other/deep")

    assert world.says("Read", {"file_path": "link/../secret"}) == "ask"


def test_pipes_sockets_and_devices_are_asked_about(tmp_path: Path) -> None:
    world = World(tmp_path)
    os.mkfifo(world.at("/home/dev/proj/pipe"))
    world.socket("sock")

    for name in ("pipe", "sock", "/dev/zero", "/dev/null", "/proc/self/environ", "/sys/kernel/x"):
        assert world.says("Read", {"file_path": name}) == "ask", name


def test_writing_one_of_several_names_of_a_file_is_asked_about(tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits")
    os.link(world.file("/home/dev/other/x"), world.at("/home/dev/proj/twin"))

    assert world.says("Write", {"file_path": "twin"}) == "ask"
    assert world.says("Read", {"file_path": "twin"}) == "allow"


@pytest.mark.proves("G30")
def test_more_working_folders_are_read_without_asking(tmp_path: Path) -> None:
    world = World(tmp_path, working_dirs=("/home/dev/proj", "/home/dev/lib"))

    assert world.says("Read", {"file_path": "/home/dev/lib/x"}) == "allow"
    assert world.says("Read", {"file_path": "/home/dev/library/x"}) == "ask"
    assert world.bash("cat ../lib/x") == "allow"
    assert world.bash("cat ../library/x") == "ask"


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        ({"pattern": "**/*.py"}, "allow"),
        ({"pattern": "/etc/*"}, "ask"),
        ({"pattern": "~/*"}, "ask"),
        ({"pattern": "../*"}, "ask"),
        ({"pattern": "src/../../*"}, "ask"),
        ({"pattern": "src/*/../../../x"}, "ask"),
        ({"pattern": "*", "path": "/etc"}, "ask"),
        ({"pattern": "src/../*.py"}, "allow"),
    ],
)
def test_a_search_pattern_may_not_leave_the_working_folders(
    values: dict[str, str], expected: str, tmp_path: Path
) -> None:
    assert World(tmp_path).says("Glob", values) == expected


def test_no_mode_or_rule_makes_a_protected_place_clear(tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits", rules={"allow": ["Edit(.git/**)"]})

    assert [file.clear for file in world.case("Write", {"file_path": ".git/config"}).files] == [False]
    assert [file.clear for file in world.case("Write", {"file_path": "src/a.py"}).files] == [True]


STATE = "/home/dev/.local/state/handrail/runs/7"


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "plan", "dontAsk"])
def test_what_the_session_keeps_for_itself_may_be_read_and_nothing_else(mode: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode=mode, kept=[STATE])
    world.file(f"{STATE}/big.txt", "x")
    world.file(f"{STATE}-of-another/big.txt", "x")
    world.link(f"{STATE}/leads-out", "/home/dev/diary.txt")
    no = {"plan": "deny", "dontAsk": "deny"}.get(mode, "ask")

    assert world.says("Read", {"file_path": f"{STATE}/big.txt"}) == "allow"
    assert world.bash(f"tail -n 5 {STATE}/big.txt") == "allow"
    assert world.says("Write", {"file_path": f"{STATE}/big.txt", "content": ""}) == no
    for command in (f"rm {STATE}/big.txt", f"echo x > {STATE}/big.txt", f"cp a {STATE}/b"):
        assert world.bash(command) == no, command
    assert world.says("Read", {"file_path": f"{STATE}-of-another/big.txt"}) != "allow"
    assert world.says("Read", {"file_path": f"{STATE}/../8/big.txt"}) != "allow"
    assert world.says("Read", {"file_path": f"{STATE}/leads-out"}) != "allow"


def test_a_deny_rule_also_holds_for_what_the_session_keeps(tmp_path: Path) -> None:
    world = World(tmp_path, kept=[STATE], rules={"deny": ["Read(~/.local/**)"]})
    world.file(f"{STATE}/big.txt", "x")

    assert world.says("Read", {"file_path": f"{STATE}/big.txt"}) == "deny"


@pytest.mark.proves("X2")
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
def test_a_denied_dotenv_file_is_denied_in_every_spelling_and_to_every_reader(mode: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode=mode, rules={"deny": ["Read(.env)"], "allow": ["Bash", "Read"]})
    world.file(".env", "KEY=1")
    world.file("src/.env", "KEY=1")
    world.link("notes.txt", f"{PROJECT}/.env")
    names = (".env", "./.env", "src/../.env", "../proj/.env", "src/.env", f"{PROJECT}/.env", "notes.txt")
    readers = (
        "cat {}",
        "head -1 {}",
        "grep KEY {}",
        "sed -n 1p {}",
        "base64 {}",
        "wc < {}",
        "cp {} x",
        "ls; cat {} | cat",
    )

    for name in names:
        assert world.says("Read", {"file_path": name}) == "deny", name
        assert world.says("Edit", {"file_path": name, "old_string": "K", "new_string": "k"}) == "deny", name
        for reader in readers:
            assert world.bash(reader.format(name)) == "deny", reader.format(name)
