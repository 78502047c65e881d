"""
The shape of the source: its measures beside their bars, and the picture of its packages.

    shape.py              every measure, its bar, and what is over it
    shape.py --json       the same as JSON, with all names
    shape.py --picture    the packages by layer, with what each imports
    shape.py --embed      write the picture into docs/architecture.md

It reads source text only and imports nothing of handrail.
"""

import argparse
import ast
import gc
import json
import re
import sys
import textwrap
import tomllib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PACKAGE = "handrail"
BEGIN, END = "<!-- picture: made by `make picture` -->", "<!-- end of picture -->"

MAX_LINES, MAX_MODULE = 56_400, 400
MAX_PARAMETERS, MAX_AGENT_PARAMETERS, MAX_METHODS = 12, 19, 25
MAX_SHARED_NAMES, MAX_LATE = 5.0, 0.5
LAZY = f"{PACKAGE}.lazy"
TOOL, FLAG = "Glob", "is_destructive"
"""A tool that only reads files, and a flag that questions and `explain` show."""

TRANSLATES_FLAG = frozenset(("builtin", "shell", "mcp", "gateway"))
"""Tools that answer for themselves, and MCP, which has a hint of this name: a new flag has none there."""

VAGUE = re.compile(r"\b(nobody|somebody|whoever)\b", re.IGNORECASE)
PARTICIPLE = re.compile(r"_*(?!(?:em)?bed$|feed$|need$|seed$|shed$|speed$|exceed$|proceed$)[a-z]+ed")
IRREGULAR = frozenset(
    re.findall(
        r"\w+",
        "begun bought bound brought built caught chosen done drawn driven fallen felt found given gone grown heard "
        "held hidden kept known laid led left lent lost made meant met paid said seen sent shown sold spent spoken "
        "struck swept taken taught thought told torn understood woken won worn written ",
    )
)


@dataclass(frozen=True, slots=True)
class Module:
    name: str
    text: str
    nodes: tuple[ast.AST, ...]

    @property
    def package(self) -> str:
        """`loop` for `handrail.loop.run`, `errors` for `handrail.errors`."""
        return self.name.split(".")[1] if "." in self.name else "__init__"


@dataclass(frozen=True, slots=True)
class Measure:
    """One figure, the most it should be (None = it is only told), and the names behind it."""

    what: str
    value: float
    bar: float | None = None
    names: tuple[str, ...] = ()

    @property
    def is_kept(self) -> bool:
        return self.bar is None or self.value <= self.bar


def modules(source: Path) -> list[Module]:
    found = []
    for file in sorted((source / PACKAGE).rglob("*.py")):
        parts = file.relative_to(source).with_suffix("").parts
        text = file.read_text("utf-8")
        name = ".".join(parts[:-1] if parts[-1] == "__init__" else parts)
        found.append(Module(name, text, tuple(ast.walk(ast.parse(text, str(file))))))
    return found


# The measures


def measures(code: Sequence[Module]) -> Iterator[Measure]:
    lines = sum(module.text.count("\n") for module in code)
    yield Measure("lines of source", lines, MAX_LINES)
    large = [(module.text.count("\n"), module.name) for module in code]
    over = sorted((item for item in large if item[0] > MAX_MODULE), reverse=True)
    yield Measure(f"modules over {MAX_MODULE} lines", len(over), None, tuple(f"{n} {name}" for n, name in over))
    yield shared_class_names(code)
    yield from constructors(code)
    yield wide_classes(code)
    untyped = [f"{where}(**{name})" for where, name in untyped_keywords(code)]
    yield Measure("functions that take `**options: Any`", len(untyped), 0, tuple(untyped))
    late = list(late_imports(code))
    yield Measure("late imports in 1,000 lines", round(1000 * len(late) / lines, 2), MAX_LATE, tuple(late))
    bare = [
        f"{module.name}.{each.name}"
        for module, each in functions(code)
        if is_participle(each.name) and not is_property(each)
    ]
    yield Measure("functions named by a bare participle", len(bare), 0, tuple(bare))
    vague = {module.name: len(VAGUE.findall(module.text)) for module in code}
    told = tuple(f"{n} {name}" for name, n in sorted(vague.items(), key=lambda item: -item[1]) if n)
    yield Measure("nobody, somebody, whoever", sum(vague.values()), 0, told)
    naming = [module.name for module in code if names_tool(module, TOOL)]
    yield Measure(f"source files that name the tool {TOOL}; a new tool needs 2", len(naming), None, tuple(naming))
    reading = [module.name for module in code if mentions(module, FLAG) and module.package not in TRANSLATES_FLAG]
    yield Measure(f"source files a flag like {FLAG} runs through", len(reading), 3, tuple(reading))


