"""Rules judge what a tool declares, whoever wrote the tool and however a path is spelled."""

import asyncio
import os
import shlex
from collections.abc import Awaitable, Callable
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from handrail.builtin.table import base_tools
from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.approval.decide import conditions_left_to_tools
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.approval.question import ApprovalAnswer, Question
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.gate import HookAnswer, Rails
from handrail.dispatch.results import ResultStore
from handrail.permissions.modes import MODES
from handrail.permissions.policy import Policy
from handrail.permissions.risk import Level
from handrail.permissions.rules import Behaviour, RuleSource
from handrail.session.services import default_services
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.function import tool
from handrail.tools.outcome import Outcome, Status
from handrail.tools.output import Output
from handrail.tools.permission import Allow, Deny, Opinion, Strength, Verdict
from handrail.tools.pool import AnyTool, Ingredients, assemble
from handrail.tools.raw import RawTool
from handrail.tools.request import CallRequest
from handrail.tools.schema import Input
from handrail.tools.stub import load_tool
from handrail.tools.tool import McpInfo, PromptView, Tool
from tests.permissions.world import ALL_MODES

SECRET = "the secret of the file"


class PathInput(Input):
    where: str


class Peek(Tool[PathInput]):
    """Written as the documentation says: a name, an input, a declaration, a call."""

    name = "Peek"
    input_model = PathInput
    subject = "where"

    def __init__(self, kind: str = "reads", *, read_only: bool = True, declares: bool = True) -> None:
        self._kind, self._read_only, self._declares = kind, read_only, declares

    def prompt(self, view: PromptView) -> str:
        return "Look into a file."

    def is_read_only(self, args: PathInput) -> bool:
        return self._read_only

    def access(self, args: PathInput, run: RunContext) -> Access:
        if not self._declares:
            return super().access(args, run)
        return Access.of(**{self._kind: args.where})  # type: ignore[arg-type]  # kinds of paths only

    async def call(self, args: PathInput, ctx: ToolContext) -> Output:
        return Output(text=(ctx.cwd / Path(args.where).expanduser()).read_text())


class Resolving(Peek):
    """Declares the path that it has worked out, as many tools do."""

    def access(self, args: PathInput, run: RunContext) -> Access:
        path = os.path.normpath(run.cwd / Path(args.where).expanduser())
        return Access.of(**{self._kind: path})  # type: ignore[arg-type]


class FullyResolving(Peek):
    """Follows links before it declares a path."""

    def access(self, args: PathInput, run: RunContext) -> Access:
        path = os.path.realpath(run.cwd / Path(args.where).expanduser())
        return Access.of(**{self._kind: path})  # type: ignore[arg-type]


class Elsewhere(Peek):
    """Reads below a folder of its own."""

    def access(self, args: PathInput, run: RunContext) -> Access:
        return Access.of(**{self._kind: os.path.normpath(run.cwd / "src" / args.where)})  # type: ignore[arg-type]


class WithKeys(Peek):
    """Reads more than it is about."""

    def access(self, args: PathInput, run: RunContext) -> Access:
        return Access.of(reads=(args.where, "keys/.env"))


class Raw(RawTool):
    def __init__(self, kind: str) -> None:
        super().__init__("Raw", {"type": "object", "properties": {"where": {"type": "string"}}, "required": ["where"]})
        self._kind = kind

    def prompt(self, view: PromptView) -> str:
        return "Look into a file."

    def is_read_only(self, args: Json) -> bool:
        return True

    def access(self, args: Json, run: RunContext) -> Access:
        return Access.of(**{self._kind: args["where"]})

    async def call(self, args: Json, ctx: ToolContext) -> Output:
        return Output(text=(ctx.cwd / Path(args["where"]).expanduser()).read_text())


def function(kind: str) -> AnyTool:
    @tool(**{kind: "where"}, name="Function", read_only=True, subject="where")  # type: ignore[call-overload,untyped-decorator]
    def look(where: str) -> str:
        """Look into a file."""
        return Path(where).expanduser().read_text()

    return look  # type: ignore[no-any-return]


