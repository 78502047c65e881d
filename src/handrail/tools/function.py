"""`@tool` makes a Tool of a typed function: the signature gives the schema, the docstring the description."""

import inspect
import os
from collections.abc import Callable, Mapping
from enum import Enum
from functools import cached_property, partial
from types import UnionType
from typing import (
    Annotated,
    Any,
    Literal,
    TypeAlias,
    TypedDict,
    TypeVar,
    Union,
    Unpack,
    get_args,
    get_origin,
    overload,
)

from pydantic import BaseModel

from handrail.conversation.blocks import Json
from handrail.errors import ToolDefinitionError
from handrail.files.paths import resolve
from handrail.tools import signature
from handrail.tools.access import Access
from handrail.tools.context import RunContext, ToolContext
from handrail.tools.output import Output
from handrail.tools.tool import PromptView, Tool, check_flags, check_identity
from handrail.tools.wording import did_you_mean

Function = TypeVar("Function", bound=Callable[..., Any])
Names: TypeAlias = str | tuple[str, ...]
"""Names of parameters that hold paths or addresses. An empty tuple says that there are none."""

PathText: TypeAlias = str | os.PathLike[str]

FILES = ("reads", "writes", "removes", "walks")
TOUCHES = (*FILES, "runs", "reaches")
BEHAVIOUR = frozenset({"read_only", "concurrency_safe", "destructive", "access", *TOUCHES})
"""Flags that are answers of methods; the others are members of Tool."""


class FunctionFlags(TypedDict, total=False):
    """How a function tool behaves: the arguments of `@tool`. Names and careful defaults are those of Tool."""

    name: str
    aliases: tuple[str, ...]
    search_hint: str
    read_only: bool
    concurrency_safe: bool
    destructive: bool
    access: Callable[..., Access] | None
    reads: Names | None
    writes: Names | None
    removes: Names | None
    walks: Names | None
    runs: str | None
    reaches: Names | None
    subject: str
    interrupt: Literal["cancel", "block"] | None
    requires_user_interaction: bool
    error_cancels_siblings: bool
    timeout: float | None
    max_result_chars: int | None
    should_defer: bool
    always_load: bool


