"""Every member of the tool contract is used by the product: what nothing calls is a promise that nothing keeps."""

import ast
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from functools import cache
from pathlib import Path

from handrail.records import record

SOURCE = Path(__file__).resolve().parents[2] / "src"

CONTRACT = {
    "handrail.tools.tool": ("Tool", "PromptView", "McpInfo"),
    "handrail.tools.context": (
        "ToolContext",
        "RunContext",
        "RunOptions",
        "AgentIdentity",
        "StateStore",
        "Progress",
        "Budget",
        "AgentType",
        "McpResource",
    ),
    "handrail.tools.output": ("Output", "McpMeta", "ContextChange"),
    "handrail.tools.outcome": ("Outcome",),
    "handrail.tools.pool": ("Pool",),
    "handrail.tools.catalog": ("Catalog",),
    "handrail.tools.cards": ("Card", "ToolDisplay"),
    "handrail.tools.access": ("Access",),
    "handrail.tools.abort": ("AbortSignal",),
    "handrail.tools.permission": ("Decision", "Opinion", "Allow", "Deny", "Ask", "Refuse", "PermissionSnapshot"),
    "handrail.dispatch.call_state": ("Call",),
    "handrail.dispatch.executor": ("ToolExecutor",),
    "handrail.dispatch.approval.question": ("Question", "Proposal", "Handler", "PermissionHooks", "SettingsWriter"),
}

TOOLS_OF_USERS = "tools of users read it from their context"
PROMPTS_OF_USERS = "prompts and descriptions of users' tools read it"
CALLBACKS = "a can_use_tool callback of the user shows it"
THROUGH_CONTEXT = "ToolContext, in the same module, hands it on"

FOR_PROGRAMS: Mapping[str, str] = {
    "AgentType": PROMPTS_OF_USERS,
    "Budget": TOOLS_OF_USERS,
    "PromptView": PROMPTS_OF_USERS,
    "Proposal": CALLBACKS,
    "StateStore": TOOLS_OF_USERS,
    **dict.fromkeys([f"PermissionSnapshot.{name}_rules" for name in ("allow",)], TOOLS_OF_USERS),
    **dict.fromkeys([f"PermissionSnapshot.{name}_available" for name in ("auto", "bypass")], TOOLS_OF_USERS),
    "PermissionSnapshot.pre_plan_mode": TOOLS_OF_USERS,
    **dict.fromkeys([f"RunOptions.{name}" for name in ("commands", "debug", "verbose")], TOOLS_OF_USERS),
    **dict.fromkeys([f"ToolContext.{name}" for name in ("refresh_tools", "session_state", "state")], TOOLS_OF_USERS),
    **dict.fromkeys([f"RunContext.{name}" for name in ("budget",)], THROUGH_CONTEXT),
    **dict.fromkeys([f"RunContext.{name}" for name in ("message", "refresh_tools", "state")], THROUGH_CONTEXT),
    "RunContext.session_state": THROUGH_CONTEXT,
    "AbortSignal.reason": "tools of users ask why they are stopped",
    "Access.unknown": "tools of users that cannot say what they touch",
    "SettingsWriter.where": "the proposals of a question, in the same module, ask for it",
    "ToolExecutor.ready": "programs drive it",
}
"""Members, or whole classes, that are there for the programs of users or are read in a way that is not seen here."""


def is_excused(name: str) -> bool:
    return name in FOR_PROGRAMS or name.partition(".")[0] in FOR_PROGRAMS


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


@record
class Source:
    """What the modules below a folder say about classes, and which members they read."""

    bases: dict[str, set[str]]
    """The classes that a class is made from, by name."""
    names: dict[str, set[str]]
    """The names that are annotated with a class, or hold a new one."""
    reads: dict[tuple[str, str], set[str]]
    """The modules that read a member, by the name before the dot; `self` is the name of its class."""

    def readers(self, owner: str, member: str) -> set[str]:
        """The modules that read a member of a class."""
        classes = {name for name in self.bases if self._is_a(name, owner)} | {owner}
        names = classes.union(*map(self._names, classes))
        return set().union(*(self.reads.get((name, member), ()) for name in names))

    def _is_a(self, name: str, owner: str) -> bool:
        return name == owner or any(self._is_a(base, owner) for base in self.bases.get(name, ()) if base != name)

    def _names(self, owner: str) -> set[str]:
        """The names of a class; a type alias stands for the classes in it."""
        found = self.names.get(owner, set())
        return found.union(*(self.names.get(name, ()) for name in found if name[:1].isupper()))


