"""
What programs do, as data: one module per family, each with `COMMANDS` (one key may hold several names) and with
`SOURCES`, the manuals that its entries were written from ("*" stands for the programs that no other source lists).

`index.FAMILIES` says which module knows a program, so that one is imported when one of its programs is first met. It is
derived from the modules: `python scripts/shell_index.py` writes it, and a test says when it is not up to date.

How to write an entry
---------------------
Take the manual page, name it in `SOURCES`, and list what you have read there. What you do not list is refused, so
a short entry is a safe entry:

    "head": Command(
        flags="-q --quiet --silent -v --verbose -z --zero-terminated",
        values={"-c --bytes -n --lines": TEXT},
        number=True,                      # head -5
        rest=READ,                        # every operand is a file that is read
        harmless_options=True,            # see below
    ),

1. Options without effect go into `flags`, with a value into `values` (the role says what becomes of the value), with
   an attached optional value into `optional`. All spellings in one string. Abbreviations are refused by design.
   Arity is what attacks live on: if the manual shows only `--opt=VALUE`, or you are not sure that `--opt VALUE` is
   read as option and value, use `attached`, which refuses the bare option.
2. An option that writes, runs, connects: if it takes a value, `values={"-o --output": WRITE}`: the file is reported
   and the command is not read-only. If it takes none, `never={"-i --in-place": "edits files in place"}`. Leaving it
   out is as safe, but the explanation is poorer and deny rules do not see the file.
3. Operands: `operands=(TEXT,)` for leading ones with their own role, `rest` for all others, nothing for none.
   `Unless(TEXT, "-e --regexp")` is an operand that disappears when an option stands in for it. `default="."` when
   the program reads the working folder if no operand names another.
4. `READ` or `LOOK`? LOOK only when no byte of the file's contents can be printed (ls, stat, wc, test -f).
5. `harmless_options=True` only after reading *every* option in the manual: none writes, runs, connects or sets. It
   lets `cmd *` and `xargs cmd` pass. When in doubt leave it out. `lists_paths=True` if the output is nothing but
   paths found at or under the operands: it lets `cmd | xargs wc -l` pass.
6. A program that runs another command: role COMMAND as an operand (timeout, nice, xargs) with `options_first=True`,
   role SHELL for a text given to a shell (`sh -c`). The inner command gets its own segment, judged by its own entry.
   `assigns=True` when NAME=VALUE words may stand before it (env), `moves="-C --chdir"` for options whose value is the
   folder the command works in. Names handed from a listing to xargs are whole and inside the listed folder only when
   both sides agree on NUL: `ends_names_with_nul="-z"` for the listing. `passes_with="-n"` lists the options with
   which a filter prints lines of its input unchanged, so that `cmd | head -n 5 | xargs wc` still counts as a listing.
7. A word in a small language: `Grammar("git.pretty")`, read by `pretty(text)` in `handrail.shell.grammars.git`,
   which returns effects and raises UnclearError for anything outside its closed grammar. When all operands together are
   the language (find, test): `expression="files.find"`, read by `find(words)` in `grammars.files`.
8. Sub-commands: `subcommands={"status": Command(...)}`; the outer entry then holds the global options. The name "*"
   stands for the form without a listed sub-command (git remote -v): it gets all words. Whatever is
   true outside the command line and decides whether it is safe (configured helpers): `requires=(Requirement(...),)`.

How to test it
--------------
Add lines to `tests/shell/test_tables_<group>.py`: a table of read-only lines, and a table of lines that must not be
(every option the manual gives an effect, in each spelling: `-oX`, `-o X`, `--output=X`, inside a cluster). Then
`python -m tests.shell.misses` prints the corpus lines that are judged too loosely or too strictly, by class.
"""

from functools import cache
from importlib import import_module

from handrail.shell.tables.format import Command, OptionIndex, by_name
from handrail.shell.tables.index import FAMILIES


@cache
def family_of() -> dict[str, str]:
    """The module of each program."""
    return {name: family for family, names in FAMILIES.items() for name in names.split()}


@cache
def lookup(name: str) -> Command | None:
    """The entry of a program by its bare name."""
    family = family_of().get(name)
    if family is None:
        return None
    return by_name(import_module(f"handrail.shell.tables.{family}").COMMANDS)[name]


_options: dict[int, tuple[Command, OptionIndex]] = {}


def options_of(entry: Command) -> OptionIndex:
    """The option index of an entry, built on first use (entries are few and live as long as the program)."""
    known = _options.get(id(entry))
    if known is None:
        known = _options[id(entry)] = (entry, OptionIndex(entry))
    return known[1]
