"""Rules against commands: allow covers every part as written, deny and ask find a command wherever it hides."""

from pathlib import Path

import pytest

from handrail.permissions.matching import all_matches
from tests.permissions.world import World

TOUCH = [
    ("touch a; touch b", "allow"),
    ("touch a && touch a", "allow"),
    ("timeout 5 touch a", "allow"),
    ("nohup touch a", "allow"),
    ("NODE_ENV=test touch a", "allow"),
    ("xargs touch a", "allow"),
    ("touch a 2>&1", "allow"),
    ("touch a > /dev/null", "allow"),
    ("ls && touch a", "allow"),
    ("cd src && touch a", "allow"),
    ("touch a && rm -f a", "ask"),
    ("touch a | tee c", "ask"),
    ("FOO=1 touch a", "ask"),
    ("LD_PRELOAD=x touch a", "ask"),
    ("env touch a", "ask"),
    ("bash -c 'touch a'", "ask"),
    ("touch $(whoami)", "ask"),
    ("touch `whoami`", "ask"),
    ("touch $FOO", "ask"),
    ("touch a > out.txt", "ask"),
    ("(touch a)", "ask"),
    ("touch a &", "ask"),
    ("touch a & touch b", "ask"),
    ("touch 'a & b'", "allow"),
    ("touch a &> /dev/null", "allow"),
    ("xargs -I{} touch a", "ask"),
    ("cd /tmp && touch a", "ask"),
    ("/usr/bin/touch a", "ask"),
    ("./touch a", "ask"),
    ("touch a &&& b", "ask"),
    ("touch .git/hooks/x", "ask"),
]


@pytest.mark.proves("X4")
@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("touch a | mkdir b && ls", "allow"),
        ("touch a | frobnicate && ls", "ask"),
        ("touch a | mkdir b && curl x", "deny"),
        ("curl x | mkdir b && frobnicate", "deny"),
        ("touch a | $(mkdir b) && ls", "ask"),
        ("touch a | $(curl x) && ls", "deny"),
        ("touch a | coproc mkdir b && ls", "ask"),
        ("touch a | mkdir b && (((", "ask"),
    ],
)
def test_a_compound_command_is_as_free_as_its_least_free_part(command: str, expected: str, tmp_path: Path) -> None:
    rules = {"allow": ["Bash(touch *)", "Bash(mkdir *)"], "deny": ["Bash(curl *)"]}

    assert World(tmp_path, rules=rules).bash(command) == expected


