"""
Writes which module of `handrail.shell.tables` knows which program, so that none is imported before it is needed.

    python scripts/shell_index.py && ruff format src/handrail/shell/tables/index.py
"""

from importlib import import_module
from pathlib import Path
from pkgutil import iter_modules
from textwrap import fill

TABLES = Path(__file__).resolve().parents[1] / "src/handrail/shell/tables"
HEAD = '"""Which module knows which program. Written by scripts/shell_index.py."""\n\nFAMILIES: dict[str, str] = {\n'


def index() -> str:
    """The text of the file."""
    lines = []
    for module in iter_modules([str(TABLES)]):
        commands = getattr(import_module(f"handrail.shell.tables.{module.name}"), "COMMANDS", None)
        if commands:
            names = fill(f"{module.name}: {' '.join(commands)}", 112, break_on_hyphens=False, break_long_words=False)
            names = names.removeprefix(f"{module.name}: ").replace("\n", ' "\n    "')
            lines.append(f'    "{module.name}": "{names}",\n')
    return HEAD + "".join(lines) + "}\n"


if __name__ == "__main__":
    (TABLES / "index.py").write_text(index())
