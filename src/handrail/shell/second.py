"""
Parses the text a second time, with tree-sitter's grammar of bash, and compares.

A line counts as understood only if it has no error there, is made of node kinds we know, and has its commands at
the same places. Neither parser is trusted alone: each has misreadings the other does not share.
"""

from functools import cache
from importlib.machinery import ExtensionFileLoader, PathFinder
from threading import local
from typing import TYPE_CHECKING, Any

import tree_sitter

from handrail.errors import UnclearError
from handrail.lazy import lazy

if TYPE_CHECKING:
    import tree_sitter_bash
else:
    tree_sitter_bash = lazy("tree_sitter_bash")

NAMED = frozenset(
    """
    program command command_name word string string_content raw_string ansi_c_string concatenation number comment
    simple_expansion special_variable_name variable_name variable_assignment expansion command_substitution
    process_substitution arithmetic_expansion brace_expression extglob_pattern
    pipeline list negated_command redirected_statement file_redirect file_descriptor herestring_redirect
    heredoc_redirect heredoc_start heredoc_body heredoc_content heredoc_end
    subshell compound_statement do_group if_statement elif_clause else_clause for_statement while_statement
    case_statement case_item function_definition test_command unary_expression binary_expression test_operator
    parenthesized_expression declaration_command unset_command regex array subscript
    """.split()
)
COMMANDS = frozenset(("command_name", "declaration_command", "unset_command", "test_command"))


OWN = local()
"""What belongs to one thread: a parser at work must not be given another text."""


def parser() -> tree_sitter.Parser:
    found: tree_sitter.Parser | None = getattr(OWN, "parser", None)
    if found is None:
        found = OWN.parser = tree_sitter.Parser(language())
    return found


@cache
def language() -> tree_sitter.Language:
    return tree_sitter.Language(grammar())


def grammar() -> Any:
    """The grammar of bash. Its package loads readers of archives first, which takes as long as all of ours: 6 ms."""
    package = PathFinder.find_spec("tree_sitter_bash")
    inner = package and PathFinder.find_spec("tree_sitter_bash._binding", package.submodule_search_locations)
    if not inner or not isinstance(inner.loader, ExtensionFileLoader):
        return tree_sitter_bash.language()
    binding = inner.loader.create_module(inner)
    inner.loader.exec_module(binding)
    return binding.language()


def agree(text: str, name_starts: set[int]) -> None:
    """Raises UnclearError unless tree-sitter finds commands at exactly these byte offsets."""
    root = parser().parse(text.encode()).root_node
    if root.has_error:
        raise UnclearError("the second parser finds an error", 0, len(text), "program")
    found: set[int] = set()
    cursor = root.walk()
    while True:
        node = cursor.node
        assert node is not None
        if node.is_named:
            if node.type not in NAMED or node.is_missing:
                raise UnclearError("a construct that is not read", node.start_byte, node.end_byte, node.type)
            if node.type in COMMANDS:
                found.add(node.start_byte)
        if cursor.goto_first_child() or cursor.goto_next_sibling():
            continue
        while cursor.goto_parent():
            if cursor.goto_next_sibling():
                break
        else:
            break
    if found != name_starts:
        at = min(found ^ name_starts)
        raise UnclearError("the two parsers do not find the same commands", at, at + 1, "command")