class FunctionTool(Tool[BaseModel]):
    """A tool made from a function. It can still be called as that function."""

    def __init__(self, function: Callable[..., Any], flags: FunctionFlags) -> None:
        signature.check_callable(function)
        self._function = function
        self._flags = flags
        self.__doc__ = function.__doc__
        self.__name__ = function.__name__
        if unknown := flags.keys() - FunctionFlags.__annotations__.keys():
            hint = did_you_mean(min(unknown), FunctionFlags.__annotations__)
            raise TypeError(f"tool() got an unexpected keyword argument {min(unknown)!r}.{hint}")
        check_flags(flags.get("name") or function.__name__, flags)
        for member, value in flags.items():
            if member not in BEHAVIOUR:
                setattr(self, member, value)
        self.name = flags.get("name") or function.__name__
        self.is_async = inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(inspect.unwrap(function))
        check_identity(self.name, self.aliases, self.search_hint)
        self._about, of_parameters = signature.read_docstring(function)
        self.input_model, self._injected = signature.make_input_model(function, self.name, of_parameters)
        self._fields = tuple(self.input_model.model_fields)
        self._touches = _touch_parameters(flags, self.name, self.input_model)

    @property
    def blocking(self) -> bool:  # type: ignore[override]  # decided by the function, not by the class
        return not self.is_async

    def __call__(self, *args: object, **kwargs: object) -> Any:
        return self._function(*args, **kwargs)

    @cached_property
    def output_schema(self) -> Json | None:
        return signature.output_schema(self._function)

    def prompt(self, view: PromptView) -> str:
        return self._about

    def is_read_only(self, args: BaseModel) -> bool:
        return self._flags.get("read_only", False)

    def is_concurrency_safe(self, args: BaseModel) -> bool:
        return self._flags.get("concurrency_safe", False)

    def is_destructive(self, args: BaseModel) -> bool:
        return self._flags.get("destructive", False)

    def access(self, args: BaseModel, run: RunContext) -> Access:
        if access := self._flags.get("access"):
            return access(**self._values(args)) if self._knows_folder else from_process(access(**self._values(args)))
        if self._touches is None:
            return super().access(args, run)
        given = {kind: _paths(args, names) for kind, names in self._touches.items()}
        named = any(given.values()) and not given["runs"] and not given["reaches"]
        return Access.of(
            reads=given["reads"],
            writes=given["writes"],
            removes=given["removes"],
            walks=given["walks"],
            runs=str(given["runs"][0]) if given["runs"] else None,
            reaches=given["reaches"],
            width="named" if named else "shared" if self.is_concurrency_safe(args) else "exclusive",
        )

    async def call(self, args: BaseModel, ctx: ToolContext) -> Output:
        return as_output(await self._function(**self._with_decided_paths(args, ctx), **self._extra(ctx)))

    def call_blocking(self, args: BaseModel, ctx: ToolContext) -> Output:
        return as_output(self._function(**self._with_decided_paths(args, ctx), **self._extra(ctx)))

    def _values(self, args: BaseModel) -> dict[str, Any]:
        return {name: getattr(args, name) for name in self._fields}

    @property
    def _knows_folder(self) -> bool:
        """Whether the function can start relative paths from the folder of the run."""
        return ToolContext in self._injected.values()

    def _with_decided_paths(self, args: BaseModel, ctx: ToolContext) -> dict[str, Any]:
        """The values, with declared paths as the absolute ones that were decided on."""
        values, touches = self._values(args), self._touches or {}
        for name in {each for kind in FILES for each in touches.get(kind, ())}:
            values[name] = _map_paths(values[name], partial(_absolute, ctx, link=name in touches["removes"]))
        return values

    def _extra(self, ctx: ToolContext) -> dict[str, Any]:
        return {name: ctx if kind is ToolContext else ctx.progress for name, kind in self._injected.items()}


@overload
def tool(function: Function, /) -> FunctionTool: ...
@overload
def tool(**flags: Unpack[FunctionFlags]) -> Callable[[Callable[..., Any]], FunctionTool]: ...
def tool(function: Callable[..., Any] | None = None, /, **flags: Unpack[FunctionFlags]) -> Any:
    """
    Make a Tool from a typed function, sync or async.

    Parameters become the input schema (`Annotated[int, Field(ge=1)]` is respected), the docstring the description.
    A parameter annotated with ToolContext or ProgressCallback is filled in for the call and hidden from the model.
    `reads`, `writes`, `removes`, `walks`, `runs` and `reaches` name the parameters that hold paths, a command line or
    addresses: together they are all that the function touches, and paths reach it as the absolute ones that permission
    was decided for. `subject` names the one that rules such as
    `Deploy(prod)` are matched against.

    Raises:
        ToolDefinitionError: the function cannot be a tool; the message says what to change.
    """
    if function is not None:
        return FunctionTool(function, {})
    return lambda decorated: FunctionTool(decorated, flags)