def builtin(name: str, folder: Path) -> AnyTool:
    services = default_services({"HOME": str(folder.parent)}, folder)
    entries = {entry.name: entry for entry in base_tools(no_catalog, lambda: services)}
    return load_tool(entries[name].load())


def no_catalog() -> Any:
    raise LookupError


Answering = Callable[[Question], Awaitable[ApprovalAnswer | None]]
Make = Callable[[Path], tuple[AnyTool, Callable[[str], dict[str, Any]]]]


def own(make: Callable[[], AnyTool]) -> Make:
    return lambda _folder: (make(), lambda where: {"where": where})


def shipped(name: str, field: str, **more: Any) -> Make:
    return lambda folder: (builtin(name, folder), lambda where: {field: where, **more})


def commanding(name: str, line: str, **more: Any) -> Make:
    """A tool that runs a command line about the file."""
    return lambda folder: (builtin(name, folder), lambda where: {"command": line.format(quoted(where)), **more})


def quoted(where: str) -> str:
    """The path as a word of the shell, in which `~` still means the home folder."""
    return "~/" + shlex.quote(where[2:]) if where.startswith("~/") else shlex.quote(where)


READING: dict[str, Make] = {
    "a tool": own(Peek),
    "a tool that does not call itself read-only": own(lambda: Peek(read_only=False)),
    "a tool that walks": own(lambda: Peek("walks")),
    "a schema": own(lambda: Raw("reads")),
    "a function": own(lambda: function("reads")),
    "Read": shipped("Read", "file_path"),
    "Grep": shipped("Grep", "path", pattern="secret"),
    "Glob": shipped("Glob", "path", pattern="*"),
    "LSP": shipped("LSP", "file_path", operation="documentSymbol"),
    "Bash": commanding("Bash", "cat -- {}"),
    "Bash, from its input": commanding("Bash", "cat < {}"),
    "Bash, in a line": commanding("Bash", "echo $(head -1 {}) && true"),
    "Monitor": commanding("Monitor", "cat -- {}", description="look"),
}
CHANGING: dict[str, Make] = {
    "a tool that writes": own(lambda: Peek("writes", read_only=False)),
    "a tool that writes and calls itself read-only": own(lambda: Peek("writes")),
    "a tool that removes": own(lambda: Peek("removes", read_only=False)),
    "a schema that removes": own(lambda: Raw("removes")),
    "a function that writes": own(lambda: function("writes")),
    "Write": shipped("Write", "file_path", content="x"),
    "Edit": shipped("Edit", "file_path", old_string="", new_string="x"),
    "NotebookEdit": shipped("NotebookEdit", "notebook_path", new_source="x"),
    "Bash, writing": commanding("Bash", "echo x > {}"),
    "Bash, removing": commanding("Bash", "rm -- {}"),
    "Monitor, writing": commanding("Monitor", "echo x >> {}", description="write"),
}
SPELLINGS = (
    "keys/.env", "./keys//.env", "src/../keys/.env", "{folder}/keys/.env", "~/proj/keys/.env", "alias", "linked/.env",
    "~/proj/src/../linked/.env",
)  # fmt: skip
PATTERNS = ("keys/.env", ".env", "//{folder}/keys/**", "~/proj/keys/*", "/keys")
ALLOWED = (
    "Peek",
    "Raw",
    "Function",
    "Read",
    "Grep",
    "Write",
    "Edit",
    "NotebookEdit",
    "Glob",
    "Bash",
    "Monitor",
    "Bash(cat *)",
    "Read(**)",
    "Edit(**)",
    "Peek(*)",
)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = Path(os.path.realpath(tmp_path_factory.mktemp("home")))
    made = home / "proj"
    for name in ("keys", "src"):
        (made / name).mkdir(parents=True)
    (made / "keys" / ".env").write_text(SECRET)
    (made / "alias").symlink_to("keys/.env")
    (made / "linked").symlink_to("keys")
    return made


class Consenting:
    """Hooks that say yes to everything."""

    async def before(self, request: CallRequest) -> HookAnswer:
        return HookAnswer(Opinion(Strength.ALLOW, Verdict.ALLOW, "hooks", "fine"))

    async def after(self, request: CallRequest, output: Output | None, error: str, seconds: float) -> HookAnswer:
        return HookAnswer()


