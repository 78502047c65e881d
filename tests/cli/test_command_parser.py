"""What `handrail COMMAND` says about missing and misspelt words."""

import pytest

from handrail.cli.main import run

SLIPS = [
    pytest.param(
        ["view", "--export", "run.html"],
        "Write one to a file with: handrail sessions export SESSION --format html -o FILE",
        id="a flag of another command",
    ),
    pytest.param(["sessions"], "handrail sessions: error: say which: list, show, ", id="no sub-command"),
    pytest.param(["config"], "handrail config: error: say which: get, set, unset, list, schema", id="with a metavar"),
    pytest.param(
        ["sessions", "lst"],
        "handrail sessions: error: there is no command 'lst'. Did you mean 'list'?",
        id="a misspelt sub-command",
    ),
    pytest.param(
        ["sessions", "zzz"],
        "handrail sessions: error: there is no command 'zzz'. There are list, show, ",
        id="an unknown sub-command",
    ),
    pytest.param(
        ["mcp", "add"], "are required: NAME, COMMAND|URL\n", id="words that may be left out are not asked for"
    ),
    pytest.param(
        ["audit", "--clinet", "x"], "--clinet is not a flag of handrail audit. Did you mean '--client'?", id="flag"
    ),
    pytest.param(["audit", "--clinet=x"], "--clinet is not a flag of handrail audit. Did you mean", id="with a sign"),
    pytest.param(
        ["config", "get", "x", "--scop=y"], "argument --scope: invalid choice: 'y'", id="a short form is known"
    ),
    pytest.param(["config", "get", "x", "--qqq"], "--qqq is not a flag of handrail config get.\n", id="inner flag"),
    pytest.param(["tools", "nope"], "handrail tools: error: unexpected word 'nope'", id="a word too many"),
    pytest.param(
        ["permissions", "explain", "Bash", "--json", "{}", "nope"], "unexpected word 'nope'", id="a word after a flag"
    ),
    pytest.param(
        ["call", "--allowedTools", "Bash", "Read", "{}"],
        "TOOL, JSON. A flag with several values took",
        id="eaten words",
    ),
    pytest.param(["view", "--port", "web"], "--port: 'web' is not a port; choose one from 1 to 65535", id="no number"),
    pytest.param(["serve", "--port", "70000"], "--port: '70000' is not a port; choose one", id="a number too large"),
    pytest.param(["config", "set", "model"], "the following arguments are required: VALUE", id="a missing word"),
]


@pytest.mark.parametrize(("arguments", "says"), SLIPS)
def test_a_slip_in_a_command_is_named_by_the_command_that_was_meant(
    arguments: list[str], says: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as left:
        run(arguments)

    assert left.value.code == 2
    assert says in capsys.readouterr().err


def test_a_flag_may_stand_between_the_words_of_a_command(capsys: pytest.CaptureFixture[str]) -> None:
    run(["permissions", "explain", "Bash", "--json", '{"command": "ls"}'])

    assert '"input": {"command": "ls"}' in capsys.readouterr().out
