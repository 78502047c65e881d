"""The arguments of `handrail sessions`; its work is loaded only when it is wanted."""

import argparse


def whole(text: str) -> int:
    """A number above 0."""
    value = int(text)
    if value < 1:
        raise argparse.ArgumentTypeError(f"{text!r} is not a whole number above 0")
    return value


def arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `handrail sessions`."""
    inner = parser.add_subparsers(dest="what", metavar="WHAT", required=True)
    listing = inner.add_parser("list", help="all sessions, the newest first")
    listing.add_argument("--all", action="store_true", help="of all folders, not only this one")
    listing.add_argument("--limit", type=whole, metavar="N", help="at most N (default: no limit)")
    show = inner.add_parser("show", help="the conversation of one, as text")
    check = inner.add_parser("check", help="whether one can be resumed as it is; exit code 1 if it needs mending")
    mend = inner.add_parser("repair", help="mend one; what is taken out of the file is kept beside it")
    export = inner.add_parser("export", help="write one for other programs or people")
    export.add_argument("--format", choices=("jsonl", "json", "markdown"), default="jsonl", help="(default: jsonl)")
    export.add_argument("-o", "--output", metavar="FILE", help="instead of standard output; never overwrites")
    bring = inner.add_parser("import", help="make a session from a transcript of the same convention")
    bring.add_argument("file", metavar="FILE", help="a file of JSON lines")
    remove = inner.add_parser("rm", help="delete sessions for good")
    remove.add_argument("ids", metavar="ID", nargs="+", help="id, the beginning of one, title or path")
    for each in (show, check, mend, export):
        each.add_argument("id", metavar="ID", help="id, the beginning of one, title or path")
    for each in (listing, show, check, mend, export, bring, remove):
        each.add_argument("--json", action="store_true", help="print JSON")