def policy_in(folder: Path, mode: str = "default", **rules: list[str]) -> Policy:
    source = RuleSource("project", "settings.json", 1, str(folder))
    policy = Policy.empty(str(folder), str(folder.parent)).with_availability(ALL_MODES)
    for kind, texts in rules.items():
        policy = policy.adding(Behaviour(kind), [text.format(folder=str(folder)[1:]) for text in texts], source)
    return policy.with_mode(mode)


class Person:
    """Answers as a function does."""

    who = "person"

    def __init__(self, answer: Answering) -> None:
        self._answer = answer

    async def ask(self, question: Question) -> ApprovalAnswer | None:
        return await self._answer(question)

    def update(self, question: Question) -> None:
        """Nothing is shown."""


def run_in(folder: Path) -> RunContext:
    """A run whose agent has read every file, so that nothing but the rules is in the way of a change."""
    run = RunContext(folder)
    for path in folder.rglob("*"):
        if path.is_file():
            run.files.record(path.resolve(), path.stat(), path.read_bytes())
    return run


def called(
    subject: AnyTool,
    values: dict[str, Any],
    folder: Path,
    policy: Policy,
    *,
    hooks: bool = False,
    ask: Answering | None = None,
) -> Outcome:
    """The outcome of one call that runs through the executor with real rules."""

    async def run() -> Outcome:
        gate = PolicyGate(LivePolicy(lambda: policy), Person(ask) if ask else None, conditions=conditions_left_to_tools)
        rails = Rails(gate, Consenting() if hooks else None)
        pool = assemble(Ingredients(custom=(subject,)))
        async with ToolExecutor(pool, run_in(folder), ResultStore(folder / "big"), rails=rails) as executor:
            executor.add(ToolUse("1", subject.name, values))
            return await anext(executor.rest())

    return asyncio.run(run())


@pytest.mark.proves("R3", "G5", "G22", "A20")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.one_of(
        st.tuples(st.sampled_from(sorted(READING)), st.just("Read")),
        st.tuples(st.sampled_from(sorted(CHANGING)), st.sampled_from(["Read", "Edit"])),
        st.tuples(st.sampled_from([name for name in (*READING, *CHANGING) if name.startswith("a ")]), st.just("")),
    ),
    st.sampled_from(SPELLINGS),
    st.sampled_from(PATTERNS),
    st.sampled_from(MODES),
    st.lists(st.sampled_from(ALLOWED), max_size=3),
    st.booleans(),
)
def test_no_declared_read_or_change_of_a_denied_file_gets_through(
    folder: Path, kind: tuple[str, str], spelling: str, pattern: str, mode: str, allowed: list[str], hooks: bool
) -> None:
    name, rule = kind
    subject, values = {**READING, **CHANGING}[name](folder)
    policy = policy_in(folder, mode, deny=[f"{rule or subject.name}({pattern})"], allow=allowed)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("HOME", str(folder.parent))
        outcome = called(subject, values(spelling.format(folder=folder)), folder, policy, hooks=hooks)

    assert SECRET not in outcome.result.text
    assert (folder / "keys" / ".env").read_text() == SECRET
    assert outcome.status in (Status.DENIED, Status.ERROR)
    assert outcome.decision is None or outcome.decision.verdict is Verdict.DENY


def test_the_property_is_over_every_shipped_tool_that_touches_files_or_runs_commands(folder: Path) -> None:
    """PowerShell programs are not taken apart, so which files they open is not known: see docs/limits.md."""
    names = {name.partition(",")[0] for name in (*READING, *CHANGING)}
    touching = set()
    for entry in base_tools(no_catalog, lambda: default_services({}, folder)):
        given = {"file_path": "x", "notebook_path": "x", "path": "x", "command": "x", "pattern": "x"}
        if entry.name != "ToolSearch":
            made = load_tool(entry.load())
            fields = getattr(made.input_model, "model_fields", {})
            values: dict[str, Any] = {name: given[name] for name in fields if name in given}
            args = made.input_model.model_construct(**values)
            access = made.access(args, run_in(folder)) if given.keys() & fields.keys() else Access.of()
            if access.files or access.walks or access.runs is not None:
                touching.add(entry.name)

    assert touching - names == {"PowerShell"}


