"""Printed and typed durations. Ids of the cases carry the number of the case they stand for."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.durations import (
    Limit,
    format_elapsed,
    format_limit,
    parse_elapsed,
    parse_limit,
    parse_limit_minutes,
    parse_typed_limit,
    parse_typed_seconds,
)


@pytest.mark.parametrize(("text", "seconds"), [
    pytest.param("00:00.181", 0.181, id="A01-milliseconds"),
    pytest.param("04:02.123", 242.123, id="A01-minutes-first-below-an-hour"),
    pytest.param("01:15:11", 4511, id="A01-hours"),
    pytest.param("2-03:04:05", 183845, id="A01-days"),
    pytest.param("451-06:00:24", 38988024, id="A01-E19-three-digit-days"),
    pytest.param("00:00:00", 0, id="A01-measured-zero"),
    pytest.param("00:30:00", 1800, id="A10-suspended"),
    pytest.param("01:30:00", 5400, id="A10-elapsed"),
    pytest.param("1-16:59:47", 147587, id="E01-user-cpu"),
    pytest.param("12-14:16:39", 1088199, id="E19-elapsed"),
    pytest.param("00:00.002", 0.002, id="real-total-cpu"),
    pytest.param("0:13", 13, id="squeue-time-below-a-minute"),
    pytest.param("4:46:57", 17217, id="squeue-one-digit-hour"),
    pytest.param("12:03", 723, id="squeue-minutes"),
    pytest.param(" 00:01:00 ", 60, id="padded"),
    pytest.param("390", 390, id="raw-seconds"),
])
def test_elapsed(text: str, seconds: float) -> None:
    value = parse_elapsed(text)
    assert value == pytest.approx(seconds, abs=1e-9)
    assert isinstance(value, float)


@pytest.mark.parametrize("text", ["", " ", "N/A", "INVALID", "Unknown", "unknown", "(null)", "NOT_SET"])
def test_elapsed_unknown_is_none(text: str) -> None:
    assert parse_elapsed(text) is None


@pytest.mark.parametrize("text", ["-00:00:01", "1-2", "1-02:03", "00:61", "00:00:60", "1:60:00", "1-24:00:00", "1:2:3:4",
                                  "two", "00:00.", "8000M", "COMPLETED", "١٢:٠٠:٠٠", "9" * 40, "12:5", "1 2:00:00"])
def test_elapsed_rejects(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_elapsed(text)
    assert caught.value.cause == "not a duration"


@pytest.mark.parametrize(("text", "limit"), [
    pytest.param("UNLIMITED", Limit("unlimited"), id="A04-unlimited"),
    pytest.param("Partition_Limit", Limit("partition"), id="A04-partition-limit"),
    pytest.param("365-00:00:00", Limit("limit", 31536000), id="A04-a-year"),
    pytest.param("", Limit("unknown"), id="A04-step-before-25.05"),
    pytest.param("02:30:00", Limit("limit", 9000), id="plain"),
    pytest.param("5:00", Limit("limit", 300), id="squeue-below-an-hour"),
    pytest.param("14-00:00:00", Limit("limit", 1209600), id="two-weeks"),
    pytest.param("INFINITE", Limit("unlimited"), id="infinite"),
    pytest.param("infinite", Limit("unlimited"), id="sinfo-lower-case"),
    pytest.param("NOT_SET", Limit("unknown"), id="not-set"),
    pytest.param("N/A", Limit("unknown"), id="not-available"),
    pytest.param("n/a", Limit("unknown"), id="sinfo-not-available"),
    pytest.param("NONE", Limit("unknown"), id="scontrol-default-time"),
    pytest.param("INVALID", Limit("unknown"), id="time-left-overdue"),
])
def test_limit(text: str, limit: Limit) -> None:
    assert parse_limit(text) == limit


@pytest.mark.parametrize("text", ["600", "30", "14-0", "3-13:10", "1:99", "later"])
def test_limit_does_not_guess_units(text: str) -> None:
    with pytest.raises(ParseError):
        parse_limit(text)


@pytest.mark.parametrize(("text", "limit"), [
    pytest.param("600", Limit("limit", 36000), id="A04-minutes"),
    pytest.param("Partition_Limit", Limit("partition"), id="A04-partition-limit"),
    pytest.param("UNLIMITED", Limit("unlimited"), id="A04-unlimited"),
    pytest.param("", Limit("unknown"), id="A04-step"),
    pytest.param("4294967295", Limit("unlimited"), id="infinite-number"),
    pytest.param("4294967294", Limit("unknown"), id="not-set-number"),
])
def test_limit_minutes(text: str, limit: Limit) -> None:
    assert parse_limit_minutes(text) == limit


@pytest.mark.parametrize("text", ["10:00", "-5", "1.5", "x"])
def test_limit_minutes_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_limit_minutes(text)


@pytest.mark.parametrize(("text", "exact", "rounded"), [
    pytest.param("30", 1800, 1800, id="A02-minutes"),
    pytest.param("5:03", 303, 360, id="A02-minutes-seconds"),
    pytest.param("1:02:03", 3723, 3780, id="A02-hours"),
    pytest.param("14-0", 1209600, 1209600, id="A02-days-hours"),
    pytest.param("3-13:10", 306600, 306600, id="A02-days-hours-minutes"),
    pytest.param("0:30", 30, 60, id="A02-rounds-up"),
    pytest.param("1-00:00:01", 86401, 86460, id="days-to-seconds"),
    pytest.param("90:00", 5400, 5400, id="more-than-an-hour-in-minutes"),
])
def test_typed_limit(text: str, exact: int, rounded: int) -> None:
    assert parse_typed_seconds(text) == exact
    assert parse_typed_limit(text) == Limit("limit", rounded)


@pytest.mark.parametrize("text", [pytest.param("-1", id="A02-minus-one"), pytest.param("INFINITE", id="A02-infinite"),
                                  "unlimited", "0", "0:00"])
def test_typed_unlimited(text: str) -> None:
    assert parse_typed_limit(text) == Limit("unlimited")


@pytest.mark.parametrize("text", ["", "1-", "1:2:3:4", "1-2:3:4:5", "2h", "-2", "1.5", "Partition_Limit"])
def test_typed_limit_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_typed_limit(text)


def test_negative_limit_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        format_limit(-1)


@settings(deadline=None)
@given(st.integers(0, 10**12))
def test_limit_round_trip(seconds: int) -> None:
    text = format_limit(seconds)
    if seconds < 10**13:
        assert parse_limit(text) == Limit("limit", seconds)
        assert parse_elapsed(text) == seconds


@settings(deadline=None)
@given(st.integers(0, 10**9))
def test_elapsed_round_trip_in_milliseconds(millis: int) -> None:
    back = parse_elapsed(format_elapsed(millis / 1000))
    assert back == pytest.approx(millis / 1000 if millis < 3_600_000 else millis // 1000, abs=1e-6)


@settings(deadline=None)
@given(st.integers(0, 9999), st.integers(0, 23), st.integers(0, 59), st.integers(0, 59))
def test_typed_with_days_agrees_with_printed(days: int, hours: int, minutes: int, seconds: int) -> None:
    text = f"{days}-{hours:02d}:{minutes:02d}:{seconds:02d}"
    assert parse_typed_seconds(text) == parse_limit(text).seconds
