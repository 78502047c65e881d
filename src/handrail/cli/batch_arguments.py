"""The arguments of `handrail batch`; its implementation is imported only when it runs."""

import argparse

from handrail.cli.sessions_arguments import add_subcommand, amount, number, whole

RETRIES = 2
SECONDS = 3600.0


def arguments(parser: argparse.ArgumentParser) -> None:
    """The commands of `handrail batch`."""
    inner = parser.add_subparsers(dest="what", metavar="run|report|check", required=True)
    run = add_subcommand(
        inner,
        "run",
        "run tasks, each as `handrail -p` in a copy of its folder; a second time, only what is missing",
    )
    run.add_argument("tasks", metavar="TASKS", help="a file with one JSON object per line; see docs/batch.md")
    run.add_argument("--out", metavar="FOLDER", required=True, help="the folder of the results")
    run.add_argument(
        "--jobs",
        type=whole,
        metavar="N",
        help="how many run at once (default: one per processor, of a cluster one per thread of its workers)",
    )
    run.add_argument(
        "--cluster",
        metavar="ADDRESS",
        default="",
        help="run them on the dask cluster of this scheduler, such as tcp://127.0.0.1:8786; see docs/batch.md",
    )
    run.add_argument("--trials", type=whole, metavar="K", default=1, help="how often each task is run (default: 1)")
    for flag, name, text in (
        ("--model", "MODEL", "a model; several are compared (default: that of `handrail -p`)"),
        ("--settings", "FILE", "a settings file; several are compared (default: only yours)"),
    ):
        run.add_argument(flag, metavar=name, action="extend", nargs="+", default=[], help=text)
    run.add_argument("--max-turns", type=whole, metavar="N", help="end a run after N answers")
    run.add_argument("--max-budget-usd", type=amount, metavar="USD", help="end a run when this much is spent")
    run.add_argument(
        "--timeout",
        type=amount,
        metavar="SECONDS",
        default=SECONDS,
        help="a run, and a check, that takes longer has failed (default: 3600)",
    )
    run.add_argument(
        "--retries",
        type=number,
        metavar="N",
        default=RETRIES,
        help="how often a run that the connection, the server or the machine ended is tried again (default: 2)",
    )
    run.add_argument("--trust", action="store_true", help="let the settings in the tasks' folders count")
    run.add_argument(
        "--adopt", action="store_true", help="go on with results in FOLDER that came from elsewhere, as they are"
    )
    cassettes = run.add_mutually_exclusive_group()
    cassettes.add_argument("--record", action="store_true", help="keep the models' answers in FOLDER/cassettes")
    cassettes.add_argument(
        "--replay", metavar="FOLDER", default="", help="take the answers that were recorded there; no network, no key"
    )
    report = add_subcommand(inner, "report", "add up the results: how many were solved, at which cost, how surely")
    report.add_argument("folder", metavar="FOLDER", help="the folder that was given to --out")
    report.add_argument(
        "--by", choices=("tag", "model", "settings", "task"), help="a row for each (default: model and settings)"
    )
    report.add_argument(
        "--compare", nargs=2, metavar=("A", "B"), help="two models, settings or rows, paired by task and trial"
    )
    check = add_subcommand(inner, "check", "find what is wrong with a file of tasks; exit code 1 if something is")
    check.add_argument("tasks", metavar="TASKS", help="the file")
    run.add_argument("--json", action="store_true", help="print one JSON object per line, as runs finish")
    for each in (report, check):
        each.add_argument("--json", action="store_true", help="print one JSON object")
