"""
Whether Python would run a file of the project in place of a module of its own.

Python before 3.11 looks for modules in the working folder first, whatever the environment says.
"""

import os
import sys

from handrail.lazy import lazy_pattern

# Modules of other versions than this one, and of a site.
OLDER = frozenset(
    "_bootlocale _sha256 _sha512 imp sre_compile sre_constants sre_parse sitecustomize usercustomize".split()  # noqa: SIM905
)
MODULES = sys.stdlib_module_names | OLDER
MODULE = lazy_pattern(r"\A[^.]+\Z|\.(?:pyc?|so|pyd)\Z")


def module_problem(folder: str) -> str:
    """Why Python may run a file of the folder, in words; empty = it does not."""
    try:
        names = os.listdir(folder)  # noqa: PTH208
    except OSError:
        return f"the files in {folder!r} cannot be looked at"
    found = next((name for name in sorted(names) if name.partition(".")[0] in MODULES and MODULE.search(name)), "")
    return f"Python may take {found!r} for a module of its own" if found else ""
