"""The arguments of `handrail audit`, apart so that help and parsing load nothing else."""

import argparse

from handrail.cli.sessions_arguments import whole

KINDS = {"allowed": "that were allowed", "asked": "that were asked about", "denied": "that were denied"}


def arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments to a parser."""
    parser.add_argument("question", nargs="?", choices=("why",), help="why CALL: everything about one decision")
    parser.add_argument("call", metavar="CALL", nargs="?", default="", help="id of a call, or SESSION/CALL")
    parser.add_argument("--since", metavar="TIME", default="", help="30m, 2h, 3d, 1w, today, or 2026-11-01T12:00")
    parser.add_argument("--tool", metavar="NAME", default="", help="only calls of this tool")
    parser.add_argument(
        "--session", metavar="ID", default="", help="only calls of this session, by its id or the beginning of it"
    )
    parser.add_argument("--rule", metavar="TEXT", default="", help="only calls decided by a rule with this text in it")
    parser.add_argument(
        "--client", metavar="NAME", default="", help="only calls of runs that this client of handrail serve started"
    )
    for kind, text in KINDS.items():
        parser.add_argument(f"--{kind}", dest="only", action="append_const", const=kind, help=f"only calls {text}")
    parser.add_argument("--by", choices=("rule", "tool", "session", "origin", "day"), help="count instead of listing")
    parser.add_argument("--limit", type=whole, metavar="N", help="list the newest N (default: 50; all with --json)")
    parser.add_argument("--json", action="store_true", help="print JSON, one object per line")
