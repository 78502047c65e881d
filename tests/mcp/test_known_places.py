"""Deny and ask rules see the files and addresses that the input of a foreign tool names; nothing is allowed for it."""

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail import Policy
from handrail.mcp.known_places import MAX_TEXTS, ServerPlace, known_places, web_address
from handrail.mcp.offers import RemoteTool
from handrail.mcp.peer import OnProgress
from handrail.mcp.tools import McpTool
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.tools.access import Access
from handrail.tools.output import Output
from handrail.tools.permission import Verdict


class Caller:
    """A server of which only the place matters."""

    name = "fs"

    def __init__(self, address: str = "", folder: str = "") -> None:
        self.place = ServerPlace(address, folder)

    async def call(self, tool: str, given: Mapping[str, Any], call_id: str, on_progress: OnProgress) -> Output:
        raise AssertionError("no call is made here")


def tool(caller: Caller, properties: Mapping[str, Any] | None = None, **annotations: Any) -> McpTool:
    schema = {"type": "object", "properties": dict(properties or {})}
    return McpTool(caller, RemoteTool("do", "", schema, annotations, {}))


def policy_of(cwd: Path | str, mode: str = "default", **rules: list[str]) -> Policy:
    policy = Policy.empty(str(cwd), str(HOME)).with_mode(mode)
    for kind, texts in rules.items():
        policy = policy.adding(Behaviour(kind), texts, RuleSource("project", folder=str(cwd)))
    return policy


HOME = Path("/home/someone")


@pytest.fixture(name="project")
def fixture_project(tmp_path: Path) -> Path:
    (tmp_path / ".env").write_text("KEY=1")
    (tmp_path / "src").mkdir()
    (tmp_path / "link").symlink_to(".env")
    return tmp_path


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        pytest.param({"path": ".env"}, "Read(.env)", id="the argument's name says that it is a path"),
        pytest.param({"filePath": "src/../.env"}, "Read(.env)", id="by a way around"),
        pytest.param({"path": "gone/../.env"}, "Read(.env)", id="through a folder that is not there"),
        pytest.param({"path": "http:/../.env"}, "Read(.env)", id="a path that looks like an address"),
        pytest.param({"paths": ["a", ".env"]}, "Read(.env)", id="one of several"),
        pytest.param({"paths": "a\n.env"}, "Read(.env)", id="one of several lines"),
        pytest.param({"what": "{cwd}/.env"}, "Read(.env)", id="an absolute path"),
        pytest.param({"what": "  {cwd}/.env\n"}, "Read(.env)", id="with blanks around it"),
        pytest.param({"what": "file://{cwd}/.env"}, "Read(.env)", id="an address of a file"),
        pytest.param({"what": "FILE://localhost{cwd}/%2Eenv"}, "Read(.env)", id="an encoded address of a file"),
        pytest.param({"what": ".env"}, "Read(.env)", id="a file that is there"),
        pytest.param({"deep": [{"er": {"what": "link"}}]}, "Read(.env)", id="a link to it, deep inside"),
        pytest.param({"files": {"{cwd}/.env": "x"}}, "Read(.env)", id="a key"),
        pytest.param({"destination": "new.key"}, "Edit(*.key)", id="a file that would be written"),
        pytest.param({"path": "src"}, "Read(src/**)", id="a folder whose files are all denied"),
        pytest.param({"path": "~/.ssh/id"}, "Read(~/.ssh/**)", id="in the home folder"),
        pytest.param({"url": "https://evil.com/a"}, "WebFetch(domain:evil.com)", id="an address"),
        pytest.param({"text": "wss://me:pw@Evil.com:99"}, "WebFetch(domain:evil.com)", id="another kind of address"),
        pytest.param({"url": "evil.com/a"}, "WebFetch(domain:evil.com)", id="an address without its scheme"),
        pytest.param({"url": "https:\\\\ev\til.com"}, "WebFetch(domain:evil.com)", id="a sloppy address"),
        pytest.param({"url": "\x01https://evil.com"}, "WebFetch(domain:evil.com)", id="behind what parsers leave out"),
        pytest.param({"url": "git+https://evil.com/a"}, "WebFetch(domain:evil.com)", id="an address of a repository"),
        pytest.param({"url": "ftp://evil.com/a"}, "WebFetch(domain:evil.com)", id="an address that is not the web"),
        pytest.param({"url": "git@evil.com:a/b"}, "WebFetch(domain:evil.com)", id="an address as ssh has it"),
        pytest.param({"url": "evil.com\\a"}, "WebFetch(domain:evil.com)", id="the wrong slash"),
        pytest.param({"host": "evil.com."}, "WebFetch(domain:evil.com)", id="a name with a dot at its end"),
        pytest.param({"host": "wiki"}, "WebFetch(domain:wiki)", id="a name without a dot"),
        pytest.param({"host": "10.0.0.1"}, "WebFetch(domain:10.0.0.1)", id="a number"),
        pytest.param({"uri": "file://src/a"}, "Read(src/**)", id="an address of a file that lacks a slash"),
        pytest.param({"uri": "file:src/a"}, "Read(src/**)", id="an address of a file without any"),
        pytest.param({"uri": "file://{cwd}/src/#a"}, "Read(src/#a)", id="a file whose name has a hash"),
        pytest.param({"path": "$HOME/.ssh/id"}, "Read(~/.ssh/**)", id="in the home folder, by its variable"),
        pytest.param({"path": "${HOME}/.ssh/id"}, "Read(~/.ssh/**)", id="the same variable in braces"),
    ],
)
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_rule_about_a_place_outweighs_the_consent_to_the_tool(
    values: dict[str, Any], rule: str, kind: str, project: Path
) -> None:
    written = json.loads(json.dumps(values).replace("{cwd}", str(project)))
    rules: Any = {kind: [rule]}
    policy = policy_of(project, allow=["mcp__fs"], **rules)

    decision = policy.decide(tool(Caller(folder=str(project)), readOnlyHint=True), written)

    assert decision.verdict is Verdict(kind)
    assert rule in decision.reason
    assert policy.decide(tool(Caller()), {"what": "else"}).verdict is Verdict.ALLOW