def test_every_shipped_tool_that_touches_files_declares_it(folder: Path) -> None:
    """What is not declared is listed here, with the reason."""
    services = default_services({}, folder)
    undeclared = []
    for entry in base_tools(no_catalog, lambda: services):
        if entry.name == "ToolSearch":
            continue  # made from a catalog; it only keeps books
        kind = type(load_tool(entry.load()))
        if kind.access is Tool.access:
            undeclared.append(entry.name)

    assert undeclared == ["REPL"], "which files Python code opens is not known before it runs"


# Judged like Read


@pytest.mark.parametrize(
    ("where", "says"),
    [("src/a.py", Verdict.ALLOW), ("/etc/hosts", Verdict.DENY), ("keys/.env", Verdict.DENY), ("~/x", Verdict.DENY)],
)
@pytest.mark.parametrize("make", [Peek, lambda: Raw("reads"), lambda: function("reads")])
def test_a_read_is_judged_like_that_of_read(
    make: Callable[[], AnyTool], where: str, says: Verdict, folder: Path
) -> None:
    """Outside the working folders or with a telling name it is asked for, and here nobody answers."""
    policy = policy_in(folder)
    read = called(builtin("Read", folder), {"file_path": where}, folder, policy)
    own = called(make(), {"where": where}, folder, policy)

    assert own.decision is not None
    assert read.decision is not None
    assert own.decision.verdict is read.decision.verdict is says
    assert own.decision.reason == read.decision.reason


def test_walking_a_folder_asks_about_what_is_kept_back_in_it(folder: Path) -> None:
    walking = Peek("walks")
    asked = called(walking, {"where": "keys"}, folder, policy_in(folder, "bypassPermissions", deny=["Read(.env)"]))

    assert asked.decision is not None
    assert asked.decision.verdict is Verdict.DENY
    assert "it may read" in asked.decision.reason
    assert called(walking, {"where": "src"}, folder, policy_in(folder)).decision.verdict is Verdict.ALLOW  # type: ignore[union-attr]


def test_accepted_edits_are_those_of_every_tool_that_only_writes(folder: Path) -> None:
    writing = Peek("writes", read_only=False)
    for mode, says in (("default", Verdict.DENY), ("acceptEdits", Verdict.ALLOW), ("plan", Verdict.DENY)):
        outcome = called(writing, {"where": "src/new"}, folder, policy_in(folder, mode))
        assert outcome.decision is not None
        assert outcome.decision.verdict is says, mode


def test_removing_the_project_is_asked_for_in_every_mode(folder: Path) -> None:
    outcome = called(Peek("removes", read_only=False), {"where": "."}, folder, policy_in(folder, "bypassPermissions"))

    assert outcome.decision is not None
    assert outcome.decision.reason.startswith("'.' must not be removed")


@pytest.mark.proves("A15", "G43")
@pytest.mark.parametrize("raises", [False, True])
def test_what_a_tool_calls_destructive_is_no_accepted_edit_and_a_high_risk(raises: bool, folder: Path) -> None:
    class Erase(Peek):
        def is_destructive(self, args: PathInput) -> bool:
            if raises:
                raise ValueError
            return True

    asked: list[Question] = []

    async def refuse(question: Question) -> Deny:
        asked.append(question)
        return Deny("not now")

    policy = policy_in(folder, "acceptEdits")
    outcome = called(Erase("writes", read_only=False), {"where": "src/x"}, folder, policy, ask=refuse)

    assert outcome.status is Status.DENIED
    assert [(each.risk.level, each.risk.reasons) for each in asked] == [
        (Level.HIGH, ("the tool calls it destructive",))
    ]


# Tools that declare nothing


@pytest.mark.proves("R2")
@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize("mode", MODES)
def test_a_tool_that_declares_nothing_passes_no_rule_about_files_by_itself(mode: str, kind: str, folder: Path) -> None:
    policy = policy_in(folder, mode, **{kind: ["Read(.env)"]})
    outcome = called(Peek(declares=False), {"where": "keys/.env"}, folder, policy)

    assert outcome.status is Status.DENIED
    assert outcome.decision is not None
    assert "Peek does not declare which files it touches" in outcome.decision.reason


