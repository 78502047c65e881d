"""`handrail permissions`: explain, test, lint and simulate, by the same code path as real decisions."""

import asyncio
import io
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from tests.dispatch.approval.desk import Bash, Desk, Someone, Write
from tests.permissions.world import HOME, PROJECT, World, lines
from tests.shell.corpus_report import lines as command_lines

from handrail.cli.main import run
from handrail.conversation.redact import build_redactor
from handrail.dispatch.approval.audit import Audit
from handrail.permissions.facts import NOTHING_SAID, Evidence
from handrail.processes.sandbox.choose import Method, MethodTrial
from handrail.tools.permission import Allow, Deny, Opinion, Strength, Verdict
from handrail.tools.request import CallRequest
from handrail.transcripts.store import TranscriptStore

SETTINGS = {
    "permissions": {
        "allow": ["Bash(npm run test *)", "Edit(/src/**)"],
        "ask": ["Bash(git push *)"],
        "deny": ["Read(.env)", "Bash(rm *)"],
    }
}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "settings.json").write_text(json.dumps(SETTINGS, indent=2))
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to("/etc")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HOME", "/home/nobody")
    return tmp_path


def printed(capsys: pytest.CaptureFixture[str], *arguments: str) -> tuple[int, str]:
    code = run(["permissions", *arguments])
    return code, capsys.readouterr().out


def explained(capsys: pytest.CaptureFixture[str], *arguments: str) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(printed(capsys, "explain", "--json", *arguments)[1])
    return told


# explain


def test_rules_of_a_folder_that_is_not_trusted_are_named_as_a_change_and_count_with_trust(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "settings.json").write_text(json.dumps(SETTINGS))
    call, other = "Bash(npm run test -q)", "Bash(git push)"
    (project / "examples").write_text('{"tool": "Bash", "input": {"command": "npm run test -q"}, "expect": "allow"}')

    told, asked = explained(capsys, call), explained(capsys, other)

    assert told["decision"] == "ask"
    assert told["changes"][0]["change"] == "if the folder is trusted: handrail trust"
    assert told["changes"][0]["decision"] == "allow"
    assert "trusted" not in str(asked["changes"])
    assert explained(capsys, call, "--trust")["decision"] == "allow"
    assert [printed(capsys, "test", "examples", *flags)[0] for flags in ((), ("--trust",))] == [1, 0]


