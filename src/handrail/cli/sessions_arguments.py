"""The arguments of `handrail sessions`; its implementation is imported only when it runs."""

import argparse
from collections.abc import Sequence
from typing import TYPE_CHECKING, TypeAlias

if TYPE_CHECKING:
    Commands: TypeAlias = argparse._SubParsersAction[
        argparse.ArgumentParser
    ]  # the type that add_subparsers returns has no public name


def whole(text: str) -> int:
    """A number above 0."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return int(text)


def number(text: str) -> int:
    """A number that may be 0."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number")
    return int(text)


def amount(text: str) -> float:
    """A finite number above 0, which need not be whole."""
    try:
        value = float(text)
    except ValueError:
        value = 0.0
    if not 0 < value < float("inf"):
        raise argparse.ArgumentTypeError(f"{text!r} is not an amount above 0")
    return value


def comma_separated(text: str) -> tuple[str, ...]:
    """Names between commas."""
    return tuple(filter(None, (name.strip() for name in text.split(","))))


def add_subcommand(
    inner: "Commands", name: str, text: str, parents: Sequence[argparse.ArgumentParser] = ()
) -> argparse.ArgumentParser:
    """Add a sub-command. Its help begins with the text that the list of commands shows."""
    return inner.add_parser(name, help=text, description=f"{text[0].upper()}{text[1:]}.", parents=parents)


def arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `handrail sessions`."""
    inner = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    listing = add_subcommand(inner, "list", "list the sessions of this folder, the newest first")
    listing.add_argument("--all", action="store_true", help="of all folders, not only this one")
    listing.add_argument("--limit", type=whole, metavar="N", help="at most N (default: no limit)")
    show = add_subcommand(inner, "show", "print the conversation of a session")
    text = "with what the model was told of its surroundings, such as memory files and lists of tools"
    show.add_argument("--all", action="store_true", help=text)
    check = add_subcommand(
        inner, "check", "say whether a session can be resumed as it is; exit code 1 if it needs repair"
    )
    mend = add_subcommand(inner, "repair", "repair a session; broken lines are kept beside the file")
    export = add_subcommand(inner, "export", "write a session for other programs or people")
    formats = ("jsonl", "json", "markdown", "html", "trace")
    text = "html is a standalone page, trace a file for Perfetto and Chrome's tracing view (default: jsonl)"
    export.add_argument("--format", choices=formats, default="jsonl", help=text)
    export.add_argument(
        "--no-contents",
        action="store_true",
        help="for html and trace: leave out texts, inputs, results, changes",
    )
    export.add_argument(
        "-o", "--output", metavar="FILE", help="write to this file, never overwriting one (default: standard output)"
    )
    bring = add_subcommand(inner, "import", "create a session from a transcript, also of another agent")
    bring.add_argument("file", metavar="FILE", help="a file of JSON lines")
    remove = add_subcommand(inner, "rm", "delete sessions for good")
    remove.add_argument("ids", metavar="ID", nargs="+", help="id, the beginning of one, title or path")
    for each in (show, check, mend, export):
        each.add_argument("id", metavar="ID", help="id, the beginning of one, title or path")
    for each in (listing, show, check, mend, export, bring, remove):
        text = "the same as --format json" if each is export else "print JSON"
        each.add_argument("--json", action="store_true", help=text)