@cache
def read_source(folder: Path) -> Source:
    source = Source({}, {}, {})
    for file in folder.rglob("*.py"):
        module = ".".join(file.relative_to(folder).with_suffix("").parts)
        note_reads(ast.parse(file.read_text("utf-8")), module, "", source)
    return source


def note_reads(tree: ast.AST, module: str, owner: str, source: Source) -> None:
    """Add what a module, or a class in it, says."""
    for node in ast.iter_child_nodes(tree):
        inside = owner
        match node:
            case ast.ClassDef(name=inside, bases=above):
                source.bases.setdefault(inside, set()).update(word for base in above for word in words(base))
            case ast.Attribute(value=value, attr=member, ctx=ast.Load()):
                before = receiver(value)
                source.reads.setdefault((owner if before == "self" else before, member), set()).add(module)
            case ast.MatchClass(cls=ast.Name(id=name), kwd_attrs=members_):
                for member in members_:
                    source.reads.setdefault((name, member), set()).add(module)
            case (
                ast.arg(arg=name, annotation=annotation)
                | ast.FunctionDef(name=name, returns=annotation)
                | ast.AsyncFunctionDef(name=name, returns=annotation)
            ):
                note_name(name, annotation, source)
            case ast.AnnAssign(target=ast.Name(id=name) | ast.Attribute(attr=name), annotation=annotation, value=value):
                note_name(name, value if [*words(annotation)] == ["TypeAlias"] else annotation, source)
            case ast.Assign(targets=[ast.Name(id=name) | ast.Attribute(attr=name)], value=ast.Call(func=function)):
                note_name(name, function, source)
            case _:
                pass
        note_reads(node, module, inside, source)


def note_name(name: str, annotation: ast.AST | None, source: Source) -> None:
    for word in words(annotation):
        source.names.setdefault(word, set()).add(name.lstrip("_"))


def receiver(value: ast.expr) -> str:
    """The name before a dot: of a variable, an attribute, or a function that is called."""
    match value:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name.lstrip("_")  # `self._hooks` is what came in as `hooks`
        case ast.Call(func=inner) | ast.Await(value=inner) | ast.Subscript(value=inner):
            return receiver(inner)
        case _:
            return ""


def words(annotation: ast.AST | None) -> Iterator[str]:
    """The names in an annotation, also in a quoted one."""
    for node in ast.walk(annotation) if annotation else ():
        match node:
            case ast.Name(id=name) | ast.Attribute(attr=name):
                yield name
            case ast.Constant(value=str(text)):
                with suppress(SyntaxError):
                    yield from words(ast.parse(text, mode="eval"))
            case _:
                pass


def unused(contract: Mapping[str, Iterable[str]], folder: Path) -> list[str]:
    source = read_source(folder)
    return sorted(
        {
            f"{name}.{member}"
            for module, names in contract.items()
            for name in names
            for member in members(module, name, folder)
            if not source.readers(name, member) - {module}
        }
    )


def test_every_member_of_the_contract_is_used_outside_its_own_module() -> None:
    assert [name for name in unused(CONTRACT, SOURCE) if not is_excused(name)] == [], (
        "use it, delete it, or say in FOR_PROGRAMS which programs of users need it"
    )


def test_every_excuse_is_needed() -> None:
    found = unused(CONTRACT, SOURCE)

    assert [
        name for name in FOR_PROGRAMS if not any(each == name or each.startswith(f"{name}.") for each in found)
    ] == []


def test_a_member_of_another_class_with_the_same_name_does_not_count(tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    (tmp_path / "shop" / "options.py").write_text("class Options:\n    debug: bool\n    model: str\n    size: int\n")
    (tmp_path / "shop" / "user.py").write_text(
        "class Flags:\n    debug: bool\n    options: 'Options | None'\n"
        "def use(flags: Flags): return flags.debug, flags.options.model\n"
        "class More(Options):\n    def area(self): return self.size\n"
    )

    assert unused({"shop.options": ("Options",)}, tmp_path) == ["Options.debug"]


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
        "def use(tool: Tool):\n"
        "    tool.age = tool.draw()\n"
        "    match tool:\n"
        "        case Tool(name=name): return name\n"
    )

    assert unused({"shop.tool": ("Tool",)}, tmp_path) == ["Tool.age", "Tool.hint", "Tool.tag"]
