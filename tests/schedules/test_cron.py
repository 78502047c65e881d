"""Cron lines: what they accept, and when they fire, compared with a search minute by minute."""

from datetime import UTC, datetime, timedelta
from itertools import islice, pairwise
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from handrail.errors import ScheduleError
from handrail.schedules.cron import FIELDS, CronField, CronLine, describe, read_cron, times_after

ZONES = ("UTC", "Europe/Berlin", "America/New_York", "Australia/Lord_Howe", "America/St_Johns", "Asia/Kolkata",
         "Pacific/Apia", "America/Sao_Paulo", "Africa/Casablanca", "Antarctica/Troll")  # fmt: skip
CHANGES = {
    "Europe/Berlin": ("2026-03-28", "2026-10-24"),
    "America/New_York": ("2026-03-07", "2026-10-31"),
    "Australia/Lord_Howe": ("2026-04-04", "2026-10-03"),
    "America/St_Johns": ("2010-03-13", "2010-11-06"),
    "Pacific/Apia": ("2011-12-29", "2011-12-30"),
    "America/Sao_Paulo": ("2018-11-03", "2019-02-16"),
    "Antarctica/Troll": ("2026-03-28", "2026-10-24"),
}
MINUTE = 60.0


def by_search(line: CronLine, after: float, until: float, zone: ZoneInfo) -> list[float]:
    """The oracle: look at every minute, and at what the clocks skipped since the one before it."""
    found, moment = [], (after // MINUTE) * MINUTE - 60 * MINUTE
    minutes = []
    while moment <= until:
        minutes.append(moment)
        moment += MINUTE
    for before, moment in pairwise(minutes):
        shown = datetime.fromtimestamp(moment, zone)
        skipped = []
        if not line.follows_real_time:
            earlier = datetime.fromtimestamp(before, zone).replace(tzinfo=None)
            ahead = int((shown.replace(tzinfo=None) - earlier) / timedelta(minutes=1))
            skipped = [earlier + timedelta(minutes=each) for each in range(1, ahead)]
        fits = accepts(line, shown) and (line.follows_real_time or shown.fold == 0)
        if moment > after and (fits or any(accepts(line, each) for each in skipped)):
            found.append(moment)
    return found


def accepts(line: CronLine, shown: datetime) -> bool:
    return shown.minute in line.minutes and shown.hour in line.hours and line.is_on(shown.date())


def part(field: CronField) -> st.SearchStrategy[str]:
    value = st.integers(field.low, field.high)
    spans = st.tuples(value, value).map(lambda pair: f"{min(pair)}-{max(pair)}")
    steps = st.tuples(st.just("*") | spans | value.map(str), st.integers(1, field.high)).map(lambda p: f"{p[0]}/{p[1]}")
    return st.just("*") | value.map(str) | spans | steps


def line_text(field: CronField) -> st.SearchStrategy[str]:
    return st.lists(part(field), min_size=1, max_size=2).map(",".join)


LINES = st.tuples(*map(line_text, FIELDS[:2]), *(st.just("*") | line_text(field) for field in FIELDS[2:])).map(" ".join)


@given(text=LINES, place=st.sampled_from(ZONES), minute=st.integers(0, 30 * 365 * 24 * 60), change=st.integers(0, 4))
def test_it_fires_exactly_when_a_search_of_every_minute_says_so(
    text: str, place: str, minute: int, change: int
) -> None:
    try:
        line = read_cron(text)
    except ScheduleError:
        return  # a day that no month has
    zone = ZoneInfo(place)
    after = datetime(2005, 1, 1, tzinfo=UTC).timestamp() + minute * MINUTE
    if change < 2 and place in CHANGES:
        after = (
            datetime.fromisoformat(CHANGES[place][change]).replace(tzinfo=zone).timestamp() + minute % 2_000 * MINUTE
        )
    until = after + 3 * 24 * 60 * MINUTE

    found = list[float]()
    for moment in times_after(line, after, zone):
        if moment > until or len(found) > 10_000:
            break
        found.append(moment)

    assert found == by_search(line, after, until, zone)


@pytest.mark.parametrize(
    ("text", "place", "after", "fires"),
    [
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00", ["2026-03-29T03:00", "2026-03-30T02:30"],
                     id="a time that is skipped fires when the clocks have gone forward"),
        pytest.param("30 2 * * *", "Europe/Berlin", "2026-10-24T12:00", ["2026-10-25T02:30", "2026-10-26T02:30"],
                     id="a time that comes twice fires once"),
        pytest.param("0,15,30,45 2 * * *", "Europe/Berlin", "2026-03-28T12:00",
                     ["2026-03-29T03:00", "2026-03-30T02:00"], id="several times that are skipped fire once"),
        pytest.param("0 0 29 2 *", "UTC", "2096-03-01T00:00", ["2104-02-29T00:00", "2108-02-29T00:00"],
                     id="29 February, also where eight years lie between"),
        pytest.param("0 9 13 * fri", "UTC", "2026-11-01T00:00",
                     ["2026-11-06T09:00", "2026-11-13T09:00", "2026-11-20T09:00"],
                     id="either day is enough if both are restricted"),
        pytest.param("0 9 */10 * mon", "UTC", "2026-11-01T00:00", ["2026-12-21T09:00", "2027-01-11T09:00"],
                     id="a star with steps restricts nothing by itself"),
        pytest.param("0 12 * * 7", "UTC", "2026-11-17T00:00", ["2026-11-22T12:00"], id="7 is Sunday"),
    ],
)  # fmt: skip
def test_lines_fire_when_a_person_expects_it(text: str, place: str, after: str, fires: list[str]) -> None:
    zone = ZoneInfo(place)
    start = datetime.fromisoformat(after).replace(tzinfo=zone).timestamp()

    moments = islice(times_after(read_cron(text), start, zone), len(fires))

    assert [f"{datetime.fromtimestamp(each, zone):%Y-%m-%dT%H:%M}" for each in moments] == fires


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("* * * *", "has 4 fields; a cron line has five"),
        ("@daily", "has 1 fields"),
        ("60 * * * *", "'60' is not a number from 0 to 59"),
        ("x * * * *", "'x' is not a number from 0 to 59"),
        ("* * 0 * *", "day of month '0'"),
        ("* * * * funday", "or sun to sat"),
        ("*/0 * * * *", "takes steps of '0'"),
        ("*/-1 * * * *", "takes steps of '-1'"),
        ("50-10 * * * *", "ends before it begins"),
        ("0 0 31 2,4 *", "never fires: no such month has a day 31"),
        ("1, * * * *", "'' is not a number"),
        ("\N{ARABIC-INDIC DIGIT ONE} * * * *", "is not understood"),
        ("* " * 400, "a cron line has five"),
    ],
)
def test_what_is_no_cron_line_is_refused_with_the_field_and_the_reason(text: str, problem: str) -> None:
    with pytest.raises(ScheduleError) as refused:
        read_cron(text)
    assert problem in str(refused.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("* * * * *", "every minute"),
        ("*/5 * * * *", "every 5 minutes"),
        ("7 * * * *", "every hour at minute 7"),
        ("0 9 * * *", "every day at 09:00"),
        ("30 8 * * mon-fri", "every weekday at 08:30"),
        ("5 18 * * 7,2", "every Sun, Tue at 18:05"),
        ("0 6 1 * *", "every month on day 1 at 06:00"),
        ("0 */2 1-7 * *", "cron 0 */2 1-7 * *"),
    ],
)
def test_a_line_is_described_in_words_where_they_are_short(text: str, words: str) -> None:
    assert describe(read_cron(text)) == words
