"""What the signature and the docstring of a function say of a tool: its input, its output, its description."""

import inspect
import warnings
from collections.abc import Callable, Container, Mapping
from keyword import iskeyword
from typing import Annotated, Any, get_args, get_origin, get_type_hints

from pydantic import BaseModel, Field, TypeAdapter, create_model
from pydantic.errors import PydanticUserError
from pydantic.fields import FieldInfo
from pydantic.json_schema import PydanticJsonSchemaWarning
from pydantic_core import SchemaError

from handrail.conversation.blocks import Json
from handrail.errors import ToolDefinitionError
from handrail.tools.context import ProgressCallback, ToolContext
from handrail.tools.output import Output
from handrail.tools.schema import INPUT_CONFIG, model_schema
from handrail.tools.wording import did_you_mean, first_line

UNFIT = (PydanticUserError, PydanticJsonSchemaWarning, SchemaError, ToolDefinitionError, TypeError)
"""What Pydantic raises, or warns of, when a type or a default has no schema."""


def check_callable(function: Callable[..., Any]) -> None:
    """Refuse what cannot be a tool; ToolDefinitionError says what to write instead."""
    if isinstance(function, str):
        raise ToolDefinitionError(f"@tool got the text {function!r}. To name the tool, write @tool(name={function!r}).")
    called = getattr(function, "__name__", repr(function))
    if not inspect.isfunction(function) and not inspect.ismethod(function):
        raise ToolDefinitionError(f"{called} is not a plain function. Wrap it: write a def with types and a docstring.")
    if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
        raise ToolDefinitionError(
            f"{called} yields. Return the result, and use a ProgressCallback for news on the way."
        )
    first = next(iter(inspect.signature(function).parameters.values()), None)
    if first and first.name in {"self", "cls"} and first.annotation is first.empty:
        raise ToolDefinitionError(
            f"{called} is a method of a class. Give tool() the method of an object: tool(object.{called})."
        )


def make_input_model(
    function: Callable[..., Any], name: str, of_parameters: Mapping[str, str]
) -> tuple[type[BaseModel], Mapping[str, object]]:
    """The input model, and which parameters are filled in by type."""
    try:
        hints = get_type_hints(function, include_extras=True)
    except (NameError, TypeError, SyntaxError) as error:
        raise ToolDefinitionError(
            f"{name}: an annotation cannot be resolved: {error}. Import or define the type at the top of the module."
        ) from error
    fields: dict[str, Any] = {}
    injected: dict[str, object] = {}
    parameters = inspect.signature(function).parameters
    for parameter in parameters.values():
        if parameter.kind in {parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY}:
            raise ToolDefinitionError(f"{name}: {parameter} cannot be filled by name. Use plain named parameters.")
        if parameter.name not in hints:
            raise ToolDefinitionError(f"{name}: the parameter {parameter.name!r} has no type. Annotate it.")
        hint = hints[parameter.name]
        if hint in (ToolContext, ProgressCallback):
            injected[parameter.name] = hint
            continue
        if parameter.name.startswith("_") or _is_own_name(parameter.name):
            raise ToolDefinitionError(f"{name}: a parameter cannot be called {parameter.name!r}. Rename it.")
        default = ... if parameter.default is parameter.empty else parameter.default
        fields[parameter.name] = (_describe(hint, of_parameters.get(parameter.name, "")), default)
    if (unknown := next((each for each in of_parameters if _is_unknown(each, parameters)), None)) is not None:
        hint = did_you_mean(unknown.lower(), parameters)
        raise ToolDefinitionError(
            f"{name}: the docstring describes {unknown!r}, which is not a parameter.{hint} "
            "Correct the name, or indent the line if it belongs to the one before."
        )
    try:
        return _model(name, fields), injected
    except UNFIT as error:
        culprit = next((one for one, field in fields.items() if not _fits(name, {one: field})), "?")
        raise ToolDefinitionError(
            f"{name}: the parameter {culprit!r} cannot be described: {first_line(error).partition('. ')[0]}. "
            "Use plain types, dataclasses or BaseModels, and JSON values as defaults."
        ) from error


def _is_unknown(described: str, parameters: Container[str]) -> bool:
    """Whether a line of the docstring describes a parameter that there is not. `Note: ...` describes none."""
    is_name = described.isidentifier() and not iskeyword(described)
    is_prose = described[:1].isupper() and described.lower() not in parameters
    return is_name and not is_prose and described not in parameters


def _is_own_name(name: str) -> bool:
    """Whether Pydantic needs the name itself. Its deprecated methods (copy, json, schema) may become fields."""
    return name.startswith("model_") and hasattr(BaseModel, name)


def _model(name: str, fields: Mapping[str, Any]) -> type[BaseModel]:
    """The model, checked to have a schema: a tool fails where it is declared, not in its first request."""
    with warnings.catch_warnings():
        warnings.simplefilter("error", PydanticJsonSchemaWarning)
        warnings.filterwarnings("ignore", "Field name .* shadows an attribute")  # copy, json, schema
        model: type[BaseModel] = create_model(name, __config__=INPUT_CONFIG, **fields)
        model_schema(model)
    return model


def _fits(name: str, fields: Mapping[str, Any]) -> bool:
    try:
        _model(name, fields)
    except UNFIT:
        return False
    return True


def _describe(hint: Any, text: str) -> Any:
    """
    The hint with a description, from the first that has one: a Field, the docstring's line about the parameter, or a
    text beside the type (`Annotated[str, "What to look for."]`), which pydantic passes over.
    """
    extras = get_args(hint)[1:] if get_origin(hint) is Annotated else ()
    described = any(isinstance(extra, FieldInfo) and extra.description for extra in extras)
    text = text or next((extra for extra in extras if isinstance(extra, str)), "")
    return hint if described or not text else Annotated[hint, Field(description=text)]


def read_docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """The description, and the lines of an `Args:` section by parameter."""
    text = inspect.getdoc(function) or ""
    if not text:
        raise ToolDefinitionError(f"{function.__name__} has no docstring. Write one: the model reads it.")
    about, mark, rest = text.partition("\nArgs:\n")
    if not mark:
        return text.strip(), {}
    parameters: dict[str, str] = {}
    current, indent = "", 0
    lines = rest.split("\n")
    for at, line in enumerate(lines):
        depth = len(line) - len(line.lstrip())
        if line and not depth:
            about += "\n" + "\n".join(lines[at:])
            break
        indent = indent or depth
        head, colon, tail = line.strip().partition(":")
        if line.strip() and depth == indent and colon and not tail.startswith("//"):  # an address is text
            current = head.split("(")[0].strip()
            parameters[current] = tail.strip()
        elif line.strip() and current:
            parameters[current] += " " + line.strip()
    return about.strip(), parameters


def output_schema(function: Callable[..., Any]) -> Json | None:
    """The schema of the return type; None for texts, outputs, and what has no schema."""
    hint = get_type_hints(function, include_extras=True).get("return", Any)
    if hint in (Any, object, None, type(None), str, bytes, Output):
        return None
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error", PydanticJsonSchemaWarning)
            found: Json = TypeAdapter(hint).json_schema(mode="serialization")
            return found
    except UNFIT:
        return None
