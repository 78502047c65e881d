"""
The program behind REPL: runs pieces of Python code one after the other in one namespace.

It runs as a script of its own, without other modules of handrail. It reads requests from the socket at standard input,
one JSON object per line, and replies there. Standard output and error belong to the code that it runs.
"""

import ast
import json
import linecache
import os
import socket
import sys
import traceback
from contextlib import suppress
from types import ModuleType, TracebackType
from typing import Any

MAX_VALUE = 30_000
MAX_ERROR = 10_000
MAX_FRAMES = 10


def main() -> None:
    control = socket.socket(fileno=os.dup(0)).makefile("rwb")
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdout.reconfigure(encoding="utf-8", errors="backslashreplace", line_buffering=True)  # type: ignore[union-attr]
    sys.stderr.reconfigure(encoding="utf-8", errors="backslashreplace")  # type: ignore[union-attr]
    sys.path.append(os.getcwd())  # noqa: PTH109  # last, so that no file of a project stands in for a module
    sys.argv = [""]
    module = ModuleType("__main__")
    sys.modules["__main__"] = module
    me = os.getpid()
    for number, line in enumerate(control, 1):
        reply = run(json.loads(line)["code"], f"<cell {number}>", vars(module))
        flush()
        if os.getpid() != me:
            os._exit(0)  # the code forked, and this is the child
        control.write(json.dumps(reply).encode() + b"\n")
        control.flush()


def run(code: str, name: str, scope: dict[str, Any]) -> dict[str, str]:
    """Run code and return the value of its last expression, or an error."""
    linecache.cache[name] = (len(code), None, code.splitlines(keepends=True), name)
    try:
        tree = ast.parse(code, name)
        last = tree.body.pop() if tree.body and isinstance(tree.body[-1], ast.Expr) else None
        exec(compile(tree, name, "exec", dont_inherit=True), scope)  # noqa: S102  # what it is for
        if isinstance(last, ast.Expr):
            value = eval(compile(ast.Expression(last.value), name, "eval", dont_inherit=True), scope)  # noqa: S307
            if value is not None:
                scope["_"] = value
                return {"value": cut(repr(value), MAX_VALUE)}
    except BaseException as error:  # noqa: BLE001  # whatever it raises is its result
        return {"error": cut(format_error(error, name), MAX_ERROR)}
    return {}


def format_error(error: BaseException, name: str) -> str:
    """The error with the last frames of its traceback; frames of this program are left out."""
    trace: TracebackType | None = error.__traceback__
    while trace and trace.tb_frame.f_code.co_filename != name:
        trace = trace.tb_next
    found = traceback.TracebackException(type(error), error, trace, limit=-MAX_FRAMES, compact=True)
    return "".join(found.format()).rstrip("\n")


def cut(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    half = limit // 2
    return f"{text[:half]}\n[... {len(text) - 2 * half:,} characters are left out ...]\n{text[-half:]}"


def flush() -> None:
    for stream in {sys.stdout, sys.stderr, sys.__stdout__, sys.__stderr__}:
        with suppress(Exception):  # the code may have put anything in its place
            stream.flush()  # type: ignore[union-attr]


if __name__ == "__main__":
    main()