@pytest.mark.parametrize("folder", [".", "{cwd}", "src/..", "file://{cwd}", "deep"])
@pytest.mark.parametrize("kind", ["deny", "ask"])
def test_a_folder_that_holds_kept_back_files_is_asked_about_unless_a_rule_vouches_for_the_tool(
    folder: str, kind: str, project: Path
) -> None:
    (project / "deep" / "er").mkdir(parents=True)
    (project / "deep" / "er" / "link").symlink_to(project / ".env")
    given = {"path": folder.replace("{cwd}", str(project))}
    rules: Any = {kind: ["Read(.env)"]}

    decision = policy_of(project, allow=["mcp__fs"], **rules).decide(tool(Caller(folder=str(project))), given)
    assert decision.verdict is Verdict.ASK
    assert ".env" in decision.reason
    assert "Read(.env)" in decision.reason

    vouched = policy_of(project, allow=["mcp__fs__do"], **rules).decide(tool(Caller(folder=str(project))), given)
    assert vouched.verdict is Verdict.ALLOW
    elsewhere = policy_of(project, allow=["mcp__fs"], **rules).decide(tool(Caller()), {"path": "src"})
    assert elsewhere.verdict is Verdict.ALLOW
    unguarded = policy_of(project, allow=["mcp__fs"]).decide(tool(Caller()), given)
    assert unguarded.verdict is Verdict.ALLOW


@pytest.mark.parametrize("transport", ["https", "wss"])
def test_the_address_of_a_server_is_one_that_its_calls_reach(transport: str, project: Path) -> None:
    remote = tool(Caller(f"{transport}://mcp.example.com/v1"))
    assert policy_of(project, allow=["mcp__fs"]).decide(remote, {}).verdict is Verdict.ALLOW
    denied = policy_of(project, allow=["mcp__fs"], deny=["WebFetch(domain:*.example.com)"]).decide(remote, {})
    assert denied.verdict is Verdict.DENY


def test_a_server_on_this_machine_that_the_person_configured_is_not_asked_about_again(project: Path) -> None:
    local = tool(Caller("http://localhost:3000/mcp"))
    assert policy_of(project, allow=["mcp__fs"]).decide(local, {"url": "http://localhost:80"}).verdict is Verdict.ALLOW


