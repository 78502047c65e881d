"""Schedules as data: each time is counted once, however it is looked at, and the file keeps what it was given."""

import json
from dataclasses import asdict, replace
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import ScheduleError
from handrail.schedules.cron import read_cron, times_after
from handrail.schedules.entries import DAY, MAX_PROMPT, MAX_SCHEDULES, ScheduledPrompt, new_entry, settle
from handrail.schedules.store import Entries, ScheduleStore, add_entry
from handrail.schedules.zone import local_zone

START = datetime(2026, 3, 26, 12, tzinfo=UTC).timestamp()
KEPT = asdict(ScheduledPrompt("a", "x", "0 9 * * *"))
BERLIN = ZoneInfo("Europe/Berlin")


@given(
    line=st.sampled_from(("*/20 * * * *", "30 2 * * *", "0 9 * * 1-5", "0 * 29 * *")),
    looks=st.lists(st.floats(0, 9 * DAY), max_size=20),
    opened=st.floats(0, 9 * DAY),
)
def test_every_time_is_started_or_missed_exactly_once_until_it_ends(
    line: str, looks: list[float], opened: float
) -> None:
    made = replace(new_entry(line, "x", START, recurring=True), durable=True)
    entries: Entries = (made,)
    started = missed = 0
    for look in sorted(looks):
        settled = settle(entries, START + look, START + opened, BERLIN)
        entries = settled.remaining
        assert len(settled.due) + len(settled.missed) <= 1
        started += sum(each.count for each in settled.due)
        missed += sum(each.count for each in settled.missed)
        assert all(each.due < START + opened for each in settled.missed)

    end = min(START + max(looks, default=0), made.ends)
    times = list(takewhile(lambda each: each <= end, times_after(read_cron(line), START, BERLIN)))
    assert started + missed == len(times)
    assert bool(entries) or START + max(looks, default=0) > made.ends - 7 * DAY


@pytest.mark.anyio
async def test_the_file_gives_back_what_it_was_given_and_refuses_what_it_cannot_keep(tmp_path: Path) -> None:
    store = ScheduleStore(tmp_path / "deep" / "schedules.json")
    made = replace(new_entry("0 9 * * *", "Grüße\n", START, recurring=True), durable=True, folder="/x")
    assert store.read() == ()
    await store.change(lambda before: (add_entry(before, made), None))
    assert store.read() == (made,)
    with pytest.raises(ScheduleError, match="50 schedules here already"):
        add_entry((made,) * MAX_SCHEDULES, made)
    with pytest.raises(ScheduleError, match="20,000 are kept"):
        new_entry("0 9 * * *", "x" * (MAX_PROMPT + 1), START, recurring=True)


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("no JSON", "cannot be read"),
        ("[]", "cannot be read"),
        ('{"version": 2}', "newer handrail"),
        ('{"version": 1, "schedules": [{}]}', "cannot be read"),
        (json.dumps({"version": 1, "schedules": [{**KEPT, "cron": "bad"}]}), "cannot be read"),
        (json.dumps({"version": 1, "schedules": [{**KEPT, "prompt": ["x"]}]}), "prompt is no str"),
    ],
)
def test_a_file_that_is_not_understood_is_refused_as_a_whole(tmp_path: Path, text: str, problem: str) -> None:
    (tmp_path / "s.json").write_text(text)
    with pytest.raises(ScheduleError, match=problem):
        ScheduleStore(tmp_path / "s.json").read()


def test_the_zone_is_that_of_tz_or_of_the_machine() -> None:
    assert local_zone({"TZ": ":Asia/Kolkata"}).key == "Asia/Kolkata"
    assert local_zone({"TZ": "/usr/share/zoneinfo/Asia/Kolkata"}).key == "Asia/Kolkata"
    assert local_zone({}) is not None
    for wrong in ("Mars/Olympus", "/nowhere", "../../etc/passwd"):
        with pytest.raises(ScheduleError, match="Set TZ to a name such as"):
            local_zone({"TZ": wrong})


def test_one_without_a_line_comes_at_its_time() -> None:
    wake = ScheduledPrompt("a", "x", at=START + 60)
    assert settle((wake,), START + 59, 0, BERLIN).remaining == (wake,)
    settled = settle((wake,), START + 60, 0, BERLIN)
    assert (settled.remaining, [each.due for each in settled.due]) == ((), [START + 60])