def test_a_rule_that_names_the_tool_lets_it_pass_and_a_deny_rule_is_never_lifted(folder: Path) -> None:
    silent, where = Peek(declares=False), {"where": "keys/.env"}
    named = policy_in(folder, deny=["Read(other)"], allow=["Peek"])
    assert called(silent, where, folder, named).status is Status.OK

    refused = policy_in(folder, deny=["Read(other)", "Peek"], allow=["Peek"])
    assert called(silent, where, folder, refused).status is Status.DENIED
    assert called(silent, where, folder, policy_in(folder)).status is Status.OK, "without such rules it only reads"


def test_a_declaration_that_raises_or_is_none_declares_nothing(folder: Path) -> None:
    class Broken(Peek):
        def access(self, args: PathInput, run: RunContext) -> Access:
            if args.where == "raises":
                raise ValueError(args.where)
            return None  # type: ignore[return-value]

    for where in ("raises", "none"):
        outcome = called(Broken(), {"where": where}, folder, policy_in(folder, deny=["Read(x)"]))
        assert outcome.decision is not None
        assert "cannot declare which files this call touches" in outcome.decision.reason


# A tool's own name


@tool(subject="environment", reads=())
def deploy(environment: str, force: bool = False) -> str:
    """Deploy to an environment."""
    return f"deployed to {environment}: {force}"


@pytest.mark.proves("G22", "A20")
@pytest.mark.parametrize(
    ("rules", "environment", "status"),
    [
        ({"allow": ["deploy(staging)"]}, "staging", Status.OK),
        ({"allow": ["deploy(staging)"]}, "prod", Status.DENIED),
        ({"allow": ["deploy(eu-*)"]}, "eu-west", Status.OK),
        ({"allow": ["deploy(eu-*)"]}, "us-eu-west", Status.DENIED),
        ({"allow": ["deploy"], "deny": ["deploy(prod)"]}, "prod", Status.DENIED),
        ({"allow": ["deploy"], "deny": ["deploy(prod)"]}, "staging", Status.OK),
        ({"allow": ["deploy"], "ask": ["deploy(prod*)"]}, "prod-2", Status.DENIED),
        ({"allow": [r"deploy(a\*)"]}, "ab", Status.DENIED),
        ({"allow": [r"deploy(a\*)"]}, "a*", Status.OK),
        ({"allow": ["Deploy(staging)"]}, "staging", Status.DENIED),
    ],
)
def test_a_rule_with_content_is_matched_against_the_subject(
    rules: dict[str, list[str]], environment: str, status: Status, folder: Path
) -> None:
    assert called(deploy, {"environment": environment}, folder, policy_in(folder, "default", **rules)).status is status


