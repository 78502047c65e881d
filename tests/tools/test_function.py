"""`@tool`: what a typed function becomes, and what cannot become a tool."""

from __future__ import annotations

import functools
import warnings
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, Optional

import pytest
from pydantic import BaseModel, Field

from handrail.conversation.blocks import Text
from handrail.errors import InputError, ToolDefinitionError
from handrail.testing import CallRules, call_sync
from handrail.tools.access import EXCLUSIVE, SHARED, Access
from handrail.tools.context import Progress, ProgressCallback, RunContext, ToolContext
from handrail.tools.function import FunctionTool, as_output, tool
from handrail.tools.output import Output
from handrail.tools.schema import Input
from handrail.tools.tool import PLAIN_VIEW, Tool, check_tool

if TYPE_CHECKING:
    from decimal import Decimal as NotThere

pytestmark = pytest.mark.anyio


class Options(BaseModel):
    depth: int = 1
    title: str = ""


@dataclass
class Spot:
    x: int
    y: int = 0


@dataclass
class Area:
    width: int


class Opaque:
    """Nothing a schema could describe."""


@tool
async def search(
    query: str,
    ctx: ToolContext,
    limit: Annotated[int, Field(ge=1, description="At most so many.")] = 10,
    kind: Literal["file", "folder"] = "file",
    options: Optional[Options] = None,  # noqa: UP045  # the old spelling must work too
) -> str:
    """
    Search for something.

    The second paragraph also goes to the model.

    Args:
        query: What to look for; may
            go on in a second line: like this.
        limit (int): Not used, because the annotation says more.

    Returns:
        Lines of text.
    """
    depth = options.depth if options else 0
    return f"{query} {limit} {kind} {depth} in {ctx.cwd.name}"


@tool(name="Add", read_only=True, concurrency_safe=True, aliases=("Plus",), search_hint="sum two whole numbers")
def add(a: int, b: int = 2, *, progress: ProgressCallback) -> int:
    """Add two numbers."""
    progress(Progress("adding"))
    return a + b


@pytest.mark.proves("A7", "A8", "A29", "B22")
def test_signature_and_docstring_become_schema_and_description() -> None:
    assert isinstance(search, FunctionTool)
    assert search.name == "search"
    assert search.prompt(PLAIN_VIEW) == (
        "Search for something.\n\nThe second paragraph also goes to the model.\n\nReturns:\n    Lines of text."
    )
    assert search.input_schema == {
        "type": "object",
        "properties": {
            "query": {"type": "string", "description": "What to look for; may go on in a second line: like this."},
            "limit": {"type": "integer", "minimum": 1, "default": 10, "description": "At most so many."},
            "kind": {"type": "string", "enum": ["file", "folder"], "default": "file"},
            "options": {"anyOf": [{"$ref": "#/$defs/Options"}, {"type": "null"}], "default": None},
        },
        "required": ["query"],
        "additionalProperties": False,
        "$defs": {
            "Options": {
                "type": "object",
                "properties": {
                    "depth": {"type": "integer", "default": 1},
                    "title": {"type": "string", "default": ""},
                },
            }
        },
    }


async def test_an_async_function_is_awaited_with_its_context_and_checked_models(ctx: ToolContext) -> None:
    args = search.parse({"query": "x", "limit": "3", "options": {"depth": "2"}})

    assert not search.blocking
    assert await search.call(args, ctx) == Output(text=f"x 3 file 2 in {ctx.cwd.name}")


def test_a_sync_function_is_blocking_and_reports_progress(ctx: ToolContext) -> None:
    news: list[Progress] = []

    assert add.blocking
    output = add.call_blocking(add.parse({"a": 1}), ctx.replace(progress=news.append))

    assert output == Output(data=3)
    assert add.result_blocks(output) == (Text("3"),)
    assert news == [Progress("adding")]
    assert list(add.input_schema["properties"]) == ["a", "b"]


def test_the_function_can_still_be_called_as_itself() -> None:
    assert add(1, b=5, progress=lambda news: None) == 6
    assert (add.__name__, add.__doc__) == ("add", "Add two numbers.")