def test_a_rule_for_a_built_in_tool_as_a_whole_is_not_about_tools_of_servers(project: Path) -> None:
    policy = policy_of(project, allow=["mcp__fs"], deny=["WebFetch"])
    assert policy.decide(tool(Caller("https://mcp.example.com")), {"url": "https://a.com"}).verdict is Verdict.ALLOW


def test_credentials_of_the_machine_and_files_that_run_later_are_asked_about_despite_consent(project: Path) -> None:
    (project / ".git").mkdir()
    policy = policy_of(project, allow=["mcp__fs"])
    for values in ({"url": "http://169.254.169.254/latest"}, {"host": "2852039166"}, {"path": ".git/hooks/pre-commit"}):
        assert policy.decide(tool(Caller()), values).verdict is Verdict.ASK


@pytest.mark.parametrize("allow", ["Read", "Read(**)", "Edit(**)", "WebFetch", "WebFetch(domain:a.com)"])
@pytest.mark.parametrize("values", [{"path": "src/a"}, {"url": "https://a.com"}, {}])
@pytest.mark.parametrize("mode", ["default", "acceptEdits"])
def test_no_rule_about_places_allows_a_call_of_a_server(
    allow: str, values: dict[str, Any], mode: Any, project: Path
) -> None:
    hinting = tool(Caller("https://a.com"), readOnlyHint=True, destructiveHint=False)
    assert policy_of(project, allow=[allow], mode=mode).decide(hinting, values).verdict is Verdict.ASK


def test_an_input_with_more_texts_than_are_looked_at_is_asked_about_where_rules_keep_files_back(project: Path) -> None:
    many = {"texts": ["x"] * MAX_TEXTS, "last": str(project / ".env")}
    nested: Any = str(project / ".env")
    for _ in range(150):
        nested = [nested]
    guarded = policy_of(project, allow=["mcp__fs"], deny=["Read(.env)"])
    assert guarded.decide(tool(Caller()), many).verdict is Verdict.ASK
    assert guarded.decide(tool(Caller()), {"a": nested}).verdict is Verdict.ASK
    assert policy_of(project, allow=["mcp__fs"]).decide(tool(Caller()), many).verdict is Verdict.ALLOW


def test_a_schema_says_which_arguments_are_paths(project: Path) -> None:
    schema = {"properties": {"where": {"items": {"format": "file-path"}}}}
    assert known_places({"where": ["new"]}, schema, ["/w"]).files == ("/w/new",)
    assert known_places({"where": ["new"]}, {}, ["/w"]).files == ()


@pytest.mark.parametrize(
    "text",
    ["file:" * 5_000, "file:" * 50 + "%25" * 50 + "?#", "a@" * 50_000, "/" * 100_000, "a:" * 50_000, "[" * 100_000],
    ids=["nested", "nested and encoded", "users", "slashes", "ports", "brackets"],
)
def test_a_text_that_is_made_to_take_long_names_few_places(text: str) -> None:
    found = known_places({"url": text, "path": text, "what": text}, {}, ["/w"])
    assert len(found.files) + len(found.addresses) < 20


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=8), inner, max_size=4),
    max_leaves=20,
)


@given(st.dictionaries(st.text(max_size=8), JSON, max_size=5), JSON)
def test_any_input_and_any_schema_give_absolute_paths_or_those_of_a_home(values: dict[str, Any], schema: Any) -> None:
    found = known_places(values, schema if isinstance(schema, dict) else {}, ["/w"])
    assert all(each.startswith(("/", "~")) for each in found.files)
    assert all(web_address(each) == each for each in found.addresses)


@given(JSON, st.integers(0, 3), st.sampled_from(["what", "path", "url"]))
def test_a_denied_file_is_found_wherever_it_stands_in_an_input(beside: Any, depth: int, name: str) -> None:
    folder = os.path.realpath("/tmp")
    value: Any = f"{folder}/secret/file"
    for level in range(depth):
        value = [beside, value] if level % 2 else {"in": value, "beside": beside}
    policy = policy_of(folder, allow=["mcp__fs"], deny=[f"Read(/{folder}/secret/**)"])
    assert policy.decide(tool(Caller()), {name: value}).verdict is Verdict.DENY


def test_what_is_known_is_recorded_and_read_again() -> None:
    known = Access.unknown(width="shared")._replace(may_touch=("/a",), may_reach=("https://b/",))
    assert Access.from_json(json.loads(json.dumps(known.as_json()))) == known
