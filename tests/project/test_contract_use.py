"""Every member of the tool contract is used by the product: what nothing calls is a promise that nothing keeps."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path

SOURCE = Path(__file__).resolve().parents[2] / "src"

CONTRACT = {
    "handrail.tools.tool": ("Tool", "PromptView", "McpInfo"),
    "handrail.tools.context": ("ToolContext", "RunContext", "RunOptions", "AgentIdentity", "StateStore", "Progress"),
    "handrail.tools.output": ("Output", "McpMeta"),
    "handrail.tools.outcome": ("Outcome",),
    "handrail.tools.pool": ("Pool",),
    "handrail.tools.catalog": ("Catalog",),
    "handrail.tools.cards": ("Card",),
    "handrail.tools.access": ("Access",),
    "handrail.tools.abort": ("AbortSignal",),
    "handrail.tools.permission": ("Decision", "Opinion", "Allow", "Deny", "Ask", "Refuse", "PermissionSnapshot"),
    "handrail.dispatch.executor": ("ToolExecutor",),
    "handrail.dispatch.approval.question": ("Question", "Proposal", "Handler", "PermissionHooks", "Persist"),
}

FOR_PROGRAMS: Mapping[str, str] = {
    "Tool.call_blocking": "threads call it through the pipeline under another name",
}
"""Members that are there for the programs of users, each with its reason."""


def file_of(module: str, source: Path) -> Path:
    return source.joinpath(*module.split(".")).with_suffix(".py")


def members(module: str, name: str, source: Path) -> Iterator[str]:
    """The public methods, properties and fields that the class itself defines."""
    tree = ast.parse(file_of(module, source).read_text("utf-8"))
    owner = next(node for node in tree.body if isinstance(node, ast.ClassDef) and node.name == name)
    for node in owner.body:
        match node:
            case ast.FunctionDef(name=member) | ast.AsyncFunctionDef(name=member):
                found = [member]
            case ast.AnnAssign(target=ast.Name(id=member)):
                found = [member]
            case _:
                found = []
        yield from (member for member in found if not member.startswith("_"))
    for assigned in ast.walk(owner):
        match assigned:
            case ast.Assign(targets=[ast.Attribute(value=ast.Name(id="self"), attr=member)]):
                if not member.startswith("_"):
                    yield member
            case _:
                pass


@cache
def references(source: Path) -> Mapping[str, frozenset[str]]:
    """By name, the modules that read an attribute of that name, or take it apart in a match."""
    found: dict[str, set[str]] = {}
    for file in source.rglob("*.py"):
        module = ".".join(file.relative_to(source).with_suffix("").parts)
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            match node:
                case ast.Attribute(attr=name, ctx=ast.Load()):
                    found.setdefault(name, set()).add(module)
                case ast.MatchClass(kwd_attrs=names):
                    for name in names:
                        found.setdefault(name, set()).add(module)
                case _:
                    pass
    return {name: frozenset(modules) for name, modules in found.items()}


def unused(contract: Mapping[str, Iterable[str]], source: Path) -> list[str]:
    read = references(source)
    return sorted(
        {
            f"{name}.{member}"
            for module, names in contract.items()
            for name in names
            for member in members(module, name, source)
            if not read.get(member, frozenset()) - {module}
        }
    )


def test_every_member_of_the_contract_is_used_outside_its_own_module() -> None:
    assert [name for name in unused(CONTRACT, SOURCE) if name not in FOR_PROGRAMS] == []
