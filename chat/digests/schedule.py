"""When a digest is due: at a time of day in a time zone, every day or on one day of the week."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, date, datetime, time, timedelta, tzinfo
from functools import cache
from zoneinfo import ZoneInfo, available_timezones

DEFAULT_TIME_ZONE = "UTC"


@dataclass(frozen=True, slots=True)
class Schedule:
    """A time of day in a time zone; `weekday` is 0 for Monday, None for every day."""

    at: time
    time_zone: str
    weekday: int | None = None

    def next_after(self, moment: datetime) -> datetime:
        """Return the first due time after this moment, in UTC."""
        return next(due for due in self._due_times(moment, step=1) if due > moment)

    def last_until(self, moment: datetime) -> datetime:
        """Return the last due time that is not after this moment, in UTC."""
        return next(due for due in self._due_times(moment, step=-1) if due <= moment)

    def _due_times(self, moment: datetime, *, step: int) -> Iterator[datetime]:
        """Yield due times in one direction, beginning on the day before or after the one of this moment."""
        zone = find_zone(self.time_zone)
        day = moment.astimezone(zone).date() - timedelta(days=step)
        while True:
            if self.weekday in (None, day.weekday()):
                yield _in_utc(day, self.at, zone)
            day += timedelta(days=step)


def _in_utc(day: date, at: time, zone: tzinfo) -> datetime:
    """Return this time of this day in UTC.

    When clocks go back, it is the first of the two times; when they go forward over it, it is as much later. So there is one
    on each day.
    """
    return datetime.combine(day, at, tzinfo=zone).astimezone(UTC)


def find_zone(name: str) -> tzinfo:
    """Return the time zone of this name; UTC if this machine does not know it."""
    return ZoneInfo(name) if name in time_zones() else UTC


@cache
def time_zones() -> tuple[str, ...]:
    """Return the names of the time zones that this machine knows, sorted; UTC is one of them."""
    return tuple(sorted({DEFAULT_TIME_ZONE, *(name for name in available_timezones() if "/" in name)}))