@pytest.mark.proves("R2")
def test_flags_are_arguments_and_careful_when_left_out(run: RunContext) -> None:
    args = search.parse({"query": "x"})
    assert (search.is_read_only(args), search.is_concurrency_safe(args), search.is_destructive(args)) == (False,) * 3
    assert search.access(args, run) == EXCLUSIVE

    sums = add.parse({"a": 1})
    assert (add.is_read_only(sums), add.is_concurrency_safe(sums), add.access(sums, run)) == (True, True, SHARED)
    assert (add.name, add.aliases, add.search_hint) == ("Add", ("Plus",), "sum two whole numbers")

    @tool(
        destructive=True,
        interrupt="block",
        requires_user_interaction=True,
        error_cancels_siblings=True,
        timeout=3.0,
        max_result_chars=None,
        should_defer=True,
        always_load=True,
        access=lambda path: Access.of(writes=[path]),
    )
    def erase(path: str) -> None:
        """Erase a file."""

    gone = erase.parse({"path": "/a"})
    assert erase.is_destructive(gone)
    assert erase.access(gone, run) == Access.of(writes=["/a"])
    assert (erase.interrupt, erase.timeout, erase.max_result_chars) == ("block", 3.0, None)
    assert (erase.requires_user_interaction, erase.error_cancels_siblings) == (True, True)
    assert (erase.should_defer, erase.always_load) == (True, True)


def test_all_problems_of_an_input_are_told_at_once() -> None:
    with pytest.raises(InputError) as caught:
        search.parse({"limit": 0, "kind": "x", "ctx": 1})

    assert caught.value.problems == (
        "The required field 'query' is missing.",
        "The field 'ctx' is unexpected. Known fields: query, limit, kind, options.",
        "The field 'limit' is wrong: it should be greater than or equal to 1; got 0.",
        "The field 'kind' is wrong: it should be 'file' or 'folder'; got 'x'.",
    )


@pytest.mark.parametrize(
    ("value", "output"),
    [
        pytest.param("text", Output(text="text"), id="text"),
        pytest.param(None, Output(), id="nothing"),
        pytest.param(Output(text="x", is_error=True), Output(text="x", is_error=True), id="an output"),
        pytest.param(b"caf\xc3\xa9 \xff", Output(text="café �"), id="bytes are text"),
        pytest.param({"a": 1}, Output(data={"a": 1}), id="a dict"),
        pytest.param(Options(depth=2), Output(data=Options(depth=2)), id="a model"),
        pytest.param(Spot(1), Output(data=Spot(1)), id="a dataclass"),
        pytest.param([Path("/a")], Output(data=[Path("/a")]), id="a list of paths"),
    ],
)
def test_what_a_function_returns_becomes_an_output(value: object, output: Output) -> None:
    assert as_output(value) == output


def test_every_plain_kind_of_parameter_is_described() -> None:
    def everything(
        path: Path = Path("."),  # noqa: PTH201  # a default that is no JSON by itself
        spot: Spot | None = None,
        tags: frozenset[str] = frozenset(),
        table: dict[str, list[int]] = {},  # noqa: B006  # it is copied for every call
        model_name: str = "m",
        renamed: Annotated[str, Field(alias="from")] = "",
        old_style: int = Field(default=3, ge=1),
        anything: Any = None,
    ) -> None:
        """Take everything."""

    made = tool(everything)
    args = made.parse({"spot": {"x": "1"}, "from": "here", "tags": ["a"]})

    assert made.input_schema["properties"]["path"]["default"] == "."
    assert "from" in made.input_schema["properties"]
    assert made.input_schema["properties"]["old_style"] == {"type": "integer", "minimum": 1, "default": 3}
    assert [getattr(args, name) for name in ("spot", "renamed", "tags", "old_style")] == [
        Spot(1),
        "here",
        frozenset({"a"}),
        3,
    ]


class Counter:
    """Has methods."""

    total = 0

    def count(self, by: int) -> int:
        """Count up."""
        self.total += by
        return self.total

    @staticmethod
    def double(n: int) -> int:
        """Double a number."""
        return 2 * n

    def of_class(cls, n: int) -> int:  # as if it were a class method
        """Do something."""
        return n


def test_the_method_of_an_object_and_a_static_one_can_be_tools(ctx: ToolContext) -> None:
    count = tool(Counter().count)

    assert count.call_blocking(count.parse({"by": 2}), ctx) == Output(data=2)
    assert count.call_blocking(count.parse({"by": 3}), ctx) == Output(data=5)
    assert tool(Counter.double).name == "double"