@pytest.mark.parametrize(("command", "expected"), TOUCH)
def test_an_allow_rule_covers_every_part_or_nothing(command: str, expected: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash(touch:*)"]})

    assert world.bash(command) == expected


HIDDEN = [
    "rm x",
    "/bin/rm x",
    "ls; rm x",
    "ls && rm x",
    "ls || rm x",
    "ls | rm x",
    "ls & rm x",
    "ls\nrm x",
    "(rm x)",
    "{ rm x; }",
    "echo $(rm x)",
    "echo `rm x`",
    "cat <(rm x)",
    "bash -c 'rm x'",
    "bash -c \"bash -c 'rm x'\"",
    "sh -c 'ls; rm x'",
    "eval 'rm x'",
    "FOO=1 rm x",
    "timeout 5 rm x",
    "nice -n 5 rm x",
    "nohup rm x",
    "env rm x",
    "xargs rm x",
    "'rm' x",
    'r"m" x',
    "\\rm x",
    "$'rm' x",
    "find . -exec rm {} \\;",
    "if true; then rm x; fi",
    "for f in a b; do rm $f; done",
    "while true; do rm x; done",
    "f() { rm x; }; f",
    "! rm x",
    "; ".join(["ls"] * 60 + ["rm x"]),
]


@pytest.mark.proves("R3", "G5")
@pytest.mark.parametrize("command", HIDDEN)
def test_a_deny_rule_finds_a_command_wherever_it_hides(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Bash(rm:*)"]}, mode="bypassPermissions")

    assert world.bash(command) == "deny"


@pytest.mark.parametrize("wrapper", ["sudo", "exec", "busybox", "stdbuf -o0", "doas", "setsid", "trap"])
def test_a_deny_rule_looks_through_wrappers(wrapper: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Bash(rm:*)"]})

    assert world.bash("trap 'rm x' EXIT" if wrapper == "trap" else f"{wrapper} rm x") == "deny"


@pytest.mark.parametrize(
    "command", ["grep 'rm -rf' f", "echo rm x", "git rm x", "lsrm x", "cat <<'E'\nrm x\nE", "rmdir x"]
)
def test_a_deny_rule_does_not_take_text_for_a_command(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Bash(rm:*)"]})

    assert all_matches(world.case("Bash", {"command": command})) == ()


@pytest.mark.parametrize(
    "command",
    ["git push", "git -C x push origin", "git --no-pager push", "git -c a=b --no-pager push -f", "/usr/bin/git push"],
)
def test_a_deny_rule_sees_the_sub_command_behind_options(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Bash(git push:*)"]})

    assert world.bash(command) == "deny"


@pytest.mark.parametrize(
    ("rule", "command", "matches"),
    [
        ("npm run build", "npm run build", True),
        ("npm run build", "npm  run   build", True),
        ("npm run build", "npm run build --x", False),
        ("ls *", "ls", True),
        ("ls:*", "ls -la", True),
        ("ls:*", "lsof", False),
        ("ls*", "lsof", True),
        ("git * main", "git push origin main", True),
        ("git * main", "git push origin dev", False),
        ("* --version", "node --version", True),
        ("git:* push", "git push", False),
        ("echo \\*", "echo *", True),
        ("echo \\*", "echo a", False),
        ("echo 'a b'", "echo 'a b'", True),
        ("echo 'a b'", "echo a b", False),
        ("rm a b", "rm 'a b'", False),
        ("make a && make b", "make a && make b", True),
        ("make a && make b", "make a; make b", False),
        ("make a && *", "make a && rm b", False),
        ("watch:*", "watch ls", False),
        ("watch ls", "watch ls", True),
        ("find:*", "find . -delete", False),
        ("find . -delete", "find . -delete", True),
        ("./scripts/*", "./scripts/run.sh --fast", True),
        ("./scripts/*", "./scripts/../evil.sh", False),
        ("./scripts/*", "./scripts/a/../../../evil.sh", False),
        ("./scripts/*", "./scripts/run.sh ../other", True),
        ("./scripts/*", "./scripts/run..sh", True),
        ("rm build/*", "rm build/a/b", True),
        ("rm build/*", "rm build/../x", False),
        ("rm build/*", "rm build/a build/..", False),
        ("cp * /opt/out/*", "cp a /opt/out/../../etc/x", False),
        ("cp * ../out/*", "cp a ../out/x", True),
        ("cp * ../out/*", "cp a ../out/../x", False),
        ("foo --out=dist/x*", "foo --out=dist/x/../../y", False),
        ("rm *", "rm ../x", True),
    ],
)
def test_an_allow_rule_matches_words(rule: str, command: str, matches: bool, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": [f"Bash({rule})"]})

    assert bool(all_matches(world.case("Bash", {"command": command}))) == matches


def test_several_rules_together_cover_a_command_line(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash(make a)", "Bash(make b)"]})

    decision = world.decide("Bash", {"command": "make a && make b"})

    assert decision.verdict.value == "allow"
    assert "Bash(make a)" in decision.reason
    assert "Bash(make b)" in decision.reason
    assert world.bash("make a && make c") == "ask"


@pytest.mark.parametrize("command", ["x" * 10_001, "ls 'a", "ls \u202e", "a() { b; }; a"])
def test_what_is_not_understood_is_asked_for_even_if_all_commands_are_allowed(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash(ls:*)", "Bash(x*)"]})

    assert world.bash(command) == "ask"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("cat .env", "deny"),
        ("cat ./sub/../.env", "deny"),
        ("cat < .env", "deny"),
        ("head -1 link", "deny"),
        ("grep x .env | wc", "deny"),
        ("unknown-tool .env", "deny"),
        ("unknown-tool --file=.env", "deny"),
        ("echo x > locked/a", "deny"),
        ("echo x >> locked/a", "deny"),
        ("cat locked/a", "allow"),
        ("cat README.md", "allow"),
        ("echo x > free/a", "allow"),
        ("echo x > other/a", "ask"),
    ],
)
def test_files_in_commands_are_decided_like_those_of_the_file_tools(
    command: str, expected: str, tmp_path: Path
) -> None:
    world = World(tmp_path, rules={"deny": ["Read(.env)", "Edit(locked/**)"], "allow": ["Edit(free/**)"]})
    world.link("link", "/home/dev/proj/.env")

    assert world.bash(command) == expected


@pytest.mark.parametrize(
    ("command", "expected"),
    [("cat src/*", "ask"), ("cat src/a*", "allow"), ("ls src/none*", "allow")],
)
def test_a_pattern_is_as_safe_as_the_files_it_matches(command: str, expected: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file("src/a.py")
    world.link("src/out", "/home/dev/other")

    assert world.bash(command) == expected


def test_monitor_keeps_to_the_rules_of_bash(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"deny": ["Bash(rm:*)"], "allow": ["Bash(make:*)"]})

    assert world.says("Monitor", {"command": "rm x"}) == "deny"
    assert world.says("Monitor", {"command": "make x"}) == "allow"
    assert World(tmp_path, rules={"deny": ["Bash"]}).says("Monitor", {"command": "ls"}) == "deny"


EDITS = [
    ("mkdir -p src/a", "allow"),
    ("touch a b", "allow"),
    ("rm src/a.py", "allow"),
    ("mv a b", "allow"),
    ("mv .git/config b", "ask"),
    ("cp a b", "allow"),
    ("sed -i s/a/b/ src/a.py", "allow"),
    ("echo hi > notes.txt", "allow"),
    ("touch ../x", "ask"),
    ("cp a /tmp/b", "ask"),
    ("cp /etc/passwd a", "ask"),
    ("rm .git/index", "ask"),
    ("touch .claude/x", "ask"),
    ("cp a .mcp.json", "ask"),
    ("sed -i s/a/b/e src/a.py", "ask"),
    ("sed -i 'w /tmp/x' src/a.py", "ask"),
    ("npm install", "ask"),
    ("rm -rf .", "ask"),
    ("rm -rf *", "ask"),
]


@pytest.mark.parametrize(("command", "expected"), EDITS)
def test_accept_edits_lets_plain_edits_inside_pass(command: str, expected: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode="acceptEdits")
    world.file("a")
    world.file("src/a.py")

    assert world.bash(command) == expected
    if expected == "allow":
        world.mode = "default"
        assert world.bash(command) == "ask"


@pytest.mark.parametrize(
    ("command", "says"),
    [
        ("git status", "allow"),
        ("git -C . status", "allow"),
        ("cd . && git status", "allow"),
        ("cd same && git log", "allow"),
        ("cd sub && cd .. && git log", "allow"),
        ("cd sub && git status", "allow"),
        ("git -C sub status", "allow"),
        ("cd sub; ls; git diff", "allow"),
        ("git -C deeper/../.. status", "ask"),
        ("(cd sub && git log)", "allow"),
        ("cd $X && git status", "ask"),
    ],
)
def test_git_outside_the_working_folders_is_asked_about(command: str, says: str, tmp_path: Path) -> None:
    world = World(tmp_path)
    world.file("sub/deep/x")
    world.link("same", "/home/dev/proj")
    world.link("deeper", "/home/dev/proj/sub/deep")

    assert world.bash(command) == says


@pytest.mark.parametrize("options", ["-la NAME", "-cla NAME", "-l -a NAME", "-aNAME", "-c"])
def test_a_deny_rule_sees_what_exec_runs_whatever_its_options(options: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Bash(rm *)"]})

    assert world.bash(f"exec {options} rm x") == "deny"


UNKNOWN_COMMANDS = [
    "$(echo rm) x", "`echo rm` x", "${x:-rm} x", "$x y", '"$x" y', "/bin/r? x", "/bin/[r]m x", "r${x}m y", "r$@m x",
    "rm${IFS}x", 'bash -c "$x"',
    'eval "$x"', "source <(echo rm x)", ". /dev/stdin <<< 'rm x'", "env $x y", "timeout 5 $x", "find . -exec $x {} +",
    "git $x", "git -C . $x", 'git "$(echo push)"', "for x in status push; do git $x; done", '"${x@P}"', "ls \x0b rm x",
]  # fmt: skip
FED_PROGRAMS = [
    "bash <<< 'rm x'",
    "echo 'rm x' | bash",
    "echo 'rm x' | sh -s",
    "bash <<E\nrm x\nE",
    "printf 'rm x' | sh",
]
KNOWN_COMMANDS = [
    "make x",
    'make "$x"',
    'git log "$x"',
    'echo "$(date)"',
    "bash build.sh",
    "git commit -m $x",
    "rmdir $x",
]


@pytest.mark.proves("R3")
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("command", FED_PROGRAMS)
def test_a_rule_sees_the_program_that_a_shell_is_fed(command: str, kind: str, mode: str, tmp_path: Path) -> None:
    world = World(tmp_path, mode=mode, rules={"allow": ["Bash"], kind: ["Bash(rm *)"]})

    assert world.bash(command) == kind


@pytest.mark.proves("R3")
@pytest.mark.parametrize("mode", ["default", "bypassPermissions"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("command", UNKNOWN_COMMANDS)
def test_a_command_that_may_be_what_a_rule_names_is_asked_for(
    command: str, kind: str, mode: str, tmp_path: Path
) -> None:
    world = World(tmp_path, mode=mode, rules={"allow": ["Bash"], kind: ["Bash(rm *)", "Bash(git push *)"]})

    assert world.bash(command) == "ask"


@pytest.mark.parametrize("command", KNOWN_COMMANDS)
def test_a_command_that_cannot_be_what_a_rule_names_is_not_asked_for(command: str, tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Bash(rm *)", "Bash(git push *)"]})

    assert world.bash(command) == "allow"


def test_a_deny_rule_finds_a_program_in_any_case(tmp_path: Path) -> None:
    world = World(tmp_path, rules={"allow": ["Bash"], "deny": ["Bash(rm *)"]})

    assert world.bash("RM x") == world.bash("/bin/Rm x") == "deny"


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("./check --all", "allow"), ("cd . && ./check --all", "allow"), ("timeout 5 ./check --all", "allow"),
        ("cd src && ./check --all", "ask"), ("cd src; cd ..; ./check --all", "ask"), ("cd $d && ./check --all", "ask"),
        ("env -C src ./check --all", "ask"), ("(cd src && ./check --all)", "ask"), ("pushd src; ./check --all", "ask"),
        ("cd src && bin/check", "ask"), ("cd src && npm test", "allow"), ("cd src && /opt/check", "allow"),
    ],
)  # fmt: skip
def test_an_allow_rule_for_a_relative_program_means_the_file_of_its_folder(
    command: str, expected: str, tmp_path: Path
) -> None:
    allowed = ["Bash(./check *)", "Bash(bin/check)", "Bash(npm test)", "Bash(/opt/check)", "Bash(pushd *)"]

    assert World(tmp_path, rules={"allow": allowed}).bash(command) == expected
