"""
Cron lines: five fields, in local time.

    minute  hour  day of month  month  day of week        0-59  0-23  1-31  1-12  0-7 (0 and 7 are Sunday)

A field is `*`, a number, a range `a-b`, or a list of these with commas; `/n` takes every n-th. Months and days of the
week also go by their first three letters. If both days are restricted, either of them is enough, as in every cron.

When clocks change, a line that names hours fires once: a time that is skipped fires when the clocks have gone forward,
a time that comes twice fires the first time. A line for every hour follows the real time instead.
"""

from calendar import monthrange
from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from zoneinfo import ZoneInfo

from handrail.errors import ScheduleError
from handrail.records import record

MONTHS = ("jan", "feb", "mar", "apr", "may", "jun", "jul", "aug", "sep", "oct", "nov", "dec")
WEEKDAYS = ("sun", "mon", "tue", "wed", "thu", "fri", "sat")
HORIZON = timedelta(days=366 * 41)
"""A line that fires at all fires within it: 29 February falls on a given day of the week at least every 40 years."""
BACK = timedelta(hours=4)
"""More than clocks are ever set back."""
MAX_LINE = 200


@record
class CronField:
    """What one of the fields accepts."""

    name: str
    low: int
    high: int
    names: tuple[str, ...] = ()


FIELDS = (
    CronField("minute", 0, 59),
    CronField("hour", 0, 23),
    CronField("day of month", 1, 31),
    CronField("month", 1, 12, MONTHS),
    CronField("day of week", 0, 7, WEEKDAYS),
)


@record
class CronLine:
    """A line, read: the sets of what its fields accept."""

    text: str
    minutes: tuple[int, ...]
    hours: tuple[int, ...]
    days: frozenset[int]
    months: frozenset[int]
    weekdays: frozenset[int]
    """0 is Sunday."""
    either_day: bool
    """Both days are restricted, and one of them is enough."""

    def is_on(self, day: date) -> bool:
        """Whether it fires on this day."""
        by_date, by_week = day.day in self.days, day.isoweekday() % 7 in self.weekdays
        return day.month in self.months and (by_date or by_week if self.either_day else by_date and by_week)

    @property
    def follows_real_time(self) -> bool:
        """Whether it is for every hour, so that no change of the clocks matters to it."""
        return len(self.hours) == 24


def read_cron(text: str) -> CronLine:
    """Read a line; ScheduleError says what is wrong with it."""
    words = text.split()
    if len(words) != len(FIELDS) or len(text) > MAX_LINE:
        raise ScheduleError(
            f"{text[:MAX_LINE]!r} has {len(words)} fields; a cron line has five: minute, hour, day of month, month, "
            "day of week. For example '0 9 * * 1-5' is 09:00 on weekdays."
        )
    minutes, hours, days, months, weekdays = map(_read_field, words, FIELDS)
    line = CronLine(
        text=" ".join(words),
        minutes=tuple(sorted(minutes)),
        hours=tuple(sorted(hours)),
        days=days,
        months=months,
        weekdays=frozenset(day % 7 for day in weekdays),
        either_day=not words[2].startswith("*") and not words[4].startswith("*"),
    )
    if not line.either_day and all(min(days) > monthrange(2024, month)[1] for month in months):
        raise ScheduleError(f"{line.text!r} never fires: no such month has a day {min(days)}. Change day or month.")
    return line


def _read_field(word: str, field: CronField) -> frozenset[int]:
    return frozenset(value for part in word.split(",") for value in _read_part(part, word, field))


def _read_part(part: str, word: str, field: CronField) -> range:
    span, slash, step = part.partition("/")
    first, dash, last = span.partition("-")
    if span == "*":
        low, high = field.low, min(field.high, 6) if field.names is WEEKDAYS else field.high
    else:
        low = _read_value(first, word, field)
        high = _read_value(last, word, field) if dash else field.high if slash else low
    if slash and not (_is_number(step) and 0 < int(step) <= field.high):
        raise ScheduleError(f"The {field.name} {word!r} takes steps of {step!r}. Use a number from 1 to {field.high}.")
    if high < low:
        raise ScheduleError(f"The {field.name} {word!r} ends before it begins. Write two ranges with a comma.")
    return range(low, high + 1, int(step) if slash else 1)