async def test_a_decorated_function_is_what_it_wraps(ctx: ToolContext) -> None:
    def logged(function: Callable[..., Awaitable[str]]) -> Callable[..., Awaitable[str]]:
        @functools.wraps(function)
        def wrapper(*args: Any, **kwargs: Any) -> Awaitable[str]:
            return function(*args, **kwargs)

        return wrapper

    @tool
    @logged
    async def greet(name: str) -> str:
        """Greet somebody."""
        return f"hello {name}"

    assert not greet.blocking
    assert await greet.call(greet.parse({"name": "you"}), ctx) == Output(text="hello you")


def no_docstring(a: int) -> None: ...


def untyped(a) -> None:  # type: ignore[no-untyped-def]  # noqa: ANN001, RUF100  # that is the point
    """Do it."""


def star(*many: int) -> None:
    """Do it."""


def stars(**many: int) -> None:
    """Do it."""


def positional(a: int, /) -> None:
    """Do it."""


def private(_a: int) -> None:
    """Do it."""


def shadowing(model_fields: int) -> None:
    """Do it."""


def opaque(fine: int, thing: Opaque) -> None:
    """Do it."""


def function_typed(action: Callable[[int], int]) -> None:
    """Do it."""


def opaque_default(a: int = Opaque()) -> None:  # type: ignore[assignment]  # that is the point
    """Do it."""


def bad_bound(a: Annotated[int, Field(gt="x")]) -> None:
    """Do it."""


def unresolved(a: NotThere) -> None:
    """Do it."""


def maybe_context(ctx: ToolContext | None = None) -> None:
    """Do it."""


def generator(a: int) -> Any:
    """Do it."""
    yield a


async def async_generator(a: int) -> Any:
    """Do it."""
    yield a


def ünicode(a: int) -> None:  # noqa: PLC2401, RUF100  # that is the point
    """Do it."""


def test_parameters_may_have_the_names_of_old_methods_of_models() -> None:
    @tool(subject="schema")
    def convert(schema: str, json: list[int], copy: bool = False, validate: str = "yes") -> str:
        """Convert it."""
        return f"{schema} {json} {copy} {validate}"

    assert convert.input_schema["required"] == ["schema", "json"]
    assert call_sync(convert, schema="a", json=[1], copy=True).result.text == "a [1] True yes"
    assert call_sync(convert, CallRules(deny=["convert(a)"]), schema="a", json=[]).status.value == "denied"
    assert call_sync(convert, CallRules(deny=["convert(a)"]), schema="b", json=[]).status.value == "ok"


def test_an_unknown_field_inside_a_parameter_is_named_with_the_one_that_was_meant() -> None:
    @tool
    def draw(start: Spot, via: list[Spot], end: Area | Spot | None = None) -> str:
        """Draw a line."""
        return f"{start} {via} {end}"

    text = call_sync(draw, start={"x": 1, "yy": 2}, via=[{"x": 1}, {"x": 1, "z": 1}], end={"widt": 1}).result.text

    assert "The field 'start.yy' is unexpected. Did you mean 'y'?" in text
    assert "The field 'via.1.z' is unexpected. Known fields: x, y." in text
    assert "The field 'end.widt' is unexpected. Did you mean 'width'?" in text
    assert "The field 'end.x' is unexpected" not in text


