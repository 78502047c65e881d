"""One governed call in a test: what the rules say holds, and what they leave open is answered as the test says."""

from pathlib import Path
from typing import Any

import pytest

from handrail import ToolContext, tool
from handrail.errors import HandrailError, ToolError
from handrail.testing import CallRules, call, call_sync
from handrail.tools.outcome import Outcome


@tool
async def order(pizza: str, count: int = 1) -> str:
    """Order pizza."""
    if pizza == "hawaii":
        raise ToolError("There is none. Order another one.")
    return f"{count} {pizza}"


@tool(read_only=True)
def where(name: str, ctx: ToolContext) -> str:
    """The folder, and a name that is also that of a parameter of `call`."""
    return f"{name} {ctx.cwd}"


def told(outcome: Outcome) -> tuple[str, str]:
    return outcome.status.value, outcome.result.text


@pytest.mark.parametrize(
    ("rules", "status"),
    [
        pytest.param(CallRules(), "ok", id="the user says yes"),
        pytest.param(CallRules(approve=False), "denied", id="the user says no"),
        pytest.param(CallRules(allow=["order"], approve=False), "ok", id="an allow rule"),
        pytest.param(CallRules(deny=["order"], allow=["order"]), "denied", id="a deny rule"),
        pytest.param(CallRules(allow=["order"], ask=["order"], approve=False), "denied", id="an ask rule"),
        pytest.param(CallRules(mode="plan", approve=False), "denied", id="a mode"),
        pytest.param(CallRules(mode="dontAsk"), "denied", id="a mode that asks nobody"),
    ],
)
def test_the_rules_hold(rules: CallRules, status: str) -> None:
    assert call_sync(order, rules, pizza="margherita").status.value == status


@pytest.mark.anyio
async def test_a_call_is_validated_runs_and_fails_as_one_of_a_model(tmp_path: Path) -> None:
    assert told(await call(order, pizza="funghi", count=2)) == ("ok", "2 funghi")
    assert told(await call(where, CallRules(cwd=tmp_path), name="tool")) == ("ok", f"tool {tmp_path}")
    assert "There is none" in (await call(order, pizza="hawaii")).result.text
    wrong = await call(order, count="many")
    assert (wrong.status.value, wrong.cause.value) == ("error", "invalid_input")


def test_built_in_tools_are_called_by_name_and_governed(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("hello\n")
    here = CallRules(cwd=tmp_path, approve=False)

    assert told(call_sync("Read", here, file_path="a.txt")) == ("ok", "1\thello")
    assert call_sync("Bash", here, command="rm a.txt").status.value == "denied"
    assert call_sync("Bash", CallRules(cwd=tmp_path), command="rm a.txt").status.value == "ok"
    assert not (tmp_path / "a.txt").exists()


@pytest.mark.parametrize(
    ("rules", "message"),
    [
        pytest.param(CallRules(deny=["Bash(curl"]), "The rule 'Bash\\(curl' is not understood", id="a broken rule"),
        pytest.param(CallRules(deny="order"), "Give a list of rules", id="a text"),
        pytest.param(CallRules(mode="yolo"), "there is no mode 'yolo'", id="a mode"),
    ],
)
def test_rules_that_cannot_work_are_errors(rules: CallRules, message: str) -> None:
    with pytest.raises(HandrailError, match=message):
        call_sync(order, rules, pizza="funghi")
    with pytest.raises(HandrailError, match="no built-in tool 'Raed' to call\\. Did you mean 'Read'"):
        call_sync("Raed")


@pytest.mark.parametrize(
    ("tool_given", "rules", "words"),
    [
        ("Read", {"file_path": "notes.txt"}, "Give CallRules(...), and the input by name"),
        (len, CallRules(), "is not a tool. Put @tool above a function"),
    ],
)
def test_a_call_in_the_wrong_form_is_refused_with_the_right_one(tool_given: Any, rules: Any, words: str) -> None:
    with pytest.raises(HandrailError) as caught:
        call_sync(tool_given, rules)
    assert words in str(caught.value)


def test_the_folder_may_be_a_text(tmp_path: Path) -> None:
    assert call_sync(where, CallRules(cwd=str(tmp_path)), name="in").result.text == f"in {tmp_path}"