def _read_value(text: str, word: str, field: CronField) -> int:
    if text.lower() in field.names:
        return field.names.index(text.lower()) + (field.low if field.names is MONTHS else 0)
    if not (_is_number(text) and field.low <= int(text) <= field.high):
        names = f", or {field.names[0]} to {field.names[-1]}" if field.names else ""
        raise ScheduleError(
            f"The {field.name} {word!r} is not understood: {text!r} is not a number from {field.low} to {field.high}"
            f"{names}. A field is *, a number, a range 1-5, a list 1,3, or steps */10."
        )
    return int(text)


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdecimal() and len(text) <= 4


def times_after(line: CronLine, after: float, zone: ZoneInfo) -> Iterator[float]:
    """When it fires after a moment, in order; all moments are seconds since 1970."""
    begin = datetime.fromtimestamp(after, zone).replace(tzinfo=None)
    day, pending, last = begin.date() - timedelta(days=1), list[float](), after
    end = day + HORIZON
    while day < end:
        if line.is_on(day):
            first, end = _earliest(day, zone), day + HORIZON
            for moment in sorted(pending):
                if last < moment < first:
                    last = moment
                    yield moment
            pending = [moment for moment in pending if moment >= first]
            pending += _times_on(line, day, begin - BACK, zone)
        day += timedelta(days=1)
    yield from sorted(moment for moment in set(pending) if moment > last)


def _earliest(day: date, zone: ZoneInfo) -> float:
    """No moment of this day is earlier."""
    midnight = datetime(day.year, day.month, day.day, tzinfo=zone)
    return min(midnight.timestamp(), midnight.replace(fold=1).timestamp())


def _times_on(line: CronLine, day: date, begin: datetime, zone: ZoneInfo) -> Iterator[float]:
    """When it fires on a day, as its clocks show it; not before the time `begin` of those clocks."""
    for hour in line.hours:
        for minute in line.minutes:
            shown = datetime.combine(day, time(hour, minute))
            if shown >= begin:
                yield from _moments(shown, zone, real=line.follows_real_time)


def _moments(shown: datetime, zone: ZoneInfo, *, real: bool) -> Iterator[float]:
    """The moments when clocks show this time: usually one."""
    first = shown.replace(tzinfo=zone).timestamp()
    second = shown.replace(tzinfo=zone, fold=1).timestamp()
    if second < first:  # it is skipped
        if not real:
            yield _change_between(second, first, zone)
        return
    yield first
    if real and second != first:
        yield second


def _change_between(low: float, high: float, zone: ZoneInfo) -> float:
    """The moment when the clocks change."""
    before = datetime.fromtimestamp(low, zone).utcoffset()
    while high - low > 1:
        middle = (low + high) // 2
        if datetime.fromtimestamp(middle, zone).utcoffset() == before:
            low = middle
        else:
            high = middle
    return high


def describe(line: CronLine) -> str:
    """The line in words where they are short, else the line itself."""
    minute, hour, day, month, weekday = line.text.split()
    if (hour, day, month, weekday) == ("*",) * 4:
        if minute == "*":
            return "every minute"
        if minute.startswith("*/"):
            return f"every {minute[2:]} minutes"
        return f"every hour at minute {minute}" if minute.isdecimal() else f"cron {line.text}"
    if not (minute.isdecimal() and hour.isdecimal()) or month != "*":
        return f"cron {line.text}"
    time_of_day = f"at {int(hour):02}:{int(minute):02}"
    if day == "*":
        if weekday == "*":
            return f"every day {time_of_day}"
        if line.weekdays == frozenset(range(1, 6)):
            return f"every weekday {time_of_day}"
        days = ", ".join(WEEKDAYS[each].capitalize() for each in sorted(line.weekdays))
        return f"every {days} {time_of_day}"
    return f"every month on day {day} {time_of_day}" if weekday == "*" and day.isdecimal() else f"cron {line.text}"
