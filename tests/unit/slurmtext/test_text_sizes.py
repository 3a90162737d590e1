"""Sizes and memory requests."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.sizes import ReqMem, format_size, parse_req_mem, parse_size

GIB = 1 << 30


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("1000", 1000, id="B22-bytes"),
    pytest.param("256K", 262144, id="B22-K"),
    pytest.param("495644K", 507539456, id="B22-rss"),
    pytest.param("507539456", 507539456, id="B22-noconvert"),
    pytest.param("1084.50M", 1137180672, id="B22-decimal"),
    pytest.param("0", 0, id="B22-E14-measured-zero"),
    pytest.param("", None, id="B22-blank"),
    pytest.param("1.50T", 3 * GIB * 512, id="B23-T"),
    pytest.param("2P", 2 << 50, id="B23-P"),
    pytest.param("1E", 1 << 60, id="B23-E-is-1024-to-the-sixth"),
    pytest.param("16?", None, id="B23-unknown-unit"),
    pytest.param("19855760K", 19855760 * 1024, id="D05-rss"),
    pytest.param("1947276K", 1947276 * 1024, id="E04-rss"),
    pytest.param("39538757K", 39538757 * 1024, id="E05-rss"),
    pytest.param("36266M", 38027657216, id="E11-gpu-memory"),
    pytest.param("40777023488", 40777023488, id="E11-gpu-memory-noconvert"),
    pytest.param("0.00M", 0, id="disk-zero"),
    pytest.param("2.60M", 2726298, id="disk-decimal"),
    pytest.param("18446744073709551614", None, id="B26-sentinel"),
    pytest.param("-2", None, id="B26-minus-two"),
    pytest.param("UNLIMITED", None, id="unlimited"),
    pytest.param(" 4g ", 4 * GIB, id="typed"),
    pytest.param("4GB", 4 * GIB, id="typed-with-B"),
])
def test_size(text: str, expected: int | None) -> None:
    assert parse_size(text) == expected


@pytest.mark.parametrize(("unit", "expected"), [("B", 4096), ("K", 4096 << 10), ("M", 4096 << 20), ("G", 4096 << 30)])
def test_unit_of_a_bare_number(unit: str, expected: int) -> None:
    assert parse_size("4096", unit) == expected
    assert parse_size("4096.0", unit) == expected
    assert parse_size("4096K", unit) == 4096 << 10


@pytest.mark.parametrize(("text", "expected"), [("512M", 512 << 20), ("4G", 4 * GIB), ("0", 0), ("1024", GIB)])
def test_b28_minimum_memory_of_scontrol(text: str, expected: int) -> None:
    assert parse_size(text, "M") == expected


@pytest.mark.parametrize("text", ["12Q", "K", "1,5G", "-5K", "1.2.3", "5 G", "one", "٣K", "1" * 30, "8E",
                                  "9000000000000000000G"])
def test_size_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_size(text)


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("10000Mn", ReqMem(10000 << 20, "node"), id="B19-per-node"),
    pytest.param("4Gc", ReqMem(4 * GIB, "cpu"), id="B19-per-cpu"),
    pytest.param("", ReqMem(None, None), id="B19-step-from-21.08"),
    pytest.param("10G", ReqMem(10 * GIB, "job"), id="B34-whole-job"),
    pytest.param("0", ReqMem(None, None), id="B20-zero"),
    pytest.param("0n", ReqMem(None, None), id="B20-zero-per-node"),
    pytest.param("0Mc", ReqMem(None, None), id="B20-zero-per-cpu"),
    pytest.param("16777216T", ReqMem(None, "job"), id="B20-huge-before-23.02.6"),
    pytest.param("16?n", ReqMem(None, "node"), id="B23-unknown-unit"),
    pytest.param("2.50G", ReqMem(5 * GIB // 2, "job"), id="B25-decimal"),
    pytest.param("8Gg", ReqMem(8 * GIB, "gpu"), id="per-gpu"),
    pytest.param("8g", ReqMem(8 * GIB, "job"), id="typed-g"),
    pytest.param("512", ReqMem(512 << 20, "job"), id="bare-is-MiB"),
    pytest.param("N/A", ReqMem(None, None), id="not-available"),
])
def test_req_mem(text: str, expected: ReqMem) -> None:
    assert parse_req_mem(text) == expected


@pytest.mark.parametrize("text", ["10Gx", "Mn", "4G c", "much"])
def test_req_mem_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_req_mem(text)


@pytest.mark.parametrize(("value", "text"), [(0, "0"), (1000, "1000"), (1536, "1.50K"), (10 * GIB, "10G"),
                                             (5 * GIB // 2, "2.50G")])
def test_format(value: int, text: str) -> None:
    assert format_size(value) == text


def test_negative_is_a_programming_error() -> None:
    with pytest.raises(ValueError, match="negative"):
        format_size(-1)


@settings(deadline=None, max_examples=300)
@given(st.one_of(st.integers(0, (1 << 63) - 1), st.builds(lambda n, e: n << e, st.integers(0, 7000), st.integers(0, 50))))
def test_round_trip(value: int) -> None:
    assert parse_size(format_size(value)) == value


@settings(deadline=None)
@given(st.integers(1, 10**6), st.sampled_from("KMGT"), st.sampled_from(["n", "c"]))
def test_req_mem_agrees_with_size(number: int, unit: str, per: str) -> None:
    assert parse_req_mem(f"{number}{unit}{per}").bytes == parse_size(f"{number}{unit}")
