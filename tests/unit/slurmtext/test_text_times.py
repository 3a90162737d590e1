"""Printed times, zones and clock changes."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ConfigError, ParseError
from queuecast.slurmtext.estimates import parse_test_only
from queuecast.slurmtext.times import ParsedTime, format_time, parse_time

NEW_YORK = "America/New_York"


def utc(year: int, month: int, day: int, hour: int = 0, minute: int = 0, second: int = 0) -> datetime:
    return datetime(year, month, day, hour, minute, second, tzinfo=UTC)


@pytest.mark.parametrize("text", [
    pytest.param("Unknown", id="A05-unknown"), pytest.param("None", id="A05-D02-none"), pytest.param("", id="A05-blank"),
    pytest.param("N/A", id="A05-F01-not-available"), pytest.param("NONE", id="A05-none-in-capitals"),
    pytest.param("0", id="epoch-unset"), pytest.param("4294967294", id="epoch-not-set"),
    pytest.param("4294967295", id="epoch-infinite"), pytest.param("(null)", id="null"),
])
def test_no_time(text: str) -> None:
    assert parse_time(text, NEW_YORK) == ParsedTime(None, "")


@pytest.mark.parametrize(("text", "zone"), [
    pytest.param("2025-11-02T05:30:00", "UTC", id="A07-utc"),
    pytest.param("1762061400", "UTC", id="A07-epoch"),
    pytest.param("1762061400", NEW_YORK, id="A07-epoch-has-no-zone"),
    pytest.param(" 2025-11-02T05:30:00 ", "UTC", id="padded"),
])
def test_one_instant(text: str, zone: str) -> None:
    value, flag = parse_time(text, zone)
    assert (value, flag) == (utc(2025, 11, 2, 5, 30), "")
    assert value is not None
    assert value.timestamp() == 1762061400


def test_a07_local_text_in_the_repeated_hour_is_flagged() -> None:
    assert parse_time("2025-11-02T01:30:00", NEW_YORK) == (utc(2025, 11, 2, 5, 30), "ambiguous_hour")


@pytest.mark.parametrize(("elapsed", "expected"), [
    pytest.param(6300, (utc(2025, 11, 2, 6, 15), ""), id="A08-second"),
    pytest.param(2700, (utc(2025, 11, 2, 5, 15), ""), id="A08-first"),
    pytest.param(2701, (utc(2025, 11, 2, 5, 15), ""), id="A08-first-cut-to-seconds"),
    pytest.param(4500, (utc(2025, 11, 2, 5, 15), "ambiguous_hour"), id="A08-neither-fits"),
    pytest.param(None, (utc(2025, 11, 2, 5, 15), "ambiguous_hour"), id="A08-no-elapsed"),
])
def test_elapsed_decides_in_the_repeated_hour(elapsed: int | None, expected: tuple[datetime, str]) -> None:
    start, flag = parse_time("2025-11-02T00:30:00", NEW_YORK)
    assert flag == ""
    assert parse_time("2025-11-02T01:15:00", NEW_YORK, elapsed_from=start, elapsed_s=elapsed) == expected


def test_a08_start_from_the_end_backwards() -> None:
    end, _ = parse_time("2025-11-02T03:00:00", NEW_YORK)
    found = parse_time("2025-11-02T01:10:00", NEW_YORK, elapsed_from=end, elapsed_s=-6600)
    assert found == (utc(2025, 11, 2, 6, 10), "")


@pytest.mark.parametrize(("text", "zone", "expected"), [
    ("2025-03-09T02:30:00", NEW_YORK, utc(2025, 3, 9, 7, 30)),
    ("2025-03-30T02:15:00", "Europe/Berlin", utc(2025, 3, 30, 1, 15)),
    ("2025-10-05T02:10:00", "Australia/Lord_Howe", utc(2025, 10, 4, 15, 40)),  # a change of half an hour
])
def test_skipped_hour_keeps_the_offset_before_the_gap(text: str, zone: str, expected: datetime) -> None:
    assert parse_time(text, zone) == (expected, "nonexistent_hour")
    assert format_time(expected, zone) > text


@pytest.mark.parametrize("text", ["2025-03-09T01:59:59", "2025-03-09T03:00:00", "2025-11-02T00:59:59", "2025-11-02T02:00:00"])
def test_edges_of_the_changes_are_plain(text: str) -> None:
    value, flag = parse_time(text, NEW_YORK)
    assert flag == ""
    assert value is not None
    assert format_time(value, NEW_YORK) == text


@pytest.mark.parametrize("text", ["2025-02-30T00:00:00", "2025-13-01T00:00:00", "2025-01-01", "2025-01-01 00:00:00", "12:00:00",
                                  "2025-01-01T24:00:00", "0000-01-01T00:00:00", "1001", "-5", "COMPLETED", "Tomr 10:00",
                                  "2025-01-01T00:00:00Z", "999999999999"])
def test_rejects(text: str) -> None:
    with pytest.raises(ParseError) as caught:
        parse_time(text, NEW_YORK)
    assert caught.value.cause == "not a time"


def test_first_year_west_of_greenwich_does_not_overflow() -> None:
    with pytest.raises(ParseError):
        parse_time("9999-12-31T23:00:00", NEW_YORK)


@pytest.mark.parametrize("zone", ["Mars/Base", "../etc/passwd", "", "a\x00b"])
def test_unknown_zone(zone: str) -> None:
    with pytest.raises(ConfigError):
        parse_time("2025-01-01T00:00:00", zone)


def test_naive_datetime_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="zone"):
        format_time(utc(2025, 1, 1).replace(tzinfo=None))


ZONES = ["UTC", NEW_YORK, "Europe/Berlin", "Australia/Lord_Howe", "Asia/Kolkata", "Pacific/Apia", "Africa/Casablanca"]


@settings(deadline=None, max_examples=300)
@given(st.integers(946_684_800, 2_208_988_800), st.sampled_from(ZONES))
def test_round_trip_up_to_the_repeated_hour(epoch: int, zone: str) -> None:
    value = datetime.fromtimestamp(epoch, UTC)
    back, flag = parse_time(format_time(value, zone), zone)
    assert flag in ("", "ambiguous_hour")
    assert back is not None
    if flag == "":
        assert back == value
    else:  # the other reading of the same local text
        assert format_time(back, zone) == format_time(value, zone)


@settings(deadline=None, max_examples=300)
@given(st.integers(0, 4 * 3600), st.integers(0, 7 * 86_400), st.sampled_from([2019, 2025, 2026]))
def test_elapsed_always_finds_the_right_instant(offset: int, elapsed: int, year: int) -> None:
    """Ends around every autumn change, jobs of any length: the run time makes them exact."""
    changes = {2019: utc(2019, 11, 3, 4, 0), 2025: utc(2025, 11, 2, 4, 0), 2026: utc(2026, 11, 1, 4, 0)}
    end = changes[year] + timedelta(seconds=offset)
    start = end - timedelta(seconds=elapsed)
    assert parse_time(format_time(end, NEW_YORK), NEW_YORK, elapsed_from=start, elapsed_s=elapsed) == (end, "")


@settings(deadline=None, max_examples=200)
@given(st.integers(315_532_800, 2_114_380_800), st.sampled_from(ZONES))
def test_agrees_with_zoneinfo(seconds: int, zone: str) -> None:
    naive = datetime.fromtimestamp(seconds, UTC).replace(tzinfo=None)
    expected = naive.replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    assert parse_time(naive.isoformat(), zone).value == expected


def test_f11_test_only_sentence() -> None:
    answer = parse_test_only("sbatch: Job 1000001 to start at 2026-11-07T09:18:44 a using 1 processors"
                             " on nodes a241 in partition shared\n")
    assert answer.start == ParsedTime(utc(2026, 11, 7, 9, 18, 44))
    assert (answer.processors, answer.nodes, answer.partition, answer.fake_id) == (1, "a241", "shared", 1000001)


def test_f11_only_the_time_is_needed() -> None:
    text = "sbatch: lua: using the default account\nsbatch: will be ready to start at 2026-07-01T12:00:00 local"
    answer = parse_test_only(text, "Europe/Berlin")
    assert answer.start.value == utc(2026, 7, 1, 10)
    assert (answer.processors, answer.nodes, answer.partition) == (None, None, None)


@pytest.mark.parametrize("text", ["", "allocation failure: Requested node configuration is not available",
                                  "sbatch: Job 5 to start at once"])
def test_f11_no_start_is_an_error(text: str) -> None:
    with pytest.raises(ParseError):
        parse_test_only(text)


def test_f02_a_start_estimate_is_a_plain_time() -> None:
    assert parse_time("2026-06-01T12:00:00").value == utc(2026, 6, 1, 12)
