"""SOURCE_DATE_EPOCH, as far as a zip can say it."""

from __future__ import annotations

import calendar

import pytest

from bundler.errors import UsageError
from bundler.moment import Moment, moment_of


def seconds(*date: int) -> int:
    return calendar.timegm((*date, 0, 0, 0))


CASES = {
    "not set": (None, seconds(1980, 1, 1, 0, 0, 0)),
    "empty": ("", seconds(1980, 1, 1, 0, 0, 0)),
    "an even second": ("1700000000", 1_700_000_000),
    "an odd second": ("1700000001", 1_700_000_000),
    "1970": ("0", seconds(1980, 1, 1, 0, 0, 0)),
    "before 1970": ("-5", seconds(1980, 1, 1, 0, 0, 0)),
    "the last a zip can say": ("4354819198", seconds(2107, 12, 31, 23, 59, 58)),
    "later": ("4354819200", seconds(2107, 12, 31, 23, 59, 58)),
    "beyond 64 bits": ("9" * 30, seconds(2107, 12, 31, 23, 59, 58)),
}


@pytest.mark.parametrize(("text", "expected"), CASES.values(), ids=CASES.keys())
def test_what_a_zip_cannot_say_becomes_the_nearest_that_it_can(
    text: str | None, expected: int
) -> None:
    assert moment_of(text).seconds == expected


@pytest.mark.parametrize("text", ["now", "1.5", "0x10", " 1", "1 ", "²", "+1", "--1", "9" * 31])
def test_nonsense_is_refused(text: str) -> None:
    with pytest.raises(UsageError, match=r"SOURCE_DATE_EPOCH is .* not a whole number"):
        moment_of(text)


def test_the_forms_of_one_moment() -> None:
    moment = Moment(seconds(2023, 11, 14, 22, 13, 20))

    day, time = moment.zip_date, moment.zip_time
    assert (1980 + (day >> 9), day >> 5 & 15, day & 31) == (2023, 11, 14)
    assert (time >> 11, time >> 5 & 63, (time & 31) * 2) == (22, 13, 20)
    assert moment.milliseconds == moment.seconds * 1000
