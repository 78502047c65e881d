"""errors.py holds every exception that leaves its module, and its docstring draws them as they are."""

import ast
import builtins
import re
from pathlib import Path

from handrail import errors

SOURCE = Path(errors.__file__).parent
ROOTS = frozenset(
    name for name, value in vars(builtins).items() if isinstance(value, type) and issubclass(value, BaseException)
)
CLASS_WITH_BASES = re.compile(r"class\s+\w+\s*\(")


def drawn() -> dict[str, str]:
    """Each name of the tree with the name above it."""
    above: list[tuple[int, str]] = [(0, "Exception")]
    found: dict[str, str] = {}
    for line in (errors.__doc__ or "").splitlines():
        depth = len(line) - len(line.lstrip())
        if depth == 0:
            continue
        while above[-1][0] >= depth:
            above.pop()
        name = line.split()[0]
        found[name] = above[-1][1]
        above.append((depth, name))
    return found


def exceptions(text: str, known: frozenset[str]) -> list[ast.ClassDef]:
    """The exceptions that a file defines, also those on top of its own."""
    found: list[ast.ClassDef] = []
    if not CLASS_WITH_BASES.search(text):
        return found
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.ClassDef):
            bases = {ast.unparse(base).rpartition(".")[2] for base in node.bases}
            if bases & (known | {one.name for one in found}):
                found.append(node)
    return found


def test_the_tree_in_the_docstring_shows_the_classes_as_they_are() -> None:
    classes = {name: value for name, value in vars(errors).items() if isinstance(value, type)}

    assert drawn() == {name: value.__bases__[0].__name__ for name, value in classes.items()}


def test_an_exception_that_stands_elsewhere_is_private_and_stays_in_its_module() -> None:
    known = frozenset({*ROOTS, *drawn()})
    texts = {file: file.read_text() for file in SOURCE.rglob("*.py") if file.name != "errors.py"}
    elsewhere = {file: exceptions(text, known) for file, text in texts.items()}

    assert {str(file): node.name for file, nodes in elsewhere.items() for node in nodes if node.name[0] != "_"} == {}
    private = {node.name for nodes in elsewhere.values() for node in nodes}
    assert private
    for file, text in texts.items():
        if not any(name in text for name in private):
            continue
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ImportFrom):
                assert not private & {alias.name for alias in node.names}, file
