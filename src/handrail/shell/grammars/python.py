"""
Python programs that read and print, as `python3 -c` gets them: a closed part of the language.

A name can be a variable of the program, a function or a module of the lists below; an attribute can be one of a module
that is listed, or a method that changes nothing whatever object it belongs to. `open` takes the name of a file as text.
A function can only be called: handed on, something else could call it (`textwrap.indent` does).
"""

import ast
import builtins
import warnings
from collections.abc import Iterable

from handrail.errors import UnclearError
from handrail.shell.model import Does, Effect, literal_word

FUNCTIONS = frozenset(
    """
    print len str int float bool list dict set tuple sorted sum min max abs round repr range enumerate zip any all ord
    chr hex bin oct divmod reversed ascii isinstance open
    """.split()
)
# Of each module, the functions that may be called. None of them changes anything or starts a program.
MODULES = {
    name: frozenset(members.split())
    for name, members in {
        "sys": "",
        "json": "load loads dumps",
        "math": "sqrt floor ceil log log2 log10 exp pow sin cos tan hypot gcd factorial comb",
        "platform": "python_version system machine release",
        "statistics": "mean median stdev mode",
        "collections": "Counter OrderedDict",
        "tomllib": "load loads",
        "csv": "reader DictReader",
        "base64": "b64encode b64decode",
        "hashlib": "sha256 sha1 md5 sha512",
        "string": "",
        "textwrap": "dedent fill indent",
        "time": "time",
        "os": "getcwd cpu_count",
    }.items()
}
# Of each module, the values that may be used, which are no functions.
VALUES = {
    name: frozenset(members.split())
    for name, members in {
        "sys": "version version_info executable platform path prefix base_prefix maxsize byteorder argv stdin",
        "math": "pi e tau inf nan",
        "string": "ascii_letters ascii_lowercase ascii_uppercase digits punctuation",
        "os": "name sep linesep",
    }.items()
}
METHODS = frozenset(
    """
    read readline readlines splitlines split rsplit partition strip lstrip rstrip lower upper title keys values items
    get join count index find startswith endswith replace isdigit isalpha hexdigest digest encode decode most_common
    zfill ljust rjust center
    """.split()
)
KEYWORDS = frozenset(
    "sep end flush indent sort_keys ensure_ascii separators reverse encoding errors newline default start".split()
)
MODES = frozenset(("r", "rb", "rt"))
# A variable of such a name that no statement has set is the function: `[x for exec in []]` sets none.
BUILT_IN = frozenset((*dir(builtins), "copyright", "credits", "exit", "help", "license", "quit"))
# They hold what is looked at one by one, and are harmless themselves.
PLAIN_NODES = (
    ast.Module, ast.Expr, ast.Constant, ast.BinOp, ast.UnaryOp, ast.BoolOp, ast.Compare, ast.IfExp, ast.Tuple, ast.List,
    ast.Dict, ast.Set, ast.Subscript, ast.Slice, ast.JoinedStr, ast.FormattedValue, ast.Starred, ast.ListComp,
    ast.SetComp, ast.DictComp, ast.GeneratorExp, ast.comprehension, ast.operator, ast.unaryop, ast.boolop, ast.cmpop,
    ast.expr_context, ast.If, ast.For, ast.Pass,
)  # fmt: skip