def test_explain_lists_a_folder_once_however_many_answers_it_tries(
    project: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    listed: list[str] = []
    scandir = os.scandir

    def list_folder(folder: Any) -> Any:
        listed.append(os.fspath(folder))
        return scandir(folder)

    monkeypatch.setattr(os, "scandir", list_folder)

    explained(capsys, "Bash(rm -r src)", "--settings", "settings.json")

    assert [folder for folder in listed if folder.rstrip("/").endswith("/src")] == [f"{project}/src/"]


@pytest.mark.proves("P3", "G21", "G11")
def test_explain_names_the_rule_its_file_and_line_and_what_each_layer_says(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    told = explained(capsys, "Bash", '{"command": "npm run test && rm x"}', "--settings", "settings.json")

    assert (told["decision"], told["layer"]) == ("deny", "deny rule")
    assert told["rule"] == "settings of this run settings.json:12: Bash(rm *)"
    assert [(each["asked"], each["says"]) for each in told["opinions"] if each["says"]] == [
        ("deny rules", "deny"),
        ("allow rules", "ask"),
    ]
    assert [each["decides"] for each in told["opinions"] if each["says"]] == [True, False]
    assert {each["asked"] for each in told["opinions"]} >= {"hooks", "classifier", "mode", "critical paths"}
    assert told["matched"] == [
        {"rule": "Bash(rm *)", "kind": "deny", "source": "settings of this run settings.json:12"}
    ]
    assert [(each["command"], each["read_only"], each["needs_rule"]) for each in told["segments"]] == [
        ("npm run test", False, True),
        ("rm x", False, True),
    ]
    assert told["segments"][0]["why"] == "runs a script of the project"
    assert (told["changes"][0]["change"], told["changes"][0]["decision"]) == (
        "without the deny rule Bash(rm *) (settings of this run settings.json:12)",
        "ask",
    )


def test_explain_takes_a_domain_as_rules_write_it(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    denied = '{"permissions": {"deny": ["WebFetch(domain:*.example.com)"]}}'

    assert explained(capsys, "WebFetch(domain:a.example.com)", "--settings", denied)["decision"] == "deny"
    assert explained(capsys, "WebFetch(domain:example.org)", "--settings", denied)["decision"] == "ask"


def test_explain_shows_where_paths_lead(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = explained(capsys, "Read(link/hosts)")

    assert told["decision"] == "ask"
    assert told["paths"] == [
        {
            "path": "link/hosts",
            "access": "read",
            "real": "/etc/hosts",
            "kind": "file",
            "doubt": "'link/hosts' leads to '/etc/hosts', which is outside the working folders",
            "protected": "",
        }
    ]


def test_every_change_that_explain_names_was_tried(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = explained(capsys, "Bash(npm publish)")
    changes = {each["change"]: each["decision"] for each in told["changes"]}

    assert changes == {
        "with the allow rule Bash(npm publish *) in .handrail/settings.local.json": "allow",
        "in mode plan": "deny",
        "in mode dontAsk": "deny",
        "in mode bypassPermissions": "allow",
    }
    assert explained(capsys, "Bash(npm publish)", "--mode", "dontAsk")["decision"] == "deny"


@pytest.mark.parametrize(
    ("command", "why"),
    [
        pytest.param("git -C . push", "sends commits to another repository", id="a sub-command after an option"),
        pytest.param("git frobnicate", "may change the repository", id="a sub-command that is not known"),
        pytest.param("curl -s https://a.test", "reaches the network", id="options that are not listed add nothing"),
        pytest.param("python3 -m pytest -q", "runs the tests of the project", id="a module of Python"),
        pytest.param("npx tsc", "fetches a package and runs it", id="a program that starts others"),
        pytest.param("find . -exec make {} +", "runs what the build files of the project say", id="inside another"),
        pytest.param("./nosuch x", "./nosuch: a program named by its path is not trusted", id="a name proves nothing"),
        pytest.param("nosuch -x", "nosuch: what it does is not known", id="a program that is not known"),
        pytest.param("sort --frob a", "--frob: option '--frob' of sort is not listed", id="an option alone"),
    ],
)
def test_a_question_says_what_a_command_is_for(
    command: str, why: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    reason = explained(capsys, "Bash", json.dumps({"command": command}))["reason"]

    assert reason.endswith(f" not read-only: {why}")


def test_explain_in_words(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, text = printed(capsys, "explain", "Bash(git push && git status)", "--settings", "settings.json")

    assert code == 1
    assert text.startswith("ask: the rule Bash(git push *) matches\n  settings of this run settings.json:8")
    assert "> ask rules        ask    the rule Bash(git push *) matches" in text
    assert "  git status: read-only, needs a rule: only where the repository names no programs" in text
    assert "only while\n  " in text
    assert "  deny   in mode plan" in text


@pytest.mark.parametrize(
    ("call", "values"),
    [
        ("Bash(ls)", {"command": "ls"}),
        ("Read(a b)", {"file_path": "a b"}),
        ("WebFetch(https://example.com/a(b))", {"url": "https://example.com/a(b)"}),
        ("Task(Explore)", {"subagent_type": "Explore"}),
        ("mcp__github__get_issue", {}),
        ("Glob", {}),
    ],
)
def test_a_call_can_be_written_like_a_rule(
    call: str, values: dict[str, str], project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert explained(capsys, call)["input"] == values


@pytest.mark.proves("R12")
@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("explain", "Bash", "{"), "the input is not JSON"),
        (("explain", "Bash", "[]"), "an object is needed"),
        (("explain", "Bash(ls"), "the bracket is not closed"),
        (("explain", "Sleep(3)"), "Sleep takes nothing in brackets"),
        (
            ("explain", "Bash"),
            "The required field 'command' is missing. Give its input as JSON: '{\"command\": ...}', or",
        ),
        (("explain", "Sleep"), "this is not a valid call of Sleep: The required field 'seconds' is missing."),
        (("explain", "Bash", '{"comand": "ls"}'), "The field 'comand' is unexpected. Did you mean 'command'?"),
        (("explain", "Bash", '{"command": 5}'), "The field 'command' is wrong"),
        (("explain", "Write", '{"content": "x"}'), "The required field 'file_path' is missing"),
        (("explain", "bash(ls)"), "there is no tool 'bash'. Names keep their case: Bash."),
        (("explain", "Raed", "{}"), "there is no tool 'Raed'. Did you mean 'Read'?"),
        (("explain", "Bsh", "ls"), "there is no tool 'Bsh'. Did you mean 'Bash'?"),
        (("explain", "Bash", "git push"), "Or write the call as a rule: 'Bash(git push)'."),
        (("explain", "Zzyzx", "{}"), "there is no tool 'Zzyzx'. `handrail tools` lists them."),
        (("explain", "Bash", "{}", "--mode", "brave"), "there is no mode 'brave'"),
        (("explain", "Bash", "{}", "--permission-mode", "brave"), "there is no mode 'brave'"),
        (("explain", "Bash", "{}", "--cwd", "nowhere"), "--cwd: 'nowhere' is not a folder"),
        (("test", "/dev/null"), "/dev/null holds no examples, so nothing was tested"),
        (("explain", "Bash", "{}", "--settings", "{bad"), "--settings:1: a key in double quotes"),
        (("lint", "--settings", '{"permissions": []}'), "must be an object"),
    ],
)
def test_what_cannot_be_read_is_a_usage_error_with_the_reason(
    arguments: tuple[str, ...], message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["permissions", *arguments]) == 2
    assert message in capsys.readouterr().err


def test_empty_settings_are_a_variable_that_is_not_set(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        run(["permissions", "lint", "--settings", ""])

    assert "--settings: the value is empty; give one, or leave the flag out" in capsys.readouterr().err


def test_an_installed_tool_is_asked_about_itself(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "Sleep", '{"seconds": 1}')["decision"] == "allow"
    assert explained(capsys, "mcp__db__query", "{}")["decision"] == "ask"  # its server may come later


def test_more_working_folders_can_be_named(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert explained(capsys, "Read(/etc/hosts)")["decision"] == "ask"
    assert explained(capsys, "Read(/etc/hosts)", "--add-dir", "/etc")["decision"] == "allow"
    assert explained(capsys, "Read(hosts)", "--cwd", "/etc")["paths"][0]["real"] == "/etc/hosts"


# test


def examples(folder: Path, *values: dict[str, Any]) -> str:
    file = folder / "examples.jsonl"
    file.write_text("".join(json.dumps(each) + "\n" for each in values))
    return str(file)


def bash(command: str, expect: Any, **more: Any) -> dict[str, Any]:
    return {"id": command, "tool": "Bash", "input": {"command": command}, "expect": expect, **more}


def test_examples_that_come_out_as_expected_end_with_zero(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = examples(
        project,
        bash("npm run test", "allow"),
        bash("git push", ["ask", "deny"]),
        bash("echo $(rm x)", "deny"),
        {"tool": "WebFetch", "input": {"url": "not a url"}, "expect": "error"},
        {"tool": "mcp__a__b", "input": {"anything": [1]}, "expect": "ask"},
    )

    assert printed(capsys, "test", file, "--settings", "settings.json") == (0, "5 of 5 as expected\n")


def test_an_example_that_comes_out_otherwise_is_named_with_its_line(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = examples(project, bash("ls", "allow"), bash("rm x", ["allow", "ask"]))
    rule = "settings of this run settings.json:12: Bash(rm *)"
    code, text = printed(capsys, "test", file, "--settings", "settings.json")

    assert code == 1
    assert text.splitlines() == [
        f"{file}:2: rm x: deny, expected allow or ask: the rule Bash(rm *) matches ({rule})",
        "1 of 2 as expected",
    ]


def test_json_tells_everything_about_each_example(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rules = {"allow": ["Bash"], "ask": ["Bash(git *)"], "deny": ["Bash(git push *)", "Bash("]}
    code, text = printed(capsys, "test", examples(project, bash("git push", "ask", rules=rules)), "--json")
    source = f"test {project}/examples.jsonl:1"

    assert code == 1
    assert json.loads(text) == {
        "id": "git push",
        "decision": "deny",
        "ok": False,
        "layer": "deny rule",
        "rule": f"{source}: Bash(git push *)",
        "matched": [
            {"rule": "Bash(git push *)", "kind": "deny", "source": source},
            {"rule": "Bash(git *)", "kind": "ask", "source": source},
            {"rule": "Bash", "kind": "allow", "source": source},
        ],
        "hooks": [],
        "sandbox": None,
        "reason": "the rule Bash(git push *) matches",
    }


def test_an_example_brings_its_own_surroundings(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    here = {"cwd": PROJECT, "home": HOME, "working_dirs": [PROJECT]}
    read = {"tool": "Read", "input": {"file_path": f"{PROJECT}/a"}}
    file = examples(
        project,
        {**read, "expect": "ask"},
        {**read, "expect": "allow", "cwd": PROJECT},
        {**read, "expect": "ask", **here, "working_dirs": ["/home/dev/other"]},
        {**read, "expect": "deny", **here, "rules": {"deny": ["Read(~/proj/**)"]}},
        bash("npm run test", "allow"),
        bash("npm run test", "ask", rules={}),
        bash("touch a", "allow", mode="acceptEdits"),
        bash("touch a", "allow", mode="bypassPermissions"),
        bash("touch a", "deny", mode="dontAsk"),
        bash("git log", "ask", cwd=PROJECT, rules={"ask": ["Bash(git *)"]}),
    )

    assert printed(capsys, "test", file, "--settings", "settings.json") == (0, "10 of 10 as expected\n")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "this is not JSON"),
        ("[]", "this is not an object"),
        ('{"tool": "Bash", "expect": "ask"}', "tool must be a name and input an object"),
        ('{"tool": "bash", "input": {}, "expect": "ask"}', "there is no tool 'bash'. Names keep their case: Bash."),
        (
            '{"tool": "Bash", "input": {"comand": "ls"}, "expect": "ask"}',
            "this is not a valid call of Bash: The required field 'command' is missing. The field 'comand' is",
        ),
        ('{"tool": "Bash", "input": {}, "expect": "maybe"}', "expect is 'maybe'"),
        ('{"tool": "Bash", "input": {}, "expect": []}', "expect is []"),
        ('{"tool": "Bash", "input": {}}', "expect is missing; add the decision that is right"),
        (
            '{"tool": "Bash", "input": {}, "expected": "ask"}',
            "'expected' is not a field of an example. Did you mean 'expect'?",
        ),
        (
            '{"tool": "Bash", "input": {}, "expect": "ask", "mod": "plan"}',
            "'mod' is not a field of an example. Did you mean",
        ),
        ('{"tool": "Bash", "input": {}, "expect": "ask", "mode": "x"}', "there is no mode 'x'"),
        ('{"tool": "Bash", "input": {}, "expect": "ask", "cwd": "src"}', "cwd is 'src', not an absolute path"),
        ('{"tool": "Bash", "input": {}, "expect": "ask", "working_dirs": "/"}', "working_dirs is not a list"),
        ('{"tool": "Bash", "input": {}, "expect": "ask", "rules": {"alow": []}}', "there is no kind of rule 'alow'"),
        (
            '{"tool": "Bash", "input": {}, "expect": "ask", "rules": {"allow": "Bash"}}',
            "rules is not an object of lists",
        ),
    ],
)
def test_a_file_that_cannot_be_read_ends_with_two_and_the_line(
    line: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "bad.jsonl").write_text(f"\n{line}\n")

    assert run(["permissions", "test", "bad.jsonl"]) == 2
    assert f"bad.jsonl:2: {message}" in capsys.readouterr().err
    assert run(["permissions", "test", "missing.jsonl"]) == 2


def corpus(folder: Path) -> list[dict[str, Any]]:
    """Every line of our corpora as an example that expects what the direct way says."""
    made: list[dict[str, Any]] = []
    for name in ("rules", "paths", "urls"):
        for at, line in enumerate(lines(name)):
            if line.get("rule_source_dir") or line.get("cwd", PROJECT) != PROJECT:
                continue  # rules of an example start from its folder
            world = World(folder / f"{name}{at}", working_dirs=line.get("working_dirs", (PROJECT,)))
            world.build(line.get("fs", {}))
            if name == "rules":
                world.rules = {line["rule_kind"]: [line["rule"]]}
            elif name == "urls":
                world.rules = line["rules"]
            made.append(as_example(f"{name} {line['id']}", world, *call_of(name, line)))
    world = World(folder / "bash")
    made += [as_example(each.id, world, "Bash", {"command": each.command}) for each in command_lines()]
    return made


def call_of(name: str, line: dict[str, Any]) -> tuple[str, dict[str, Any]]:
    if name == "rules":
        return line["tool"], line["input"]
    if name == "urls":
        return "WebFetch", {"url": line["url"]}
    return "Read" if line["operation"] == "read" else "Write", {"file_path": line["file_path"]}


def as_example(name: str, world: World, tool: str, values: dict[str, Any]) -> dict[str, Any]:
    if tool == "Bash":
        values = {key: text.replace(HOME, world.at(HOME)) for key, text in values.items()}
    moved = {key: world.at(value) if isinstance(value, str) else value for key, value in values.items()}
    return {
        "id": name,
        "tool": tool,
        "input": moved,
        "expect": world.says(tool, moved),
        "cwd": world.at(world.cwd),
        "home": world.at(world.home),
        "working_dirs": [world.at(each) for each in world.working_dirs],
        "rules": dict(world.rules),
    }


@pytest.mark.proves("G11")
def test_the_corpora_get_the_same_answers_as_on_the_direct_way(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = corpus(project)
    code, text = printed(capsys, "test", examples(project, *made))

    assert (code, text) == (0, f"{len(made)} of {len(made)} as expected\n")
    assert len(made) > 800


def test_nothing_is_executed(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    file = examples(project, bash(f"touch {project}/ran", ["allow"], mode="bypassPermissions"))

    assert printed(capsys, "test", file)[0] == 0
    assert not (project / "ran").exists()


# conditions


@pytest.fixture
def repository(project: Path) -> Path:
    """A project whose own configuration makes plain `git status` run a program, which leaves a marker."""
    subprocess.run(["git", "init", "-q"], cwd=project, check=True)
    subprocess.run(["git", "config", "filter.x.clean", "touch ran; cat"], cwd=project, check=True)
    (project / ".gitattributes").write_text("* filter=x\n")
    return project


UNMET = "the repository's configuration sets filter.x.clean, which runs a program"


@pytest.mark.proves("X19")
def test_all_three_judge_the_conditions_of_a_call_and_name_the_unmet_one(
    repository: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(repository / "state"))
    session_in(repository / "state", repository, "mine", "git status")
    file = examples(repository, bash("git status", "ask"))

    called = json.loads(called_json(capsys, "Bash", {"command": "git status"}))
    explained_call = explained(capsys, "Bash(git status)")
    tested = json.loads(printed(capsys, "test", "--json", file)[1])
    [simulated] = json.loads(printed(capsys, "simulate", "--session", "mine", "--json")[1])["changed"]

    assert called["status"] == "denied"
    assert not (repository / "ran").exists()
    assert (explained_call["decision"], tested["decision"], simulated["after"]) == ("ask", "ask", "ask")
    for reason in (explained_call["reason"], tested["reason"], simulated["reason"]):
        assert UNMET in reason


def plant(project: Path, kind: str) -> None:
    """Something for which a line that only reads is asked about; a program of it leaves a marker."""

    def git(*words: str, where: Path = project) -> None:
        who = ("-c", "user.name=a", "-c", "user.email=a@b.example")
        subprocess.run(["git", *who, *words], cwd=where, check=True, capture_output=True)

    inner = project / "inner"
    inner.mkdir()
    for folder in (inner, project):
        git("init", "-q", where=folder)
        (folder / ".gitattributes").write_text("* filter=x diff=x\n")
        (folder / "f.txt").write_text("1\n")
        git("add", "f.txt", ".gitattributes", *(["inner"] if folder == project else []), where=folder)
        git("commit", "-qm", "one", where=folder)
        (folder / "f.txt").write_text("2\n")
    runs = f"touch {project}/ran; cat"
    if kind in ("filter.x.clean", "diff.external", "diff.x.textconv", "gpg.program"):
        git("config", kind, runs)
        git("config", "log.showSignature", "true")
    elif kind == "inner":
        git("config", "filter.x.clean", runs, where=inner)
    elif kind == "elsewhere":
        elsewhere = Path(tempfile.mkdtemp(dir=project.parent)) / "git"
        (project / ".git").rename(elsewhere)
        (project / ".git").write_text(f"gitdir: {elsewhere}\n")
    elif kind == "include":
        git("config", "include.path", "../more.gitconfig")
    elif kind == "program":
        (project / "bin").mkdir()
        (project / "bin" / "ls").write_text(f"#!/bin/sh\ntouch {project}/ran\n")
        (project / "bin" / "ls").chmod(0o755)


CONDITIONS = [
    ("filter.x.clean", "git status", UNMET),
    ("diff.x.textconv", "touch a; git log -p", "sets diff.x.textconv, which runs a program"),
    ("gpg.program", "touch a; git log", "only reads where the repository names no programs to run"),
    ("inner", "git status", "which git enters"),
    ("elsewhere", "git log", "outside the workspace"),
    ("include", "git status", "includes"),
    ("program", "ls", "ls is a program of the project itself"),
    ("none", "git status", ""),
    ("filter.x.clean", "cat f.txt", ""),
    ("inner", "git log", ""),
]


@pytest.mark.proves("X19")
@pytest.mark.needs("git")
@pytest.mark.parametrize(("kind", "line", "unmet"), CONDITIONS, ids=lambda each: each.replace(" ", "-"))
def test_no_condition_is_judged_otherwise_than_a_call_judges_it(
    kind: str, line: str, unmet: str, project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    plant(project, kind)
    state = project.with_name(project.name + "-state")
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(state))
    if kind == "program":
        monkeypatch.setenv("PATH", f"{project}/bin:{os.environ['PATH']}")
    session_in(state, project, "mine", line)
    mode = ["--permission-mode", "acceptEdits"]

    called = json.loads(called_json(capsys, "Bash", {"command": line}, *mode))
    told = explained(capsys, f"Bash({line})", *mode)
    tested = json.loads(printed(capsys, "test", "--json", examples(project, bash(line, "ask")), *mode)[1])
    simulated = json.loads(printed(capsys, "simulate", "--session", "mine", "--json", *mode)[1])["changed"]

    wanted = "ask" if unmet else "allow"
    assert (called["status"] == "denied") is bool(unmet), called
    assert (told["decision"], tested["decision"]) == (wanted, wanted)
    assert [each["after"] for each in simulated] == ([wanted] if unmet else [])
    for reason in (told["reason"], tested["reason"], *(each["reason"] for each in simulated)):
        assert unmet in reason
    assert not (project / "ran").exists()


def test_an_example_in_another_folder_is_judged_by_the_repository_there(
    repository: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    plain = repository / "plain"
    plain.mkdir()
    subprocess.run(["git", "init", "-q"], cwd=plain, check=True)
    file = examples(plain, bash("git status", "allow", cwd=str(plain)))

    assert printed(capsys, "test", file) == (0, "1 of 1 as expected\n")


def called_json(capsys: pytest.CaptureFixture[str], tool: str, values: dict[str, Any], *flags: str) -> str:
    run(["call", "--json", *flags, tool, json.dumps(values)])
    return capsys.readouterr().out


# hooks and sandbox


GUARD = """\
say() { echo '{"hookSpecificOutput": {"hookEventName": "PreToolUse", '"$1"'}}'; }
read -r call
case $call in
*push*) echo 'ask Ann first' >&2; exit 2 ;;
*deploy*) say '"permissionDecision": "allow"' ;;
*rewrite*) say '"updatedInput": {"command": "rm x"}' ;;
esac
"""
AGREES = '{"hookSpecificOutput": {"hookEventName": "PermissionRequest", "decision": {"behavior": "allow"}}}'


def guarded(folder: Path, **more: Any) -> str:
    (folder / "guard.sh").write_text(GUARD)
    command = {"type": "command", "command": f"sh {folder}/guard.sh"}
    hooks = {"PreToolUse": [{"matcher": "Bash", "hooks": [{**command, "if": "Bash(git *)"}, command]}]}
    file = folder / "guarded.json"
    file.write_text(json.dumps({**SETTINGS, "hooks": {**hooks, **more}}))
    return str(file)


def test_explain_names_the_hooks_and_asks_them_only_when_told_to(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = guarded(project)
    call = ("Bash(git push)", "--settings", settings)

    told = explained(capsys, *call)
    answered = explained(capsys, *call, "--run-hooks")
    text = printed(capsys, "explain", *call)[1]

    assert (told["decision"], told["hooks"]["asked"]) == ("ask", False)
    assert [each["event"] for each in told["hooks"]["matching"]] == ["PreToolUse"]  # of two equal ones, one is asked
    assert told["hooks"]["matching"][0]["hook"] == f"sh {project}/guard.sh"
    assert "hooks.PreToolUse[0].hooks[" in told["hooks"]["matching"][0]["source"]
    assert "1 hook would be asked first and may decide otherwise; --run-hooks asks now" in text
    assert (answered["decision"], answered["layer"]) == ("deny", "hooks")
    assert answered["reason"].endswith("objects: ask Ann first")
    assert explained(capsys, "Bash(deploy)", "--settings", settings, "--run-hooks")["decision"] == "allow"
    assert explained(capsys, "Read(a.txt)", "--settings", settings)["hooks"]["matching"] == []
    silent = printed(capsys, "explain", "Bash(make)", "--settings", settings, "--run-hooks")[1]
    assert "1 hook was asked and had no opinion" in silent


def test_an_input_that_a_hook_rewrites_is_what_is_decided(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    told = explained(capsys, "Bash(rewrite)", "--settings", guarded(project), "--run-hooks")

    assert (told["decision"], told["input"]) == ("deny", {"command": "rm x"})
    assert told["rule"].endswith(": Bash(rm *)")


def test_a_hook_that_answers_questions_is_asked_about_questions_only(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    agreeing = {"type": "command", "command": f"echo '{AGREES}'"}
    settings = guarded(project, PermissionRequest=[{"hooks": [agreeing]}])

    asked = explained(capsys, "Bash(make all)", "--settings", settings)
    agreed = explained(capsys, "Bash(make all)", "--settings", settings, "--run-hooks")
    denied = explained(capsys, "Bash(rm x)", "--settings", settings, "--run-hooks")

    assert [each["event"] for each in asked["hooks"]["matching"]] == ["PreToolUse", "PermissionRequest"]
    assert (agreed["decision"], agreed["reason"]) == ("allow", "a hook agreed")
    assert [each["decides"] for each in agreed["opinions"] if each["says"]] == [False, True]
    assert (denied["decision"], [each["event"] for each in denied["hooks"]["matching"]]) == ("deny", ["PreToolUse"])


def test_examples_and_recorded_calls_can_be_put_to_the_hooks_too(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = ("--settings", guarded(project))
    file = examples(project, bash("git push", "ask"), bash("deploy", "ask"), {**bash("a", "ask"), "tool": "Bash"})
    log = asyncio.run(log_of(project))

    assert printed(capsys, "test", file, *settings) == (
        0,
        "3 of 3 as expected; hooks would be asked about 3 of them, which --run-hooks does\n",
    )
    code, text = printed(capsys, "test", file, *settings, "--run-hooks")
    assert (code, text.splitlines()[-1]) == (1, "1 of 3 as expected")
    then = json.loads(printed(capsys, "simulate", "--json", "--audit", log, *settings)[1])
    now = json.loads(printed(capsys, "simulate", "--json", "--audit", log, *settings, "--run-hooks")[1])
    assert then["hooks"] == {"asked": False, "calls": 7}
    changed = [(each["input"].get("command"), each["after"]) for each in now["changed"]]
    assert ("git push", "deny") in changed
    assert ("git push", "deny") not in [(each["input"].get("command"), each["after"]) for each in then["changed"]]


SANDBOXED = {"sandbox": {"enabled": True}, "permissions": {"deny": ["Bash(rm *)"]}}


@pytest.fixture
def working_sandbox(monkeypatch: pytest.MonkeyPatch) -> None:
    """A machine whose sandbox works, as far as questions about calls go."""
    trial = MethodTrial(Method.LANDLOCK, True, "tried")
    monkeypatch.setattr("handrail.processes.sandbox.confine.best", lambda: trial)


@pytest.mark.usefixtures("working_sandbox")
def test_what_would_run_in_the_sandbox_unasked_is_told_by_all_three(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    inside = ("--settings", json.dumps(SANDBOXED))
    excluded = json.dumps({"sandbox": {"enabled": True, "excludedCommands": ["make"]}})

    told = explained(capsys, "Bash(make all)", *inside)
    assert (told["decision"], told["reason"]) == ("allow", "it runs in the sandbox")
    assert told["sandbox"] == {"where": "inside", "unasked": True, "reason": ""}
    assert (
        "sandbox\n  the command would run inside, which needs no consent"
        in printed(capsys, "explain", "Bash(make all)", *inside)[1]
    )
    assert explained(capsys, "Bash(rm x)", *inside)["decision"] == "deny"
    outside = explained(capsys, "Bash(make all)", "--settings", excluded)
    assert (outside["decision"], outside["sandbox"]["where"]) == ("ask", "outside")
    assert explained(capsys, "Read(a.txt)", *inside)["sandbox"] is None

    file = examples(project, bash("make all", "allow"), bash("rm x", "deny"))
    assert printed(capsys, "test", file, *inside) == (0, "2 of 2 as expected\n")
    assert printed(capsys, "test", file)[0] == 1

    report = json.loads(printed(capsys, "simulate", "--json", "--audit", asyncio.run(log_of(project)), *inside)[1])
    assert (report["prompts"]["after"], report["inside_sandbox"]) == (0, 7)


# lint


def test_lint_names_file_line_and_kind(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    wide = {"permissions": {"allow": ["Bash(python *)", "Edit(", "Write(src/**)"], "deny": ["Bash(curl *)"]}}
    (project / "wide.json").write_text(json.dumps(wide, indent=2))
    code, text = printed(capsys, "lint", "--settings", "wide.json")

    assert code == 1
    assert [line.partition(": ")[0] for line in text.splitlines()[:-1]] == [
        "wide.json:5",
        "wide.json:4",
        "wide.json:6",
    ]
    assert "wide: Bash(python *): python can run any program or change any file" in text
    assert text.splitlines()[-1] == "4 rules, 3 remarks"


def test_lint_fails_while_the_rules_of_a_file_are_not_known(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / ".handrail").mkdir()
    (project / ".handrail" / "settings.json").write_text('{"permissions": {"deny": ["Bash(rm *)"')

    assert run(["permissions", "lint"]) == 1
    shown = capsys.readouterr()
    assert shown.out == "0 rules, 0 remarks, and at least one settings file that is broken\n"
    assert ".handrail/settings.json:1: " in shown.err


def test_lint_of_good_rules_has_nothing_to_say(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "lint", "--settings", "settings.json") == (0, "5 rules, 0 remarks\n")
    assert printed(capsys, "lint", "--settings", '{"permissions": {"ask": ["bash"]}}')[1].endswith("1 rule, 1 remark\n")
    code, text = printed(capsys, "lint", "--json", "--settings", '{"permissions": {"allow": ["bash"]}}')

    assert code == 1
    assert json.loads(text) == {
        "kind": "never",
        "rule": "bash",
        "file": "--settings",
        "line": 1,
        "source": "flag",
        "message": "there is no tool 'bash'; names are case-sensitive: Bash",
    }


# simulate


async def log_of(folder: Path) -> str:
    """A session in which a person was asked five times."""
    person = Someone()
    audit = Audit(folder / "audit", build_redactor({"THE_TOKEN": "hush-hush-hush"}))
    desk = Desk(folder, allow=["Bash(make *)"], handler=person, audit=audit)
    for command, answer in (
        ("npm run build", Allow()),
        ("npm run build --watch", Allow()),
        ("npm run lint", Allow()),
        ("git push", Deny("no")),
        ("deploy --token hush-hush-hush", Deny("no")),
    ):
        person.now(answer)
        await desk.bash(command)
    await desk.bash("make all")
    await desk.bash("ls")
    hook = Opinion(Strength.ALLOW, Verdict.ALLOW, "hooks", "the hook said so", "hook.sh")
    await desk.gate.decide(desk.request(Write(), file_path="a.txt"), Evidence(hook=hook))
    return str(audit.file)


def test_the_same_policy_changes_nothing(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = asyncio.run(log_of(project))
    code, text = printed(
        capsys, "simulate", "--audit", log, "--settings", '{"permissions": {"allow": ["Bash(make *)"]}}'
    )

    assert code == 0
    assert text.splitlines() == [
        "8 calls, 0 would be decided differently",
        "questions: 5 then, 5 with this policy",
        "3 of these would be spared by rules that people's answers suggest",
        "  allow Bash(npm run build *)",
        "  allow Bash(npm run lint *)",
        "1 inputs were redacted or cut in the log, so their decisions may differ",
    ]


def test_another_policy_shows_what_would_change(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = asyncio.run(log_of(project))
    other = {"permissions": {"allow": ["Bash(npm run *)"], "deny": ["Bash(git push *)", "Edit(a.txt)"]}}
    code, text = printed(capsys, "simulate", "--json", "--audit", log, "--settings", json.dumps(other))
    told = json.loads(text)

    assert code == 1
    assert [(each["before"], each["after"], *each["input"].values()) for each in told["changed"]] == [
        ("ask", "allow", "npm run build"),
        ("ask", "allow", "npm run build --watch"),
        ("ask", "allow", "npm run lint"),
        ("ask", "deny", "git push"),
        ("allow", "ask", "make all"),
        ("allow", "deny", "a.txt"),
    ]
    assert told["changed"][3]["rule"] == "settings of this run --settings:1: Bash(git push *)"
    assert told["prompts"] == {"before": 5, "after": 2}
    assert told["proposal"] == {"rules": [], "prompts_saved": 0}


def test_no_rule_is_proposed_that_would_let_pass_what_somebody_refused(
    project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    audit = Audit(project / "audit", build_redactor({}))

    async def ask() -> None:
        person = Someone()
        desk = Desk(project, handler=person, audit=audit)
        for command, answer in (("npm run a", Allow()), ("npm run a --force", Deny()), ("make x", Allow())):
            person.now(answer)
            await desk.bash(command)

    asyncio.run(ask())
    told = json.loads(printed(capsys, "simulate", "--json", "--audit", str(audit.file))[1])

    assert told["proposal"] == {"rules": ["Bash(make x *)"], "prompts_saved": 1}


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("{", "this is not a line of an audit log"),
        ('{"v": 1}', "this is not a line of an audit log"),
        ('{"v": 99}', "the log has format 99"),
    ],
)
def test_a_log_that_cannot_be_read_is_a_usage_error(
    line: str, message: str, project: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (project / "log.jsonl").write_text(f"{line}\n")

    assert run(["permissions", "simulate", "--audit", "log.jsonl"]) == 2
    assert message in capsys.readouterr().err
    assert run(["permissions", "simulate", "--audit", "missing.jsonl"]) == 2


def test_the_command_stands_by_itself(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "handrail", "permissions", "explain", "Bash(ls)"],
        capture_output=True,
        text=True,
        check=False,
    )

    assert (done.returncode, done.stdout.splitlines()[0], done.stderr) == (0, "allow: it only reads", "")


SAID = [
    {"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": "npm run build"}},
    {"type": "tool_use", "id": "c2", "name": "Bash", "input": {"command": "git push", "description": "\u2028"}},
    {"type": "tool_use", "id": "c3", "name": "Read", "input": {"file_path": "a.txt"}},
]
HEARD = [
    {"type": "tool_result", "tool_use_id": "c1", "content": "built"},
    {"type": "tool_result", "tool_use_id": "c2", "content": "Bash(git push) was refused: x", "is_error": True},
    {"type": "tool_result", "tool_use_id": "c3", "content": "Read(x) was refused: is what this file says"},
]


def session_in(state: Path, cwd: Path, name: str, command: str = "") -> None:
    opened = TranscriptStore(state / "sessions", build_redactor({})).create(str(cwd), name)
    opened.writer.close()
    said = [{"type": "tool_use", "id": "c1", "name": "Bash", "input": {"command": command}}] if command else SAID
    heard = [] if command else HEARD
    lines = [{"type": "assistant", "message": {"content": said}}, {"type": "user", "message": {"content": heard}}]
    with opened.path.open("a") as file:
        file.writelines(json.dumps({"cwd": str(cwd), **line}, ensure_ascii=False) + "\n" for line in lines)


def test_the_calls_of_a_session_are_decided_again(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(project / "state"))
    session_in(project / "state", project, "mine")
    session_in(project / "state", project / "src", "others")
    rules = json.dumps({"permissions": {"allow": ["Bash(git push *)"]}})

    code, text = printed(capsys, "simulate", "--session", "mine", "--json", "--settings", rules)
    told = json.loads(text)

    assert code == 1
    assert told["calls"] == 3
    assert [(each["input"]["command"], each["before"], each["after"]) for each in told["changed"]] == [
        ("npm run build", "allow", "ask"),
        ("git push", "deny", "allow"),
    ]
    assert json.loads(printed(capsys, "simulate", "--sessions", "--json", "--settings", rules)[1]) == told
    assert run(["permissions", "simulate", "--session", "unheard-of"]) == 2


def test_what_the_audit_log_knows_of_a_sessions_calls_counts(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HANDRAIL_STATE_DIR", str(project / "state"))
    session_in(project / "state", project, "mine")
    audit = Audit(project / "state" / "audit", build_redactor({}), session="mine")

    async def ask() -> None:
        person = Someone()
        desk = Desk(project, handler=person, audit=audit)
        person.now(Allow())
        request = desk.request(Bash(), command="npm run build")
        use = replace(request.use, id="c1")
        made = CallRequest.of(use, request.tool, request.args, request.ctx.replace(use=use))
        await desk.gate.decide(made, NOTHING_SAID)

    asyncio.run(ask())

    told = json.loads(printed(capsys, "simulate", "--session", "mine", "--json")[1])

    assert told["prompts"]["before"] == 1
    assert told["proposal"] == {"rules": ["Bash(npm run build *)"], "prompts_saved": 1}


def test_examples_can_come_from_standard_input(
    project: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = [
        {"id": "a", "tool": "Bash", "input": {"command": "rm x"}, "expect": "deny"},
        {"id": "b\u2028", "tool": "Bash", "input": {"command": "ls"}, "expect": "deny"},
    ]
    text = "\ufeff" + "\r\n".join(json.dumps(line, ensure_ascii=False) for line in lines)
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(text.encode())))

    code, said = printed(capsys, "test", "-", "--settings", "settings.json")

    assert code == 1
    assert said.splitlines()[-1] == "1 of 2 as expected"
    assert said.startswith("-:2: b")
