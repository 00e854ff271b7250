"""The one time that every file of an artifact bears.

Source: the specification of SOURCE_DATE_EPOCH, reproducible-builds.org; PKWARE
APPNOTE.TXT 6.3.10, section 4.4.6, for what a zip can say.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Final

from bundler.errors import UsageError

VARIABLE: Final = "SOURCE_DATE_EPOCH"
EARLIEST: Final = int(datetime(1980, 1, 1, tzinfo=UTC).timestamp())
LATEST: Final = int(datetime(2107, 12, 31, 23, 59, 58, tzinfo=UTC).timestamp())


@dataclass(frozen=True)
class Moment:
    """A time that a zip can say.

    Args:
        seconds: since 1970-01-01 UTC; even, for a zip counts by two.
    """

    seconds: int = EARLIEST

    @property
    def milliseconds(self) -> int:
        """Since 1970, as conda's index wants it."""
        return self.seconds * 1000

    @property
    def zip_date(self) -> int:
        """The day in MS-DOS form."""
        day = datetime.fromtimestamp(self.seconds, UTC)
        return (day.year - 1980) << 9 | day.month << 5 | day.day

    @property
    def zip_time(self) -> int:
        """The time of day in MS-DOS form."""
        time = datetime.fromtimestamp(self.seconds, UTC)
        return time.hour << 11 | time.minute << 5 | time.second // 2


def moment_of(text: str | None) -> Moment:
    """Read SOURCE_DATE_EPOCH; what a zip cannot say becomes the nearest that it can.

    Args:
        text: the variable's value, or nothing; an empty one counts as not set.

    Raises:
        UsageError: it is not a whole number.
    """
    if not text:
        return Moment()
    if re.fullmatch(r"-?[0-9]{1,30}", text) is None:
        raise UsageError(
            f"{VARIABLE} is {text!r}, which is not a whole number of seconds",
            next_step=f"set {VARIABLE} to seconds since 1970, such as `git log -1 --format=%ct` "
            "prints, or unset it",
        )
    seconds = min(max(int(text), EARLIEST), LATEST)
    return Moment(seconds - seconds % 2)