def as_output(value: object) -> Output:
    """The return value of a function as an Output: text stays text, anything else is data, sent as JSON."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("it returned a coroutine, which nothing awaits. Declare the function with async def")
    match value:
        case Output():
            return value
        case str():
            return Output(text=value)
        case bytes():
            return Output(text=value.decode("utf-8", "replace"))
        case None:
            return Output()
        case _:
            return Output(data=value)


def from_process(access: Access) -> Access:
    """The same declaration with relative paths as the process opens them, wherever the run works."""
    if access.own or not access.declared:
        return access
    join = partial(_join, os.getcwd())  # noqa: PTH109  # texts are due
    return access._replace(
        reads=tuple(map(join, access.reads)),
        writes=tuple(map(join, access.writes)),
        removes=tuple(map(join, access.removes)),
        walks=tuple(map(join, access.walks)),
    )


def _join(cwd: str, path: str) -> str:
    return path if path.startswith("~") else os.path.join(cwd, path)  # noqa: PTH118  # a text is due


def _absolute(ctx: ToolContext, path: PathText, *, link: bool) -> PathText:
    """The decided path in the same type. What is removed stays a link if it is one; all others are resolved."""
    spelling = os.fspath(path)
    place = ctx.decided_place(spelling) or resolve(spelling, str(ctx.cwd), os.path.expanduser("~"))  # noqa: PTH111
    found = place.absolute if link else place.real
    return found if isinstance(path, str) else type(path)(found)  # type: ignore[call-arg]  # as Path takes a text


def _map_paths(value: Any, change: Callable[[PathText], PathText]) -> Any:
    """The value of a path parameter (`_holds_paths`) with each path changed."""
    if value is None:
        return None
    if isinstance(value, str | os.PathLike):
        return change(value)
    return list(map(change, value)) if isinstance(value, list) else tuple(map(change, value))


def _touch_parameters(flags: FunctionFlags, name: str, model: type[BaseModel]) -> Mapping[str, tuple[str, ...]] | None:
    """The parameters by what the function does with them; None when nothing is declared."""
    fields = model.model_fields
    values: Mapping[str, Any] = flags
    given = {kind: values.get(kind) for kind in TOUCHES}
    found = {kind: (names,) if isinstance(names, str) else tuple(names or ()) for kind, names in given.items()}
    for kind, names in {**found, "subject": filter(None, [flags.get("subject")])}.items():
        if unknown := next((each for each in names if each not in fields), None):
            raise ToolDefinitionError(
                f"{name}: {kind} names {unknown!r}, which is not a parameter of the function. Name one that is."
            )
    for kind, parameters in found.items():
        for each in parameters:
            hint = fields[each].annotation
            if not (_is_text(hint) if kind == "runs" else _holds_paths(hint)):
                due = "str" if kind == "runs" else "str, Path, or a list or tuple of them"
                raise ToolDefinitionError(f"{name}: {kind} names {each!r}, whose type is {_name_of(hint)}. Use {due}.")
    if len(found["runs"]) > 1:
        raise ToolDefinitionError(f"{name}: runs names several parameters. Run one command line in a call.")
    declared = any(names is not None for names in given.values())
    if declared and flags.get("access") is not None:
        raise ToolDefinitionError(f"{name}: access says what it touches; leave out {', '.join(TOUCHES)}.")
    return found if declared else None


def _holds_paths(hint: Any) -> bool:
    """Whether every value of a type is a path, a list or tuple of paths, or None."""
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType):
        return all(map(_holds_paths, inner))
    if origin in (list, tuple):
        return bool(inner) and all(_is_path(each) for each in inner if each is not ...)
    return hint is type(None) or _is_path(hint)


def _is_path(hint: Any) -> bool:
    origin, inner = get_origin(hint), get_args(hint)
    if origin is Annotated:
        return _is_path(inner[0])
    if origin in (Union, UnionType):
        return all(map(_is_path, inner))
    if origin is Literal:
        return all(type(each) is str for each in inner)
    return isinstance(hint, type) and issubclass(hint, str | os.PathLike) and not issubclass(hint, Enum)


def _is_text(hint: Any) -> bool:
    return hint is str or (get_origin(hint) in (Union, UnionType) and set(get_args(hint)) <= {str, type(None)})


def _name_of(hint: Any) -> str:
    return hint.__name__ if isinstance(hint, type) and not get_args(hint) else str(hint)


def _paths(args: BaseModel, names: tuple[str, ...]) -> list[PathText]:
    """
    The paths in these parameters: each holds one, several, or none.

    Raises:
        TypeError: a default or a validator of the function put something else there.
    """
    found: list[PathText] = []
    for value in (getattr(args, name) for name in names):
        if isinstance(value, str | os.PathLike):
            found.append(value)
        elif isinstance(value, list | tuple):
            found += [each for each in value if os.fspath(each) is not None]
        elif value is not None:
            raise TypeError(f"{value!r} is not a path")
    return found
