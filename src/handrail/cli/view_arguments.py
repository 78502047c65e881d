"""The arguments of `handrail view`; its implementation is imported only when it runs."""

import argparse
from typing import Any

TO_A_FILE = "handrail sessions export SESSION --format html -o FILE"


class _ExportElsewhere(argparse.Action):
    """Says which command writes a page to a file."""

    def __call__(self, parser: argparse.ArgumentParser, *_rest: Any) -> None:
        parser.error(f"handrail view only serves pages. Write one to a file with: {TO_A_FILE}")


def port(text: str) -> int:
    """A port to listen on; 0 = a free one."""
    if not text.isdecimal() or int(text) > 65535:
        raise argparse.ArgumentTypeError(f"{text!r} is not a port; choose one from 1 to 65535, or 0 for a free one")
    return int(text)


def arguments(parser: argparse.ArgumentParser) -> None:
    """What to show, to whom, and where to listen."""
    parser.add_argument(
        "session",
        metavar="SESSION|FILE",
        nargs="?",
        help="id, beginning of an id, title or path (default: all sessions)",
    )
    parser.add_argument(
        "--live", action="store_true", help="also show the questions of running sessions (those started with --live)"
    )
    parser.add_argument(
        "--for",
        dest="people",
        metavar="NAME",
        action="append",
        help="print an address for this person; answers are recorded under this name; can be repeated",
    )
    parser.add_argument("--host", metavar="ADDRESS", default="127.0.0.1", help="where to listen (default: 127.0.0.1)")
    parser.add_argument("--port", metavar="N", type=port, default=0, help="the port (default: a free one)")
    parser.add_argument("--tls-cert", metavar="FILE", help="a PEM certificate; needed beyond this machine")
    parser.add_argument("--tls-key", metavar="FILE", help="its key")
    parser.add_argument("--no-open", action="store_true", help="do not open a browser")
    parser.add_argument("--json", action="store_true", help="print the addresses as one JSON object")
    parser.add_argument("--export", "--output", "-o", nargs="?", action=_ExportElsewhere, help=argparse.SUPPRESS)
    parser.epilog = (
        "The page is served by this machine only, and needs the key in its address. Ctrl+C ends it. "
        f"To write a page to a file: {TO_A_FILE}"
    )
