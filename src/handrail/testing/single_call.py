"""One governed call in a test, in one line: validation, rules, questions, the tool and the size of its result."""

import asyncio
import os
import tempfile
from collections.abc import Iterable
from functools import partial
from pathlib import Path

from handrail.builtin.services import ToolServices
from handrail.builtin.table import USUAL_FEATURES, base_tools
from handrail.conversation.blocks import Json, ToolUse
from handrail.dispatch.approval.gate import PolicyGate
from handrail.dispatch.approval.live import LivePolicy
from handrail.dispatch.approval.sdk import CallbackHandler
from handrail.dispatch.executor import ToolExecutor
from handrail.dispatch.file_tracking import file_to_read
from handrail.dispatch.gate import Rails
from handrail.dispatch.results import ResultStore
from handrail.errors import HandrailError
from handrail.permissions.policy import Policy
from handrail.permissions.rules import SESSION, Behaviour
from handrail.records import record
from handrail.tools.catalog import Catalog
from handrail.tools.context import RunContext
from handrail.tools.outcome import Outcome
from handrail.tools.permission import Allow, Deny
from handrail.tools.pool import AnyTool, Environment, Ingredients
from handrail.tools.tool import check_tool
from handrail.tools.wording import did_you_mean


@record
class CallRules:
    """
    What governs a call of a test: rules as in settings, the mode, and the folder (default: the present one).

    `approve`: how the user answers when the rules leave a call open.
    """

    allow: Iterable[str] = ()
    ask: Iterable[str] = ()
    deny: Iterable[str] = ()
    mode: str = "default"
    approve: bool = True
    cwd: Path | str | None = None


NO_CALL_RULES = CallRules()


async def call(tool: AnyTool | str, rules: CallRules = NO_CALL_RULES, /, **values: object) -> Outcome:
    """
    Call a tool, or a built-in one by its name, as a model's call would be, and return how it ended.

    No settings and no hooks count, only `rules`; what they leave open is answered as `rules.approve` says. A call that
    is refused or fails is an outcome, not an exception. A file that a built-in tool changes is read first.

    Raises:
        HandrailError: a rule or the mode is not understood, there is no built-in tool of this name, or it is no tool.
    """
    check_rules(rules)
    if not isinstance(tool, str):
        check_tool(tool)
    cwd = Path.cwd() / (rules.cwd or "")
    policy = policy_of(rules, cwd)
    with tempfile.TemporaryDirectory(prefix="handrail-call-") as state:
        catalog = _catalog(tool, policy, Path(state))
        name = tool if isinstance(tool, str) else tool.name
        if catalog.pool.find(name) is None:
            hint = did_you_mean(name, (each.name for each in catalog.pool)) or " Give its name, or a tool of your own."
            raise HandrailError(f"There is no built-in tool {name!r} to call.{hint}")
        gate = PolicyGate(LivePolicy(lambda: policy), CallbackHandler(partial(_answer, rules.approve)))
        run = RunContext(cwd, policy=gate.snapshot)
        results = ResultStore(Path(state) / "results")
        async with ToolExecutor(catalog.pool, run, results, rails=Rails(gate), activate=catalog.activate) as executor:
            if path := file_to_read(catalog.pool.find(name), values, cwd, policy.home):
                executor.add(ToolUse("call-0", "Read", {"file_path": path}))
                read = await anext(executor.rest())
                if read.result.is_error:
                    return read
            executor.add(ToolUse("call-1", name, values))
            return await anext(executor.rest())


def call_sync(tool: AnyTool | str, rules: CallRules = NO_CALL_RULES, /, **values: object) -> Outcome:
    """Like `call`, for tests without an event loop."""
    return asyncio.run(call(tool, rules, **values))


def check_rules(rules: object) -> None:
    """Raise if something else stands in the place of the rules; most often it is the input."""
    if not isinstance(rules, CallRules):
        form = 'Give CallRules(...), and the input by name: call_sync("Read", file_path="notes.txt").'
        raise HandrailError(f"The rules of the call are {rules!r}. {form}")


def policy_of(rules: CallRules, cwd: Path) -> Policy:
    """The policy that the rules make; HandrailError if one of them is not understood."""
    policy = Policy.empty(os.path.realpath(cwd), os.path.realpath(Path.home()))
    for behaviour, texts in ((Behaviour.ALLOW, rules.allow), (Behaviour.ASK, rules.ask), (Behaviour.DENY, rules.deny)):
        if isinstance(texts, str):
            raise HandrailError(f"{behaviour.value} is {texts!r}. Give a list of rules: [{texts!r}].")
        policy = policy.adding(behaviour, texts, SESSION)
    if policy.problems:
        problem = policy.problems[0]
        raise HandrailError(f"The rule {problem.text!r} is not understood: {problem.message}.")
    try:
        return policy.with_mode(rules.mode)
    except ValueError as error:
        raise HandrailError(f"mode: {error}") from error


def _answer(approve: bool, _tool: str, _values: Json, _question: object) -> Allow | Deny:
    return Allow() if approve else Deny("the test said no")


def _catalog(tool: AnyTool | str, policy: Policy, state: Path) -> Catalog:
    if not isinstance(tool, str):
        return Catalog(Ingredients(custom=(tool,)))
    folders = policy.working_dirs
    services = ToolServices(env=dict(os.environ), home=policy.home, working_dirs=lambda: folders, state=state)
    environment = Environment(USUAL_FEATURES, services.env)
    catalog = Catalog(Ingredients(entries=base_tools(lambda: catalog, lambda: services), environment=environment))
    return catalog