@pytest.mark.proves("G22", "A20", "R3")
@pytest.mark.parametrize("name", ["a tool", "a function", "a tool that removes", "a function that writes"])
def test_a_deny_rule_for_a_tool_about_a_file_holds_in_every_spelling(
    name: str, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    subject, values = {**READING, **CHANGING}[name](folder)
    for spelling, pattern in product(SPELLINGS, PATTERNS):
        policy = policy_in(folder, deny=[f"{subject.name}({pattern})"], allow=[subject.name])
        outcome = called(subject, values(spelling.format(folder=folder)), folder, policy, hooks=True)
        assert outcome.status is Status.DENIED, (spelling, pattern)


@pytest.mark.proves("G22", "A20")
@pytest.mark.parametrize(
    ("where", "status"),
    [
        ("keys/.env", Status.OK),
        ("src/../keys/.env", Status.OK),
        ("{folder}/keys/.env", Status.OK),
        ("keys/../../outside", Status.DENIED),
        ("keys/../src/x", Status.DENIED),
        ("keys/out", Status.DENIED),
    ],
)
@pytest.mark.parametrize("rule", ["(keys/*)", "(./keys/*)"])
def test_an_allow_rule_for_a_tool_about_a_file_covers_only_files_below_its_path(
    where: str, status: Status, rule: str, folder: Path
) -> None:
    (folder.parent / "outside").write_text("outside")
    (folder / "src" / "x").write_text("x")
    (folder / "keys" / "out").unlink(missing_ok=True)
    (folder / "keys" / "out").symlink_to("../../outside")
    made = [kind("writes", read_only=False) for kind in (Peek, Resolving, FullyResolving)]
    for subject in (*made, function("writes")):
        policy = policy_in(folder, allow=[subject.name + rule])
        values = {"where": where.format(folder=folder)}
        assert called(subject, values, folder, policy).status is status, subject.name


@pytest.mark.proves("G22", "A20", "R3")
@pytest.mark.parametrize("kind", [Resolving, FullyResolving])
def test_a_deny_rule_holds_for_a_tool_that_declares_the_resolved_path(
    kind: type[Peek], folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", str(folder.parent))
    for spelling, pattern in product(SPELLINGS, PATTERNS):
        policy = policy_in(folder, deny=[f"Peek({pattern})"], allow=["Peek", "Read(**)"])
        outcome = called(kind(), {"where": spelling.format(folder=folder)}, folder, policy)
        assert outcome.status is Status.DENIED, (spelling, pattern)


@pytest.mark.proves("G22", "A20")
def test_an_allow_rule_covers_no_path_that_climbs_and_no_secret_that_it_does_not_name(folder: Path) -> None:
    climbing, policy = {"where": "x/../../keys/out"}, policy_in(folder, allow=["Peek(x/*)"])

    assert called(Elsewhere("writes", read_only=False), climbing, folder, policy).status is Status.DENIED
    (folder / "src" / "x").write_text("x")
    for rules, status in {("Peek(src/*)",): Status.DENIED, ("Peek(src/*)", "Read(keys/.env)"): Status.OK}.items():
        policy = policy_in(folder, allow=list(rules))
        assert called(WithKeys(), {"where": "src/x"}, folder, policy).status is status


@pytest.mark.parametrize(
    ("rule", "status"),
    [("{}", Status.DENIED), ("{}(keys/.env)", Status.OK), ("{}(src/*)", Status.DENIED), ("Read(keys/.env)", Status.OK)],
)
def test_a_tool_that_reads_gets_a_secret_by_a_rule_with_its_path_and_not_by_its_bare_name(
    rule: str, status: Status, folder: Path
) -> None:
    for subject, values in (READING[name](folder) for name in ("a tool", "a function", "Read")):
        written = rule.format("Read" if subject.name == "Read" else subject.name)
        outcome = called(subject, values("keys/.env"), folder, policy_in(folder, allow=[written]))
        assert outcome.status is status, subject.name


@pytest.mark.proves("A20", "R2")
@pytest.mark.parametrize(("kind", "status"), [("deny", Status.DENIED), ("allow", Status.DENIED)])
def test_a_matcher_that_raises_is_never_an_allow(kind: str, status: Status, folder: Path) -> None:
    class Broken(Peek):
        def permission_matcher(self, args: PathInput) -> Callable[[str], bool]:
            raise ValueError(args.where)

    broken = Broken("writes", read_only=False)
    rules = {"allow": ["Peek"], "deny": ["Peek(x)"]} if kind == "deny" else {"allow": ["Peek(x)"]}

    assert called(broken, {"where": "src/x"}, folder, policy_in(folder, "default", **rules)).status is status


# Tools that declare nothing, where rules keep files back


class Silent(Peek):
    """A tool without a declaration and without a subject, as the first version of most tools is."""

    name = "Silent"
    subject = ""

    def __init__(self, *, read_only: bool = True) -> None:
        super().__init__(read_only=read_only, declares=False)


async def agree(_question: Question) -> Allow:
    return Allow()


FILE_RULES = ("Read(.env)", "Edit(.env)", "Read(other)")


@pytest.mark.proves("R3")
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.sampled_from(["deny", "ask"]),
    st.sampled_from(FILE_RULES),
    st.sampled_from(MODES),
    st.lists(st.sampled_from(["Read", "Edit", "Read(**)", "Edit(**)", "Bash", "Peek", "Silent2"]), max_size=3),
    st.booleans(),
    st.booleans(),
)
def test_nothing_but_its_own_name_or_an_answer_lets_an_undeclared_call_pass(
    folder: Path, kind: str, rule: str, mode: str, allowed: list[str], hooks: bool, read_only: bool
) -> None:
    policy = policy_in(folder, mode, **{kind: [rule]}, allow=allowed)
    silent = Silent(read_only=read_only)

    outcome = called(silent, {"where": "keys/.env"}, folder, policy, hooks=hooks)

    assert outcome.status is Status.DENIED
    assert SECRET not in outcome.result.text


@pytest.mark.parametrize(
    ("rules", "passes"),
    [
        pytest.param({"allow": ["Silent"]}, True, id="an allow rule that names the tool"),
        pytest.param({"allow": ["Silent"], "deny": ["Silent"]}, False, id="a deny rule for the tool"),
        pytest.param({"allow": ["Silent(x)"]}, False, id="an allow rule with content that the tool cannot match"),
        pytest.param({"allow": ["Read(**)"]}, False, id="an allow rule about files"),
    ],
)
def test_only_a_rule_that_names_the_tool_lifts_the_question(
    rules: dict[str, list[str]], passes: bool, folder: Path
) -> None:
    policy = policy_in(folder, "default", **rules)
    policy = policy.adding(Behaviour.DENY, ["Read(.env)"], RuleSource("project"))

    outcome = called(Silent(), {"where": "keys/.env"}, folder, policy, hooks=True)

    assert outcome.status is (Status.OK if passes else Status.DENIED)


@pytest.mark.parametrize("mode", ["default", "acceptEdits", "bypassPermissions"])
def test_an_answer_for_this_one_call_lets_it_pass(mode: str, folder: Path) -> None:
    policy = policy_in(folder, mode, deny=["Read(.env)"])

    assert called(Silent(), {"where": "src/../keys/.env"}, folder, policy, ask=agree).status is Status.OK


# Rules by name that a tool cannot answer, and rules by the bare name of a family


class McpSilent(Silent):
    """What a server offers: it says nothing of itself."""

    name = "mcp__fs__read"
    mcp = McpInfo("fs", "read")


class Remote(Silent):
    """A tool of a server whose name does not say so."""

    name = "remote_read"
    mcp = McpInfo("fs", "read")


class Reach(Tool[PathInput]):
    """A tool that talks to an address."""

    name = "Reach"
    input_model = PathInput

    def prompt(self, view: PromptView) -> str:
        return "Reach an address."

    def access(self, args: PathInput, run: RunContext) -> Access:
        return Access.of(reaches=args.where)

    async def call(self, args: PathInput, ctx: ToolContext) -> Output:
        return Output(text=SECRET)


class Start(Reach):
    """A tool that runs a command line."""

    name = "Start"

    def access(self, args: PathInput, run: RunContext) -> Access:
        return Access.of(runs=args.where)


class Script(Reach):
    """A tool that runs PowerShell."""

    name = "Script"

    def access(self, args: PathInput, run: RunContext) -> Access:
        return Access.of(runs=args.where, shell="powershell")


BY_NAME = [
    pytest.param(Silent(), "Silent(.env)", True, id="content, and a tool without a subject"),
    pytest.param(Silent(), "Silent(https://x)", True, id="content with a colon that names no parameter"),
    pytest.param(Silent(), "Silent(where:other)", False, id="a parameter with another value"),
    pytest.param(Silent(), "Silent(where:keys/.env)", True, id="a parameter with this value"),
    pytest.param(Silent(), "Other(.env)", False, id="another tool"),
    pytest.param(McpSilent(), "mcp__fs__read(.env)", True, id="content, and a tool of a server"),
    pytest.param(McpSilent(), "mcp__fs(.env)", True, id="content, and a server"),
    pytest.param(McpSilent(), "mcp__fs__read(where:keys/.env)", True, id="a parameter of a tool of a server"),
    pytest.param(McpSilent(), "mcp__fs__read(where:other)", False, id="a parameter with another value, of a server"),
    pytest.param(Remote(), "mcp__fs__read", True, id="the recorded server and tool"),
    pytest.param(Remote(), "mcp__fs__read(.env)", True, id="the recorded server and tool, with content"),
    pytest.param(McpSilent(), "mcp__fs__write(.env)", False, id="another tool of the server"),
    pytest.param(McpSilent(), "mcp__db__read(.env)", False, id="another server"),
    pytest.param(Peek(), "Read", True, id="Read, and a tool that reads"),
    pytest.param(Peek("walks"), "Read", True, id="Read, and a tool that walks"),
    pytest.param(Peek("writes", read_only=False), "Edit", True, id="Edit, and a tool that writes"),
    pytest.param(Peek("removes", read_only=False), "Edit", True, id="Edit, and a tool that removes"),
    pytest.param(Peek("writes", read_only=False), "Read", False, id="Read, and a tool that only writes"),
    pytest.param(Peek(), "Edit", False, id="Edit, and a tool that reads"),
    pytest.param(Reach(), "WebFetch", True, id="WebFetch, and a tool that reaches an address"),
    pytest.param(Start(), "Bash", True, id="Bash, and a tool that runs a command"),
    pytest.param(Start(), "PowerShell", False, id="PowerShell, and a tool that runs Bash"),
    pytest.param(Script(), "PowerShell", True, id="PowerShell, and a tool that runs it"),
    pytest.param(Peek(), "WebFetch", False, id="WebFetch, and a tool that reads"),
]
WHERE = {"Reach": "https://example.com/x", "Start": "ls", "Script": "ls"}


@pytest.mark.proves("R3", "G22")
@pytest.mark.parametrize("kind", ["deny", "ask"])
@pytest.mark.parametrize(("subject", "rule", "matches"), BY_NAME)
def test_a_name_in_a_deny_or_ask_rule_holds_for_what_a_tool_declares_or_cannot_say(
    subject: AnyTool, rule: str, matches: bool, kind: str, folder: Path
) -> None:
    policy = policy_in(folder, "default", **{kind: [rule]}, allow=[subject.name])

    outcome = called(subject, {"where": WHERE.get(subject.name, "keys/.env")}, folder, policy, hooks=True)

    assert outcome.decision is not None
    assert (f"the rule {rule} matches" in outcome.decision.reason) == matches
    assert (outcome.status is Status.DENIED) == matches


@pytest.mark.parametrize("rule", ["Silent(.env)", "mcp__fs__read(.env)", "mcp__fs(x)"])
def test_an_allow_rule_with_content_never_counts_where_the_tool_cannot_say(rule: str, folder: Path) -> None:
    for subject in (Silent(read_only=False), McpSilent(read_only=False)):
        assert called(subject, {"where": ".env"}, folder, policy_in(folder, allow=[rule])).status is Status.DENIED


@given(
    st.sampled_from(["Read", "Edit", "Bash", "WebFetch"]),
    st.lists(st.sampled_from(["reads", "walks", "writes", "removes", "runs", "reaches"]), min_size=1, unique=True),
    st.sampled_from(["deny", "ask"]),
    st.sampled_from(MODES),
)
def test_a_bare_family_name_is_about_every_call_that_declares_its_effect(
    folder: Path, family: str, kinds: list[str], behaviour: str, mode: str
) -> None:
    effects = {"Read": {"reads", "walks"}, "Edit": {"writes", "removes"}, "Bash": {"runs"}, "WebFetch": {"reaches"}}
    values = {"runs": "ls", "reaches": "https://example.com"}

    class Several(Peek):
        name = "Several"

        def access(self, args: PathInput, run: RunContext) -> Access:
            return Access.of(**{kind: values.get(kind, "src/x") for kind in kinds})  # type: ignore[arg-type]

    policy = policy_in(folder, mode, **{behaviour: [family]}, allow=["Several"])
    outcome = called(Several(), {"where": "src/x"}, folder, policy, hooks=True)

    assert outcome.decision is not None
    named = any(f"the rule {family} matches" in opinion.reason for opinion in outcome.decision.opinions)
    assert named == bool(effects[family] & set(kinds))
    assert not named or outcome.status is Status.DENIED