@pytest.mark.parametrize(
    ("function", "problem"),
    [
        pytest.param(no_docstring, "no_docstring has no docstring. Write one: the model reads it.", id="no docstring"),
        pytest.param(untyped, "untyped: the parameter 'a' has no type. Annotate it.", id="no type"),
        pytest.param(star, "star: *many: 'int' cannot be filled by name.", id="any number of arguments"),
        pytest.param(stars, "stars: **many: 'int' cannot be filled by name.", id="any keywords"),
        pytest.param(positional, "positional: a: 'int' cannot be filled by name.", id="positional only"),
        pytest.param(private, "private: a parameter cannot be called '_a'. Rename it.", id="a private name"),
        pytest.param(
            shadowing, "shadowing: a parameter cannot be called 'model_fields'. Rename it.", id="a name of models"
        ),
        pytest.param(opaque, "opaque: the parameter 'thing' cannot be described", id="a type without a schema"),
        pytest.param(function_typed, "the parameter 'action' cannot be described", id="a function as input"),
        pytest.param(opaque_default, "the parameter 'a' cannot be described", id="a default that is no JSON"),
        pytest.param(bad_bound, "the parameter 'a' cannot be described", id="a bound of the wrong type"),
        pytest.param(unresolved, "name 'NotThere' is not defined. Import or define the type", id="a missing import"),
        pytest.param(maybe_context, "the parameter 'ctx' cannot be described", id="an optional context"),
        pytest.param(generator, "generator yields. Return the result", id="a generator"),
        pytest.param(async_generator, "async_generator yields. Return the result", id="an async generator"),
        pytest.param(ünicode, "cannot be called 'ünicode'", id="a name no API accepts"),
        pytest.param(Counter.count, "count is a method of a class. Give tool() the method of an object", id="a method"),
        pytest.param(Counter.of_class, "of_class is a method of a class", id="a method of the class itself"),
        pytest.param(functools.partial(positional), "is not a plain function. Wrap it", id="a partial"),
        pytest.param(len, "len is not a plain function. Wrap it", id="a builtin"),
        pytest.param(Counter, "Counter is not a plain function. Wrap it", id="a class"),
        pytest.param(lambda: 1, "cannot be called '<lambda>'", id="a lambda"),
        pytest.param("count", "To name the tool, write @tool(name='count').", id="a name"),
    ],
)
def test_what_cannot_be_a_tool_fails_where_it_is_declared(function: Callable[..., Any], problem: str) -> None:
    with pytest.raises(ToolDefinitionError) as caught:
        tool(function)

    assert problem in str(caught.value)
    assert "\n" not in str(caught.value)


def test_an_unknown_flag_is_refused_with_the_one_that_was_probably_meant() -> None:
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'readonly'\. Did you mean 'read_only'\?"):
        tool(readonly=True)(positional)  # type: ignore[call-overload]


def test_a_default_that_is_no_json_fails_also_where_warnings_are_not_shown() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with pytest.raises(ToolDefinitionError, match="the parameter 'a' cannot be described"):
            tool(opaque_default)


def test_a_hint_or_alias_that_does_not_work_fails_too() -> None:
    with pytest.raises(ToolDefinitionError, match="3 to 10 words"):
        tool(search_hint="one")(Counter.double)
    with pytest.raises(ToolDefinitionError, match="Give a tuple"):
        tool(aliases="Old")(Counter.double)  # type: ignore[call-overload]  # the usual slip


@pytest.mark.parametrize(
    ("docstring", "about", "described"),
    [
        ("One line.", "One line.", ""),
        ("Do it.\n\nArgs:\n    a: The one.", "Do it.", "The one."),
        ("Do it.\n\nArgs:\n    a: The\n        one.\n\n    b: Other.\n", "Do it.", "The one."),
        ("Do it.\n\nArgs:\n    a (int, optional): The one.", "Do it.", "The one."),
        (
            "Do it.\n\nArgs:\n    stray words\n    a: The one.\nNotes:\n    More.",
            "Do it.\n\nNotes:\n    More.",
            "The one.",
        ),
        ("Do it.\n\nArgs:\n\n    a: The one.", "Do it.", "The one."),
        ("Do it.\n\nArgs:\n    a: The one:\n        first: a\n        last: b", "Do it.", "The one: first: a last: b"),
        ("Do it.\n\nArgs:\n    a: The one at\n    https://a.example", "Do it.", "The one at https://a.example"),
    ],
)
def test_args_sections_describe_parameters(docstring: str, about: str, described: str) -> None:
    def documented(a: int = 1, b: int = 2) -> None: ...

    documented.__doc__ = docstring
    made = tool(documented)

    assert made.prompt(PLAIN_VIEW) == about
    assert made.input_schema["properties"]["a"].get("description", "") == described


@pytest.mark.parametrize(
    ("lines", "problem"),
    [
        pytest.param("fruit: What to price.\n    curency: Of which land.", "'curency'", id="a letter is missing"),
        pytest.param("Currency: Of which land.", "'Currency'", id="a capital letter"),
        pytest.param("money (str, optional): Of which land.", "'money'", id="a parameter that is gone"),
    ],
)
def test_a_docstring_that_describes_a_parameter_that_there_is_not_fails_where_the_tool_is_declared(
    lines: str, problem: str
) -> None:
    def price(fruit: str, currency: str = "EUR") -> None: ...

    price.__doc__ = f"Price it.\n\nArgs:\n    {lines}\n"
    with pytest.raises(ToolDefinitionError) as caught:
        tool(price)

    assert f"price: the docstring describes {problem}, which is not a parameter." in str(caught.value)
    assert ("Did you mean 'currency'?" in str(caught.value)) is (problem != "'money'")


