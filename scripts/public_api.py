"""
Prints the public API: every name of `handrail.__all__` with its signature, as source text.

Taken from the syntax tree and not from live objects, because those print differently from one Python to the next.
"""

import ast
import importlib
import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType

FunctionNode = ast.FunctionDef | ast.AsyncFunctionDef


def public(name: str) -> bool:
    return not name.startswith("_") or name == "__init__"


def signature(node: FunctionNode) -> str:
    returns = f" -> {ast.unparse(node.returns)}" if node.returns else ""
    marks = "".join(f"@{ast.unparse(mark)} " for mark in node.decorator_list)
    kind = "async def" if isinstance(node, ast.AsyncFunctionDef) else "def"
    return f"{marks}{kind} {node.name}({ast.unparse(node.args)}){returns}"


def describe_class(node: ast.ClassDef) -> Iterator[str]:
    marks = "".join(f"@{ast.unparse(mark)} " for mark in node.decorator_list)
    bases = ", ".join(ast.unparse(base) for base in [*node.bases, *node.keywords])
    yield f"{marks}class {node.name}({bases})" if bases else f"{marks}class {node.name}"
    yield from describe_members(node)


def describe_members(node: ast.ClassDef) -> Iterator[str]:
    for member in node.body:
        match member:
            case ast.FunctionDef() | ast.AsyncFunctionDef() if public(member.name):
                yield f"    {signature(member)}"
            case ast.AnnAssign(target=ast.Name(id=name)) if public(name):
                yield f"    {ast.unparse(member)}"
            case ast.Assign(targets=[ast.Name(id=name)]) if public(name):
                yield f"    {ast.unparse(member)}"


def definition(value: object) -> ast.stmt | None:
    """The statement that defines a class or function, or None for plain values."""
    if not (inspect.isclass(value) or inspect.isfunction(value)):
        return None
    module = importlib.import_module(value.__module__)
    tree = ast.parse(Path(inspect.getfile(module)).read_text("utf-8"))
    found = [node for node in ast.walk(tree) if getattr(node, "name", None) == value.__qualname__]
    # the last one, because overloads stand before their implementation
    return next((node for node in reversed(found) if isinstance(node, FunctionNode | ast.ClassDef)), None)


def hidden_bases(package: ModuleType, value: object) -> Iterator[ast.ClassDef]:
    """The bases of a class that have no public name themselves: what they define is part of the class."""
    for base in inspect.getmro(value)[1:] if inspect.isclass(value) else ():
        if base.__name__ in package.__all__:
            return
        node = definition(base) if base.__module__.startswith(f"{package.__name__}.") else None
        if isinstance(node, ast.ClassDef):
            yield node


def describe(package: ModuleType, name: str) -> Iterator[str]:
    value = getattr(package, name)
    match definition(value):
        case ast.ClassDef() as node:
            yield from describe_class(node)
            for base in hidden_bases(package, value):
                yield from describe_members(base)
        case ast.FunctionDef() | ast.AsyncFunctionDef() as node:
            yield signature(node)
        case _ if isinstance(value, str):
            yield f"{name}: str"
        case _:
            yield f"{name} = {value!r}"


def main(package_name: str = "handrail") -> int:
    package = importlib.import_module(package_name)
    for name in sorted(package.__all__):
        print("\n".join(describe(package, name)))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