def shared_class_names(code: Sequence[Module]) -> Measure:
    places: dict[str, list[str]] = defaultdict(list)
    for module in code:
        for node in module.nodes:
            if isinstance(node, ast.ClassDef):
                places[node.name.lstrip("_")].append(module.name)
    shared = {name: where for name, where in sorted(places.items()) if len(where) > 1}
    percent = round(100 * len(shared) / max(len(places), 1), 1)
    names = tuple(f"{name}: {', '.join(where)}" for name, where in shared.items())
    return Measure("class names with two meanings, in percent", percent, MAX_SHARED_NAMES, names)


def constructors(code: Sequence[Module]) -> Iterator[Measure]:
    long: list[str] = []
    agent = 0
    for module, owner in classes(code):
        for method in owner.body:
            if not (isinstance(method, ast.FunctionDef) and method.name == "__init__"):
                continue
            takes = method.args
            count = len(takes.posonlyargs) + len(takes.args) + len(takes.kwonlyargs) - 1
            if owner.name == "Agent":
                agent = max(agent, count)
            elif count > MAX_PARAMETERS:
                long.append(f"{count} {module.name}.{owner.name}")
    yield Measure(f"constructors over {MAX_PARAMETERS} parameters", len(long), 0, tuple(sorted(long, reverse=True)))
    yield Measure("parameters of Agent", agent, MAX_AGENT_PARAMETERS)


def wide_classes(code: Sequence[Module]) -> Measure:
    wide = []
    for module, owner in classes(code):
        methods = [each for each in owner.body if isinstance(each, ast.FunctionDef | ast.AsyncFunctionDef)]
        if len(methods) > MAX_METHODS:
            wide.append(f"{len(methods)} {module.name}.{owner.name}")
    return Measure(f"classes over {MAX_METHODS} methods", len(wide), 0, tuple(sorted(wide, reverse=True)))


def untyped_keywords(code: Sequence[Module]) -> Iterator[tuple[str, str]]:
    for module, function in functions(code):
        rest = function.args.kwarg
        if rest is None or function.name == "__init_subclass__":
            continue
        if isinstance(rest.annotation, ast.Name) and rest.annotation.id == "Any":
            yield f"{module.name}.{function.name}", rest.arg


def late_imports(code: Sequence[Module]) -> Iterator[str]:
    """Uses of `lazy`, and what goes past it: import statements inside functions, and calls of `import_module`."""
    for module in code:
        if module.name == LAZY:
            continue
        inside = {
            id(node)
            for function in module.nodes
            if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda)
            for node in ast.walk(function)
            if isinstance(node, ast.Import | ast.ImportFrom)
        }
        for node in module.nodes:
            if id(node) in inside or (isinstance(node, ast.Call) and called(node) in ("lazy", "import_module")):
                yield f"{module.name}:{node.lineno}"  # type: ignore[attr-defined]  # statements and calls have one


def is_participle(name: str) -> bool:
    return PARTICIPLE.fullmatch(name) is not None or name.strip("_") in IRREGULAR