@pytest.mark.parametrize(
    "lines",
    [
        pytest.param("a: The one.\n    ctx: What the call is given.\n    tell: For news.", id="what the call is given"),
        pytest.param("a: The one.\n    Note: It is a number.", id="a remark"),
        pytest.param("a, ctx: Both.", id="several in one line"),
        pytest.param("None: there is nothing to say", id="nothing"),
        pytest.param("`a`: The one.\n    *more: Others.", id="marks around the name"),
    ],
)
def test_a_docstring_that_names_no_wrong_parameter_is_taken_as_it_is(lines: str) -> None:
    def documented(a: int, ctx: ToolContext, tell: ProgressCallback) -> None: ...

    documented.__doc__ = f"Do it.\n\nArgs:\n    {lines}\n"
    assert tool(documented).prompt(PLAIN_VIEW) == "Do it."


def test_the_docstring_of_a_wrapped_function_is_about_its_own_parameters() -> None:
    @tool
    @functools.wraps(counted := _counted)
    def wrapper(*args: Any, **kwargs: Any) -> str:
        return counted(*args, **kwargs)

    assert wrapper.input_schema["properties"]["text"]["description"] == "What to count."


def _counted(text: str) -> str:
    """Count it.

    Args:
        text: What to count.
    """
    return str(len(text))


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        pytest.param({"read_only": "no"}, "read_only is 'no'. Use True or False.", id="a text counts as a yes"),
        pytest.param({"interrupt": "stop"}, "interrupt is 'stop'. Use 'cancel', 'block' or None.", id="interrupt"),
        pytest.param({"timeout": "5"}, "timeout is '5'. Use a number of seconds above 0, or None.", id="text"),
        pytest.param({"timeout": 0}, "timeout is 0. Use a number of seconds above 0, or None.", id="no time"),
        pytest.param(
            {"max_result_chars": -1}, "max_result_chars is -1. Use a whole number above 0, or None.", id="size"
        ),
    ],
)
def test_a_flag_with_a_value_that_it_cannot_have_is_refused_where_it_is_written(
    flags: dict[str, Any], message: str
) -> None:
    def greet(name: str) -> str:
        """Greet a person."""
        return name

    class Greet(Tool[Input]):
        name = "greet"
        input_model = Input

        async def call(self, args: Input, ctx: ToolContext) -> Output:
            return Output(text="")

    with pytest.raises(ToolDefinitionError) as caught:
        tool(**flags)(greet)
    assert str(caught.value) == f"greet: {message}"

    if "read_only" not in flags:  # a method of a class, not a member
        instance = Greet()
        for flag, value in flags.items():
            setattr(instance, flag, value)
        with pytest.raises(ToolDefinitionError) as caught:
            check_tool(instance)
        assert str(caught.value) == f"greet: {message}"


def test_a_result_that_nothing_awaits_is_an_error_that_names_the_mistake() -> None:
    @tool
    def fetch() -> Any:
        """Forget to await."""

        async def get() -> str:
            return "page"

        return get()

    outcome = call_sync(fetch)

    assert outcome.status.value == "error"
    assert "it returned a coroutine, which nothing awaits. Declare the function with async def." in outcome.result.text


def test_a_crash_without_words_is_named_by_its_kind() -> None:
    @tool
    def fail() -> str:
        """Fail without words."""
        raise RuntimeError

    assert call_sync(fail).result.text == ("fail failed unexpectedly: RuntimeError. Try another input or another tool.")


def test_a_crash_whose_words_crash_is_named_by_its_own_kind() -> None:
    class MuteError(Exception):
        def __str__(self) -> str:
            raise KeyError("words")

    @tool
    def fail() -> str:
        """Fail with an error that cannot be printed."""
        raise MuteError

    assert "fail failed unexpectedly: MuteError: its message cannot be shown" in call_sync(fail).result.text


def test_a_text_beside_the_type_describes_a_parameter_that_the_docstring_does_not() -> None:
    @tool
    def find(query: Annotated[str, "What to look for."], limit: Annotated[int, "Not this."] = 5) -> str:
        """Find something.

        Args:
            limit: At most so many.
        """
        return f"{query} {limit}"

    properties = find.input_schema["properties"]

    assert properties["query"]["description"] == "What to look for."
    assert properties["limit"]["description"] == "At most so many."
