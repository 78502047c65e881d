"""PowerShell rules: any case, aliases as cmdlets, plain commands only where something is allowed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.permissions.powershell import PowerShellIndex
from handrail.permissions.rules import Behaviour, Rule, parse_rule
from tests.permissions.world import World


def says(folder: Path, kind: str, rule: str, command: str) -> str:
    return World(folder, rules={kind: [rule]}).says("PowerShell", {"command": command})


@pytest.mark.parametrize(
    ("rule", "command"),
    [
        ("PowerShell(Get-ChildItem *)", "get-childitem -Recurse"),
        ("PowerShell(Get-ChildItem:*)", "ls src"),
        ("PowerShell(gci *)", "dir"),
        ("PowerShell(git status)", "git  status"),
        ("PowerShell(Write-Output 'a b')", 'echo "a b"'),
        ("PowerShell", "anything; at all"),
    ],
)
def test_an_allow_rule_covers_the_command_in_any_spelling(rule: str, command: str, tmp_path: Path) -> None:
    assert says(tmp_path, "allow", rule, command) == "allow"


@pytest.mark.parametrize(
    "command",
    [
        "ls; rm x",
        "ls | rm",
        "ls & rm x",
        "ls\nrm x",
        "ls $(rm x)",
        'ls "$(rm x)"',
        "ls (rm x)",
        "ls `\nrm x",
        "ls > out.txt",
        "ls @args",
        "ls {rm x}",
        "ls \u201ca\u201d",
        "./ls",
        "C:\\tools\\ls.exe",
        "& ls",
        "lsx",
    ],
)
def test_an_allow_rule_covers_nothing_but_one_plain_command(command: str, tmp_path: Path) -> None:
    assert says(tmp_path, "allow", "PowerShell(ls *)", command) == "ask"


@pytest.mark.parametrize(
    "command",
    [
        "rm x",
        "RM x",
        "ls; Remove-Item x",
        "ls | del",
        "if ($x) { ri y }",
        "echo $(erase x)",
        "r`m x",
        "& 'rm' x",
        ". rm x",
    ],
)
def test_a_deny_rule_finds_the_cmdlet_wherever_it_stands(command: str, tmp_path: Path) -> None:
    assert says(tmp_path, "deny", "PowerShell(Remove-Item *)", command) == "deny"


@given(st.text(max_size=60))
def test_every_text_is_answered(command: str) -> None:
    for kind in Behaviour:
        rule = parse_rule("PowerShell(rm *)", kind)
        assert isinstance(rule, Rule)
        assert PowerShellIndex([rule]).find(command, kind) in ([], [rule])


ACROSS = [
    # tool, command, deny rule, what is said although the tool is allowed
    ("Bash", "pwsh -c 'Remove-Item x'", "PowerShell(Remove-Item *)", "deny"),
    ("Bash", "pwsh -NoProfile -Command rm x", "PowerShell(Remove-Item *)", "deny"),
    ("Bash", "/opt/ps/PWSH -c 'ls; del x'", "PowerShell(Remove-Item *)", "deny"),
    ("Bash", 'timeout 5 powershell.exe -c "ri x"', "PowerShell(rm *)", "deny"),
    ("Bash", "pwsh -c Get-Date", "PowerShell", "deny"),
    ("Bash", "pwsh -EncodedCommand ZQBjAGgAbwA=", "PowerShell(Remove-Item *)", "ask"),
    ("Bash", "echo x | pwsh -", "PowerShell(Remove-Item *)", "ask"),
    ("Bash", "pwsh script.ps1", "PowerShell(Remove-Item *)", "ask"),
    ("Bash", "pwsh -c 'rm x'", "Bash(rm *)", "ask"),
    ("Bash", "pwsh -c Get-Date", "Read(.env)", "allow"),
    ("Bash", "pwshx -c 'rm x'", "PowerShell(Remove-Item *)", "allow"),
    ("PowerShell", "rm x", "Bash(rm *)", "deny"),
    ("PowerShell", "bash -c 'rm x'", "Bash(rm *)", "deny"),
    ("PowerShell", "ls; & /bin/rm x", "Bash(rm *)", "deny"),
    ("PowerShell", "wsl git push", "Bash(git push *)", "deny"),
    ("PowerShell", "Get-Date", "Bash(rm *)", "allow"),
]


@pytest.mark.parametrize(("tool", "command", "rule", "expected"), ACROSS)
def test_what_one_shell_may_not_do_it_may_not_do_through_the_other(
    tool: str, command: str, rule: str, expected: str, tmp_path: Path
) -> None:
    world = World(tmp_path, rules={"allow": ["Bash", "PowerShell"], "deny": [rule]})

    assert world.says(tool, {"command": command}) == expected


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "auto"])
@pytest.mark.parametrize("command", ["pwsh -c ls", "powershell -Command Get-Date", "pwsh --version", "pwsh"])
def test_powershell_in_bash_is_never_taken_for_reading(mode: str, command: str, tmp_path: Path) -> None:
    assert World(tmp_path, mode=mode).bash(command) == "ask"
