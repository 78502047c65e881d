"""`handrail schedule`: durable schedules, listed, added, removed, and started with no session open."""

import argparse
import asyncio
import os
import sys
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from handrail.cli.schedule_run import Start, start_all_due, start_one
from handrail.conversation.plain import plain, plain_json
from handrail.errors import ScheduleError
from handrail.schedules import clock
from handrail.schedules.cron import read_cron
from handrail.schedules.entries import ScheduledPrompt, check_comes, facts_of, new_entry
from handrail.schedules.store import Entries, ScheduleStore, add_entry
from handrail.schedules.zone import local_zone
from handrail.session.state_folder import state_folder
from handrail.tools.wording import did_you_mean

MAX_SHOWN = 100


def run(chosen: argparse.Namespace) -> int:
    """Do what was asked for; 1 if a prompt that was started failed."""
    store = ScheduleStore(state_folder(os.environ) / "schedules.json")
    if chosen.what == "add":
        return _add(store, chosen)
    if chosen.what == "remove":
        return _remove(store, chosen)
    if chosen.what == "run":
        return _run(store, chosen)
    rows = sorted((_row(each) for each in store.read()), key=lambda row: row["next"] or 0)
    if chosen.json:
        print(plain_json(rows, indent=2))
    for row in () if chosen.json else rows:
        print(plain(_line(row)))
    if not rows and not chosen.json:
        print("There are no schedules. `handrail schedule add '0 9 * * 1-5' \"PROMPT\"` makes one.")
    return 0


def _row(entry: ScheduledPrompt) -> dict[str, Any]:
    facts = facts_of(entry, local_zone(os.environ))
    return {**asdict(facts), "ends": entry.ends or None}


def _line(row: dict[str, Any]) -> str:
    prompt = " ".join(row["prompt"].split())
    shown = prompt if len(prompt) <= MAX_SHOWN else f"{prompt[:MAX_SHOWN]}..."
    return f"{row['id']}  next {row['shown_next']}  {row['words']}  {row['folder']}\n    {shown}"


def _add(store: ScheduleStore, chosen: argparse.Namespace) -> int:
    prompt = sys.stdin.read() if chosen.prompt == "-" else chosen.prompt
    days = 0 if chosen.forever else chosen.days
    line = read_cron(chosen.cron)
    made = new_entry(line.text, prompt, clock.now(), recurring=not chosen.once, days=days)
    check_comes(made, local_zone(os.environ), "Give --once, --days {days} or --forever.")
    made = replace(made, durable=True, folder=os.path.realpath(Path.cwd()))
    asyncio.run(store.change(lambda before: (add_entry(before, made), None)))
    row = _row(made)
    if chosen.json:
        print(plain_json(row, indent=2))
    else:
        ends = "" if chosen.once else ", with no end" if chosen.forever else f", for {days} days"
        print(plain(f"{row['id']}: {row['words']}{ends}; next {row['shown_next']}."))
        print(
            "It starts in a session that is open in this folder then, in `handrail schedule run` or `handrail serve`."
        )
    return 0


def _remove(store: ScheduleStore, chosen: argparse.Namespace) -> int:
    def step(before: Entries) -> tuple[Entries, None]:
        for each in chosen.ids:
            _find(before, each)
        return tuple(each for each in before if each.id not in chosen.ids), None

    asyncio.run(store.change(step))
    print(plain_json({"removed": chosen.ids}, indent=2) if chosen.json else f"Removed: {', '.join(chosen.ids)}.")
    return 0


def _find(entries: Entries, schedule_id: str) -> ScheduledPrompt:
    found = next((each for each in entries if each.id == schedule_id), None)
    if found is None:
        hint = did_you_mean(schedule_id, [each.id for each in entries])
        raise ScheduleError(f"there is no schedule {schedule_id!r}.{hint} See `handrail schedule list`.")
    return found


def _run(store: ScheduleStore, chosen: argparse.Namespace) -> int:
    start = Start(print_json_line if chosen.json else print_line, local_zone(os.environ))
    if chosen.id:
        return asyncio.run(start_one(_find(store.read(), chosen.id), start))
    return asyncio.run(start_all_due(store, start, stays=not chosen.once))


def print_line(event: dict[str, Any]) -> None:
    """Print what happened, for a person."""
    print(plain(f"{event['time']} {event['id']} {event['text']}"), flush=True)


def print_json_line(event: dict[str, Any]) -> None:
    """Print what happened, for a program."""
    print(plain_json(event), flush=True)
