"""The arguments of `handrail schedule`; its implementation is imported only when it runs."""

import argparse

from handrail.cli.sessions_arguments import add_subcommand, whole


def arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `handrail schedule`."""
    inner = parser.add_subparsers(dest="what", metavar="list|add|remove|run", required=True)
    listing = add_subcommand(inner, "list", "list your durable schedules of all folders, the next one first")
    add = add_subcommand(inner, "add", "schedule a prompt, for sessions of this folder and for `run`")
    add.add_argument(
        "cron", metavar="CRON", help="minute, hour, day of month, month, day of week, in local time: '0 9 * * 1-5'"
    )
    add.add_argument("prompt", metavar="PROMPT", help="the prompt; - reads it from standard input")
    ends = add.add_mutually_exclusive_group()
    ends.add_argument("--once", action="store_true", help="only once, the next time")
    ends.add_argument("--days", type=whole, metavar="N", default=7, help="end after N days (default: 7)")
    ends.add_argument("--forever", action="store_true", help="never end")
    remove = add_subcommand(inner, "remove", "remove schedules")
    remove.add_argument("ids", metavar="ID", nargs="+", help="the ids that list shows")
    run = add_subcommand(
        inner,
        "run",
        "start what is due, each as `handrail -p` in its folder, until Ctrl+C; no one is asked",
    )
    run.add_argument("id", metavar="ID", nargs="?", help="start this one now and exit, whatever the time is")
    run.add_argument("--once", action="store_true", help="start what is due now and exit, for system timers")
    for each in (listing, add, remove):
        each.add_argument("--json", action="store_true", help="print JSON")
    run.add_argument("--json", action="store_true", help="print one JSON object per line, as things begin and end")
