"""The times of a session's lines."""

from datetime import datetime

SECOND = len("2026-01-31T12:00:00")


class StampClock:
    """Turns stamps into seconds since 1970. Lines of one second follow each other, so only the first is taken apart."""

    def __init__(self) -> None:
        self._second = ""
        self._at = 0.0

    def parse(self, stamp: str) -> float:
        """The moment of a stamp; ValueError if it is none."""
        if not stamp.endswith("Z"):
            return datetime.fromisoformat(stamp).timestamp()
        if (second := stamp[:SECOND]) != self._second:
            self._at = datetime.fromisoformat(f"{second}+00:00").timestamp()
            self._second = second
        return self._at + float(f"0{stamp[SECOND:-1]}")