def is_property(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """A property is a value, and values may be adjectives."""
    return any(isinstance(each, ast.Name) and each.id.endswith("property") for each in function.decorator_list)


def names_tool(module: Module, tool: str) -> bool:
    """Whether the module knows the tool: its class, or its name as a whole string."""
    return any(
        (isinstance(node, ast.Constant) and node.value == tool)
        or (isinstance(node, ast.ClassDef | ast.alias) and node.name == tool)
        for node in module.nodes
    )


def mentions(module: Module, attribute: str) -> bool:
    return any(
        (isinstance(node, ast.Attribute) and node.attr == attribute)
        or (isinstance(node, ast.FunctionDef) and node.name == attribute)
        for node in module.nodes
    )


def classes(code: Sequence[Module]) -> Iterator[tuple[Module, ast.ClassDef]]:
    for module in code:
        yield from ((module, node) for node in module.nodes if isinstance(node, ast.ClassDef))


def functions(code: Sequence[Module]) -> Iterator[tuple[Module, ast.FunctionDef | ast.AsyncFunctionDef]]:
    for module in code:
        for node in module.nodes:
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                yield module, node


def called(call: ast.Call) -> str:
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""


# The picture


def imported(code: Sequence[Module]) -> Mapping[str, frozenset[str]]:
    """By package, the other packages of handrail that it imports, at whatever moment."""
    known: dict[str, set[str]] = {module.package: set() for module in code}
    for module in code:
        for node in module.nodes:
            targets: list[str] = []
            if isinstance(node, ast.ImportFrom) and node.module:
                targets = [f"{node.module}.{each.name}" for each in node.names]
            elif isinstance(node, ast.Import):
                targets = [alias.name for alias in node.names]
            for target in targets:
                parts = target.split(".")
                if parts[0] == PACKAGE and len(parts) > 1 and parts[1] != module.package:
                    known[module.package].add(parts[1])
    return {package: frozenset(others) for package, others in known.items()}


def layers(project: Path) -> list[list[str]]:
    """The packages from top to bottom, as the import contract says; those of one layer do not know each other."""
    with (project / "pyproject.toml").open("rb") as file:
        contracts = tomllib.load(file)["tool"]["importlinter"]["contracts"]
    flow = next(contract for contract in contracts if contract["type"] == "layers")
    return [[name.strip() for name in layer.split("|")] for layer in flow["layers"]]


def picture(project: Path, code: Sequence[Module]) -> str:
    """Each package with what it imports, layer by layer from top to bottom; a rule stands between two layers."""
    order = layers(project)
    rank = {name: number for number, name in enumerate(name for layer in order for name in layer)}
    knows = imported(code)
    width = max(map(len, rank))
    blocks = []
    for layer in order:
        rows = []
        for name in layer:
            others = sorted(knows.get(name, frozenset()) & rank.keys(), key=rank.__getitem__)
            uses = " ".join(others) or "nothing of ours"
            rows.append(
                textwrap.fill(uses, 110, initial_indent=f"{name.ljust(width)}  ", subsequent_indent=" " * (width + 2))
            )
        blocks.append("\n".join(rows))
    rule = "\n" + "-" * width + "\n"
    return rule.join(blocks)


def embedded(page: str, drawing: str) -> str:
    """The page with the drawing between its markers."""
    before, _, rest = page.partition(BEGIN)
    _, found, after = rest.partition(END)
    if not found:
        raise SystemExit(f"docs/architecture.md needs the lines {BEGIN!r} and {END!r}, with the picture between them.")
    return f"{before}{BEGIN}\n```text\n{drawing}\n```\n{END}{after}"


# The report


def report(found: Sequence[Measure], shown: int) -> Iterator[str]:
    for measure in found:
        bar = "" if measure.bar is None else f"at most {measure.bar:,g}"
        over = "" if measure.is_kept else "OVER"
        yield f"{measure.what:<62} {measure.value:>9,g}  {bar:<16} {over}".rstrip()
        if not measure.is_kept or measure.bar is None:
            yield from (f"    {name}" for name in measure.names[:shown])
            if len(measure.names) > shown:
                yield f"    and {len(measure.names) - shown} more (--json names them all)"


def main() -> int:
    parser = argparse.ArgumentParser(description="the shape of the source")
    parser.add_argument("--json", action="store_true", help="everything, as JSON")
    parser.add_argument("--picture", action="store_true", help="only the packages and what they import")
    parser.add_argument("--embed", action="store_true", help="write the picture into docs/architecture.md")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parents[1], help="another checkout")
    parser.add_argument("--names", type=int, default=8, help="how many names to show of each measure")
    options = parser.parse_args()

    gc.disable()  # what is parsed stays to the end
    code = modules(options.root / "src")
    if options.embed:
        page = options.root / "docs" / "architecture.md"
        page.write_text(embedded(page.read_text("utf-8"), picture(options.root, code)), "utf-8")
        return 0
    if options.picture:
        print(picture(options.root, code))
        return 0
    found = list(measures(code))
    if options.json:
        whole = [{"what": m.what, "value": m.value, "bar": m.bar, "kept": m.is_kept, "names": m.names} for m in found]
        print(json.dumps(whole, indent=1))
        return 0
    print("\n".join(report(found, options.names)))
    return 0


if __name__ == "__main__":
    sys.exit(main())