def printing(text: str) -> tuple[Effect, ...]:
    """The files that a program reads, if all it does is to read and to print."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(text)
        program = Program()
        program.look(tree)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise UnclearError("it cannot be parsed") from error
    return tuple(program.reads)


class Program:
    """Looks at every node of one program once."""

    def __init__(self) -> None:
        self.reads: list[Effect] = []
        self.modules: set[str] = set()
        self.variables: set[str] = set()

    def look(self, node: ast.AST) -> None:
        match node:
            case ast.Import():
                self.load(node)
            case ast.Name():
                self.name(node)
            case ast.Attribute():
                self.member(node)
            case ast.Call():
                self.call(node)
            case _:
                self.all(parts_of(node))

    def all(self, nodes: Iterable[ast.AST]) -> None:
        for node in nodes:
            self.look(node)

    def load(self, node: ast.Import) -> None:
        for each in node.names:
            if each.name not in MODULES or each.asname is not None:
                raise UnclearError(f"import {each.name} is not listed")
            self.modules.add(each.name)

    def name(self, node: ast.Name) -> None:
        """A variable. A function or module by itself could be put where it is not looked at."""
        if isinstance(node.ctx, ast.Store):
            if node.id in BUILT_IN or node.id in MODULES or node.id.startswith("_"):
                raise UnclearError(f"it gives {node.id} another meaning")
            self.variables.add(node.id)
        elif node.id not in self.variables:
            raise UnclearError(f"{node.id} is not listed")

    def member(self, node: ast.Attribute) -> None:
        """A value of a module; only what is read."""
        if not isinstance(node.ctx, ast.Load):
            raise UnclearError(f"it sets {node.attr}")
        if not isinstance(node.value, ast.Name) or node.value.id not in self.modules:
            raise UnclearError(f"{node.attr} is not called")
        if node.attr not in VALUES.get(node.value.id, ()):
            raise UnclearError(f"{node.value.id}.{node.attr} is not listed as a value")

    def function(self, node: ast.Attribute) -> None:
        """What a module offers, or a method, where it is called."""
        if isinstance(node.value, ast.Name) and node.value.id in self.modules:
            if node.attr not in MODULES[node.value.id]:
                raise UnclearError(f"{node.value.id}.{node.attr} is not listed")
            return
        if node.attr not in METHODS:
            raise UnclearError(f"{node.attr} is not listed")
        self.look(node.value)

    def call(self, node: ast.Call) -> None:
        if any(each.arg not in KEYWORDS for each in node.keywords):
            raise UnclearError("an argument is not listed")
        if any(each.arg == "default" and not is_name(each.value, "str") for each in node.keywords):
            raise UnclearError("default is not str")
        if is_name(node.func, "open"):
            self.open(node)
        elif isinstance(node.func, ast.Attribute):
            self.function(node.func)
        elif not (isinstance(node.func, ast.Name) and node.func.id in FUNCTIONS):
            raise UnclearError("what it calls is not known")
        self.all([*node.args, *(each.value for each in node.keywords if each.arg != "default")])

    def open(self, node: ast.Call) -> None:
        first, *others = [each.value if isinstance(each, ast.Constant) else None for each in node.args] or [None]
        if not isinstance(first, str) or len(others) > 1 or not MODES.issuperset(others) or "\0" in first:
            raise UnclearError("open is read only with the name of a file, and to read")
        self.reads.append(Effect(Does.READS, literal_word(first), "reads this"))


def parts_of(node: ast.AST) -> Iterable[ast.AST]:
    """The parts of a node in the order in which they are run, so that a variable is set before it is used."""
    match node:
        case ast.Assign(targets=[ast.Name()]):
            return [node.value, *node.targets]
        case ast.With(items=[ast.withitem(context_expr=ast.Call() as opened, optional_vars=ast.Name() as name)]):
            return [opened, name, *node.body]
        case ast.For():
            return [node.iter, node.target, *node.body, *node.orelse]
        case ast.ListComp() | ast.SetComp() | ast.GeneratorExp():
            return [*node.generators, node.elt]
        case ast.DictComp():
            return [*node.generators, node.key, node.value]
        case ast.comprehension():
            return [node.iter, node.target, *node.ifs]
        case ast.Subscript(ctx=ast.Store()) | ast.Starred(ctx=ast.Store()):
            raise UnclearError("it sets a part of something")
        case _ if isinstance(node, PLAIN_NODES):
            return ast.iter_child_nodes(node)
        case _:
            raise UnclearError(f"{type(node).__name__} is not read")


def is_name(node: ast.AST, name: str) -> bool:
    return isinstance(node, ast.Name) and node.id == name
