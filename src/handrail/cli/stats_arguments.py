"""The arguments of `handrail stats`; its implementation is imported only when it runs."""

import argparse

TABLES = ("days", "folders", "models", "sessions", "tools", "denials", "slowest")


def arguments(parser: argparse.ArgumentParser) -> None:
    """Which sessions to add up, and how to print the sums."""
    parser.add_argument(
        "--since", metavar="TIME", default="30d", help="30m, 2h, 3d, 1w, today, or 2026-11-01T12:00 (default: 30d)"
    )
    parser.add_argument("--all", action="store_true", help="since the oldest saved session")
    parser.add_argument("--folder", metavar="DIR", help="only sessions in this folder and below (default: all folders)")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="print everything as one JSON object")
    form.add_argument(
        "--csv", metavar="TABLE", nargs="?", const="sessions", choices=TABLES,
        help=f"print one table for a spreadsheet: {', '.join(TABLES)} (default: sessions)",
    )  # fmt: skip
