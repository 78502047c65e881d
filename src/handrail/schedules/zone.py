"""The zone in which the time of day is told."""

import os
from collections.abc import Mapping
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from handrail.errors import ScheduleError

SYSTEM_ZONE = "/etc/localtime"


def local_zone(env: Mapping[str, str]) -> ZoneInfo:
    """The zone that TZ names, else that of the machine; ScheduleError if TZ names none that is known."""
    name = env.get("TZ", "").removeprefix(":")
    try:
        if name:
            return _from_file(name) if name.startswith("/") else ZoneInfo(name)
        return _from_file(SYSTEM_ZONE) if os.path.exists(SYSTEM_ZONE) else ZoneInfo("UTC")  # noqa: PTH110  # costs less
    except (ZoneInfoNotFoundError, ValueError, OSError) as error:
        raise ScheduleError(
            f"The time zone {name or SYSTEM_ZONE!r} is not known here. Set TZ to a name such as Europe/Berlin or UTC."
        ) from error


def _from_file(path: str) -> ZoneInfo:
    with open(path, "rb") as file:  # noqa: PTH123  # costs less
        return ZoneInfo.from_file(file, key=os.path.realpath(path).partition("zoneinfo/")[2] or path)
