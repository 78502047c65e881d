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
    "handrail.tools.cards": ("Card", "ToolDisplay"),
    "handrail.tools.access": ("Access",),
    "handrail.tools.abort": ("AbortSignal",),
    "handrail.tools.permission": ("Decision", "Opinion", "Allow", "Deny", "Ask", "Refuse", "PermissionSnapshot"),
    "handrail.dispatch.executor": ("ToolExecutor",),
    "handrail.dispatch.approval.question": ("Question", "Proposal", "Handler", "PermissionHooks", "SettingsWriter"),
}

FOR_PROGRAMS: Mapping[str, str] = {
    "PermissionSnapshot.allow_rules": "tools of users read it from their context",
    "PermissionSnapshot.ask_rules": "tools of users read it from their context",
    "PermissionSnapshot.deny_rules": "tools of users read it from their context",
    "Access.unknown": "authors of tools declare it",
    "Question.always": "a can_use_tool callback returns it",
    "Pool.definitions": "programs make requests of their own with it",
    "Question.proposals": "a can_use_tool callback shows them",
    "Question.risk": "a can_use_tool callback shows it",
    "RunOptions.mcp_resources": "tools of users read it from their context",
    "RunOptions.mcp_servers": "tools of users read it from their context",
    "Tool.is_concurrency_safe": "the default of `access` asks for it, which is in the same module",
    "Tool.is_destructive": "questions and `handrail tools` read it through the tables WARNINGS and FLAGS",
    "Tool.permission_matcher": "rules with a specifier ask for it",
    "ToolExecutor.in_progress": "programs that drive an executor look at it",
}
"""Members that are there for the programs of users alone, each with its use."""


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
    assert [name for name in unused(CONTRACT, SOURCE) if name not in FOR_PROGRAMS] == [], (
        "use it, delete it, or say in FOR_PROGRAMS which programs of users need it"
    )


def test_a_member_that_nothing_reads_is_named(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "tool.py").write_text(
        "class Tool:\n"
        "    name: str\n"
        "    hint: str\n"
        "    def __init__(self): self.age = 1; self._age = 2\n"
        "    def draw(self): return self.tag()\n"
        "    def tag(self): ...\n"
        "    def _hidden(self): ...\n"
    )
    (tmp_path / "shop" / "user.py").write_text(
        "class Mine(Tool):\n"
        "    def tag(self): ...\n"
        "def use(tool):\n"
        "    tool.age = tool.draw()\n"
        "    match tool:\n"
        "        case Tool(name=name): return name\n"
    )

    assert unused({"shop.tool": ("Tool",)}, tmp_path) == ["Tool.age", "Tool.hint", "Tool.tag"]
