"""
The fuzzer of the shell analysis: lines grown from a grammar and changed at random, guided by coverage (atheris).

For every line: the analysis answers without an internal error, and within its time. Every line it calls read-only is
then run in the closed box of the tests, where it must write nothing and start nothing but what the analysis named.
The first line that breaks this is printed and ends the run. Arguments are those of libFuzzer.
"""

import os
import sys
import time
from random import Random

import atheris  # type: ignore[import-untyped]  # lives in .venv-fuzz only

with atheris.instrument_imports(include=["handrail.shell"]):
    from handrail.shell import Analysis, CommandVerdict, tables
    from handrail.shell.analysis import analysis_of
    from handrail.shell.possible_commands import possible_commands
    from handrail.shell.unknown_names import has_unknown_name, runs_unknown_name
    from handrail.shell.wrapped_commands import wrapped_commands

from tests.shell import box
from tests.shell.generator import Generator
from tests.shell.oracle import unnamed

SECONDS = 0.05 * 4  # instrumented code runs slower, and others may use the machine
BATCH = 250
TOKENS = [
    *" \t\n;&|()<>{}[]$`'\"\\#~*?!=-,:@%+^/.1x", "&&", "||", ";;", ";&", "|&", "$(", "${", "$((", "))", "<(", ">(",
    "<<E\n", "\nE\n", "<<'E'", "<<<",
    ">&", "&>", ">|", "<>", "2>&1", ">/dev/null", "$'", '$"', "\\\n", "[[ ", " ]]", "[ ", " ]", "if ", "; then ",
    "; fi", "for x in ", "; do ", "; done", "while ", "case x in ",
    ") ", " esac", "f() {", "; }", "time ", "! ", "coproc ", "x=", "x=a; ", '"$x"', "$x", "${x}", "${x:-", "${x@P}",
    "${!x}", "$?", "$IFS", "export ", "read -r x", "read x", "cd a", "cd ..",
    "exec ", "eval ", "set -e; ", "set -a", "shopt -s nullglob; ", "sh -c '", "bash -c ", "env ", "env x=1 ", "nice ",
    "timeout 1 ", "xargs ", "xargs -0 ", "find . ", "-exec ", "{} \\;", "{} +",
    "-delete", "-print0", "printf ", "printf -v x ", "test ", "-v ", "-eq ", "-f ", "command ", "builtin ", "type ",
    "alias x=", "trap ", "source ", "hash ", "declare ", "local ", "a[0]",
    "a[$(touch p)]", "$(touch p)", "`touch p`", "; touch p", "> p", "echo ", "é", "HEAD@{1}", "{a,b}", "{1..3}",
    "git log ", "git -C a ", "-C .. ", "--output=p", "python3 -c '", "print(", "open(\"a\")",
    "import json; ", "-name '*.py' ",
    "-name ", "| xargs ", "nano -s ", "foo ",
]  # fmt: skip
NAMES = [
    "ls", "cat", "echo", "grep", "head", "printf", "true", "find", "wc", "git log", "test", "type", "pwd", ":",
    "command echo", "builtin echo", "exec echo", "cd a &&", "cd a;", "set -eu;",
    "v=a;", "read -r v;", "IFS= read -r v <<<", "export TZ=UTC;", "shopt -s nullglob;", "LC_ALL=C cat", "nice cat",
    "xargs -0 cat", "find . -print0 |", "exit", "break", "wait;", "env cat", "[ -n",
]  # fmt: skip

waiting: list[tuple[str, Analysis]] = []
boxed = 0


def mutate(data: bytes, max_size: int, seed: int) -> bytes:
    """One to four changes in the language of the shell rather than in bytes."""
    random = Random(seed)
    text = data.decode("utf-8", "ignore")
    for _ in range(random.randint(1, 4)):
        at = random.randint(0, len(text))
        to = min(len(text), at + random.choice([0, 1, 1, 2, 5, 20]))
        kind = random.randrange(8)
        if kind == 0 or not text:
            text = Generator(random.getrandbits(32), names=NAMES).line()
        elif kind == 1:
            text = text[:at] + Generator(random.getrandbits(32), names=NAMES).simple() + text[at:]
        elif kind == 2:
            text = text[:at] + text[to:]
        elif kind == 3:
            text = text[:to] + text[at:]
        elif kind == 4:
            text = text[:at] + random.choice(TOKENS) + text[to:]
        else:
            text = text[:at] + random.choice(TOKENS) + text[at:]
    return text.encode()[:max_size]


def judge(text: str) -> tuple[Analysis, float]:
    """The analysis of a line, and the seconds that all that is asked about it took."""
    possible_commands.cache_clear()
    started = time.thread_time()
    analysis = analysis_of(text)
    possible_commands(text)
    wrapped_commands(analysis.segments)
    has_unknown_name(text)
    any(map(runs_unknown_name, analysis.segments))
    return analysis, time.thread_time() - started


def fuzz(data: bytes) -> None:
    text = data.decode("utf-8", "ignore")
    analysis, took = judge(text)
    if took > SECONDS:  # who else uses the machine shall not matter
        took = min(took, *(judge(text)[1] for _ in range(4)))
    broken = [reason.text for reason in analysis.problems if "internal error" in reason.text]
    if broken:
        fail(text, f"ends in an {broken[0]}")
    if took > SECONDS:
        fail(text, f"takes {took * 1000:.0f} ms")
    if analysis.verdict is CommandVerdict.READ_ONLY:
        waiting.append((text, analysis))
    if len(waiting) >= BATCH:
        run_waiting()


def run_waiting() -> None:
    """In the box; when a file was left behind, one by one, to see which line it was."""
    global boxed  # noqa: PLW0603 - libFuzzer owns the loop, and ends the process without a word
    boxed += len(waiting)
    print(f"{boxed} read-only lines run in the box", flush=True)
    ran = box.run([text for text, _ in waiting])
    for (text, analysis), started in zip(waiting, ran.started, strict=True):
        if extra := unnamed(analysis, started):
            fail(text, f"is read-only and starts {extra}")
    if ran.left_behind:
        for text, _ in waiting:
            if left := box.run([text]).left_behind:
                fail(text, f"is read-only and writes {left}")
    waiting.clear()


def fail(text: str, what: str) -> None:
    print(f"\nfound: {text!r} {what}", flush=True)
    os._exit(1)  # libFuzzer would catch an exception and print the bytes only


def main() -> None:
    tables.lookup("git")
    atheris.Setup(sys.argv, fuzz, custom_mutator=mutate)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
