"""The paths of `@tool` functions: every path is declared, and the declared path is the one that is opened."""

import os
from collections.abc import Callable
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import Annotated, Any, Literal, NewType, Optional, Union

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import Field

from handrail import Access, Agent, ToolContext, tool
from handrail.errors import ToolDefinitionError
from handrail.events import CallFinished
from handrail.testing import ScriptedModel, say, use
from handrail.tools.context import RunContext
from handrail.tools.function import FunctionTool

SECRET = "the secret of elsewhere"


@pytest.fixture
def places(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The process works in `elsewhere`, the agent in `project`; both have the same names."""
    root = Path(os.path.realpath(tmp_path))
    for folder in ("elsewhere", "project", "home"):
        (root / folder / "inner").mkdir(parents=True)
        (root / folder / "notes.txt").write_text(f"of {folder}\n" if folder != "elsewhere" else SECRET)
    (root / "project" / "link.txt").symlink_to("notes.txt")
    monkeypatch.chdir(root / "elsewhere")
    monkeypatch.setenv("HOME", str(root / "home"))
    return root


@tool(read_only=True, reads="path")
def first_line(path: str) -> str:
    """The first line of a file."""
    return Path(path).read_text().partition("\n")[0]


@tool(read_only=True, reads="path")
async def first_line_async(path: Path) -> str:
    """The first line of a file."""
    return path.read_text().partition("\n")[0]


@tool(read_only=True, reads="paths")
def first_of(paths: list[str]) -> str:
    """The first line of the first file."""
    return Path(paths[0]).read_text().partition("\n")[0]


@tool(read_only=True, walks="folder")
def contents(folder: tuple[Path, ...]) -> str:
    """The files of folders."""
    return ",".join(str(path) for each in folder for path in sorted(each.glob("*.txt")))


@tool(read_only=True, access=lambda path: Access.of(reads=path))
def declared_by_hand(path: str) -> str:
    """The first line of a file, which the function opens from the folder of the process."""
    return Path(path).read_text().partition("\n")[0]


@tool(read_only=True, access=lambda path: Access.of(reads=path))
def from_context(path: str, ctx: ToolContext) -> str:
    """The first line of a file, which the function opens from the folder of the run."""
    return (ctx.cwd / path).read_text().partition("\n")[0]


@tool(removes="path")
def unlink(path: str) -> str:
    """Remove a file."""
    Path(path).unlink()
    return "gone"


def ask(root: Path, subject: FunctionTool, values: dict[str, Any], **options: Any) -> str:
    """What the model is told of one call by an agent that works in `project`."""
    model = ScriptedModel([[use("1", subject.name, **values)], [say("Done.")]])

    folders: dict[str, Any] = {"cwd": root / "project", "state_dir": root / "state"}
    agent: Agent[Any] = Agent(model, [subject], builtin_tools=False, **folders, **options)
    return next(event.outcome.result.text for event in agent.run_sync("go") if isinstance(event, CallFinished))


@pytest.mark.proves("R3")
@pytest.mark.parametrize(
    ("subject", "field"),
    [(first_line, "path"), (first_line_async, "path"), (first_of, "paths")],
    ids=["text", "path", "list"],
)
@pytest.mark.parametrize(
    ("spelling", "told"),
    [
        ("notes.txt", "of project"),
        ("./inner/../notes.txt", "of project"),
        ("link.txt", "of project"),
        ("{root}/project/notes.txt", "of project"),
        ("{root}/elsewhere/notes.txt", "was refused"),
        ("../elsewhere/notes.txt", "was refused"),
        ("~/notes.txt", "of home"),
    ],
)
def test_the_path_that_is_judged_is_the_one_that_is_opened(
    subject: FunctionTool, field: str, spelling: str, told: str, places: Path
) -> None:
    path = spelling.format(root=places)
    value = [path] if field == "paths" else path
    rules = {"allow": ["Read(~/**)"], "deny": [f"Read(/{places}/elsewhere/**)"]}

    answer = ask(places, subject, {field: value}, **rules)

    assert told in answer
    assert SECRET not in answer


def test_folders_are_those_of_the_run(places: Path) -> None:
    answer = ask(places, contents, {"folder": [".", "inner"]})

    assert answer == ",".join(str(places / "project" / name) for name in ("link.txt", "notes.txt"))


def test_a_link_is_removed_and_not_its_target(places: Path) -> None:
    assert ask(places, unlink, {"path": "link.txt"}, mode="acceptEdits") == "gone"

    assert (places / "project" / "notes.txt").exists()
    assert not (places / "project" / "link.txt").is_symlink()


@pytest.mark.parametrize(
    ("subject", "allow", "told"),
    [
        pytest.param(declared_by_hand, [], "was refused", id="the folder of the process is outside"),
        pytest.param(declared_by_hand, ["Read(//**)"], "was refused", id="and a deny rule holds for it"),
        pytest.param(from_context, [], "of project", id="a function with a context starts from the run"),
    ],
)
def test_a_declaration_by_hand_starts_where_the_function_does(
    subject: FunctionTool, allow: list[str], told: str, places: Path
) -> None:
    answer = ask(places, subject, {"path": "notes.txt"}, allow=allow, deny=[f"Read(/{places}/elsewhere/**)"])

    assert told in answer
    assert SECRET not in answer


# Which types hold paths


class Color(StrEnum):
    RED = "red"


Name = NewType("Name", str)
PATHS: dict[str, tuple[Any, Any]] = {
    "str": (str, "a"),
    "Path": (Path, "a"),
    "PurePosixPath": (PurePosixPath, "a"),
    "one of": (Literal["a", "b"], "a"),
    "annotated": (Annotated[str, Field(min_length=1)], "a"),
    "optional": (Optional[str], "a"),  # noqa: UP045  # the old spelling must work too
    "nothing": (str | None, None),
    "union": (Union[str, Path], "a"),  # noqa: UP007
    "list": (list[str], ["a", "b"]),
    "list of unions": (list[str | Path], ["a", "b"]),
    "list of annotated": (list[Annotated[Path, Field()]], ["a"]),
    "tuple": (tuple[str, ...], ["a", "b"]),
    "pair": (tuple[str, Path], ["a", "b"]),
    "optional list": (list[Path] | None, ["a"]),
    "text or list": (str | list[str], ["a", "b"]),
}
OTHERS: dict[str, Any] = {
    "dict": dict[str, str],
    "list of dicts": list[dict[str, str]],
    "nested list": list[list[str]],
    "list with None": list[str | None],
    "bare list": list,
    "bare tuple": tuple,
    "int": int,
    "bytes": bytes,
    "anything": Any,
    "union with int": str | int,
    "union with dict": str | dict[str, str],
    "set": set[str],
    "enum": Color,
    "numbers": Literal[1, 2],
    "new type": Name,
}


def declaring(kind: str, hint: Any) -> Callable[[], FunctionTool]:
    def touch(p: Any) -> str:
        """Touch it."""
        return repr(p)

    touch.__annotations__ = {"p": hint, "return": str}
    return lambda: tool(**{kind: "p"})(touch)  # type: ignore[call-overload]


@pytest.mark.parametrize("kind", ["reads", "writes", "removes", "walks", "reaches"])
@pytest.mark.parametrize(("hint", "value"), PATHS.values(), ids=PATHS)
def test_every_path_of_a_parameter_is_declared(kind: str, hint: Any, value: Any) -> None:
    subject = declaring(kind, hint)()

    access = subject.access(subject.parse({"p": value}), RunContext(Path("/proj")))

    assert getattr(access, kind) == (() if value is None else (value,) if isinstance(value, str) else tuple(value))


@pytest.mark.proves("R3")
@pytest.mark.parametrize("kind", ["reads", "writes", "removes", "walks", "reaches"])
@pytest.mark.parametrize("hint", OTHERS.values(), ids=OTHERS)
def test_a_type_that_may_hide_paths_is_refused_where_it_is_declared(kind: str, hint: Any) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        declaring(kind, hint)()

    assert f"{kind} names 'p', whose type is" in str(caught.value)
    assert "Use str, Path, or a list or tuple of them." in str(caught.value)


@pytest.mark.parametrize(("hint", "fits"), [(str, True), (str | None, True), (list[str], False), (Path, False)])
def test_a_command_line_is_one_text(hint: Any, fits: bool) -> None:
    """Of a list only the first word would be judged."""
    if fits:
        declaring("runs", hint)()
        return
    with pytest.raises(ToolDefinitionError, match="Use str"):
        declaring("runs", hint)()


def test_a_default_of_another_type_declares_nothing() -> None:
    @tool(reads="p")
    def odd(p: str = {"a": ".env"}) -> str:  # type: ignore[assignment]
        """Do it."""
        return str(p)

    with pytest.raises(TypeError, match="is not a path"):
        odd.access(odd.parse({}), RunContext(Path("/proj")))


LEAVES = st.sampled_from([str, Path, int, bytes, bool, type(None), Any, Literal["a"], dict[str, str], Color])
HINTS = st.recursive(
    LEAVES,
    lambda inner: st.one_of(
        inner.map(lambda each: list[each]),  # type: ignore[valid-type]
        inner.map(lambda each: tuple[each, ...]),  # type: ignore[valid-type]
        inner.map(lambda each: dict[str, each]),  # type: ignore[valid-type]
        inner.map(lambda each: Optional[each]),  # noqa: UP045
        st.tuples(inner, inner).map(lambda both: Union[both]),  # noqa: UP007
    ),
    max_leaves=4,
)
VALUES = st.recursive(
    st.one_of(st.text(max_size=4), st.none(), st.integers()),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=3), inner, max_size=2)),
    max_leaves=5,
)


@given(HINTS, VALUES)
def test_what_a_tool_accepts_it_declares_to_the_last_text(hint: Any, value: Any) -> None:
    """Whatever type is accepted, no text of a value stays out of the declaration."""
    try:
        subject = declaring("reads", hint)()
        args = subject.parse({"p": value})
    except Exception:  # noqa: BLE001  # refused as a type, or as a value
        return
    declared = subject.access(args, RunContext(Path("/proj"))).reads

    assert sorted(declared) == sorted(texts(args.p))  # type: ignore[attr-defined]


def texts(value: Any) -> list[str]:
    if isinstance(value, str | os.PathLike):
        return [os.fspath(value)]
    if isinstance(value, dict):
        return [text for pair in value.items() for each in pair for text in texts(each)]
    return [text for each in value for text in texts(each)] if isinstance(value, list | tuple) else []
