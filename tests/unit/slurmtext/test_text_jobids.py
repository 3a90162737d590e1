"""Job ids, array lists and steps."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.jobids import JobId, array_indices, count_array, format_job_id, parse_job_id


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("12", JobId(12), id="plain"),
    pytest.param("57829110_[5-100]", JobId(57829110, None, "5-100", 96), id="C01-pending-array"),
    pytest.param("123456_[9201-10000%500]", JobId(123456, None, "9201-10000", 800, True, 500), id="C02-throttle"),
    pytest.param("12_[1-5%2]", JobId(12, None, "1-5", 5, True, 2), id="C02-small"),
    pytest.param("12_[1,3,7-9]", JobId(12, None, "1,3,7-9", 5), id="C01-list"),
    pytest.param("12_[1-20:3]", JobId(12, None, "1-20:3", 7), id="C01-stride"),
    pytest.param("500_[0-999]", JobId(500, None, "0-999", 1000), id="F05-array"),
    pytest.param("77_[1034,1150,1352,...]", JobId(77, None, "1034,1150,1352,...", 3, False), id="C04-dots"),
    pytest.param("77_[1034,1150,13...]", JobId(77, None, "1034,1150,13...", 3, False), id="C04-number-cut"),
    pytest.param("77_[1034,1150-1...]", JobId(77, None, "1034,1150-1...", 3, False), id="C04-range-cut"),
    pytest.param("77_[1,2,...%4]", JobId(77, None, "1,2,...", 2, False, 4), id="C04-dots-and-throttle"),
    pytest.param("77_[...]", JobId(77, None, "...", 1, False), id="C04-nothing-left"),
    pytest.param("66_[1-3,7,9,11,13,15,17,19,21,2", JobId(66, None, "1-3,7,9,11,13,15,17,19,21,2...", 12, False),
                 id="real-squeue-stops-after-31-characters"),
    pytest.param("66_[1-3,7,", JobId(66, None, "1-3,7,...", 4, False), id="C04-stops-after-a-comma"),
    pytest.param("66_[1-5%1", JobId(66, None, "1-5", 5), id="C04-stops-within-the-throttle"),
    pytest.param("1043074_91", JobId(1043074, 91), id="C05-task"),
    pytest.param("1043166", JobId(1043166), id="C05-raw"),
    pytest.param("1043074_91.batch", JobId(1043074, 91, step="batch"), id="C05-step-of-task"),
    pytest.param("1043166.batch", JobId(1043166, step="batch"), id="C05-raw-step"),
    pytest.param("1000+0", JobId(1000, het_offset=0), id="C07-leader"),
    pytest.param("1000+1", JobId(1000, het_offset=1), id="C07-component"),
    pytest.param("1000+1.0", JobId(1000, het_offset=1, step="0"), id="C07-component-step"),
    pytest.param("66+0.extern", JobId(66, het_offset=0, step="extern"), id="C07-extern"),
    pytest.param("778010.interactive", JobId(778010, step="interactive"), id="C08-interactive"),
    pytest.param("778010.extern", JobId(778010, step="extern"), id="C08-extern"),
    pytest.param("778010.0", JobId(778010, step="0"), id="C08-number"),
    pytest.param("12.4294967292", JobId(12, step="extern"), id="C08-extern-as-number"),
    pytest.param("12.4294967291", JobId(12, step="batch"), id="C08-batch-as-number"),
    pytest.param("12.4294967290", JobId(12, step="interactive"), id="C08-interactive-as-number"),
    pytest.param("12.4294967294", JobId(12, step="batch"), id="C08-batch-as-number-before-20.11"),
    pytest.param("12.TBD", JobId(12, step="TBD"), id="pending-step"),
    pytest.param("12_4294967294", JobId(12), id="task-not-set"),
    pytest.param(" 12_3 ", JobId(12, 3), id="padded"),
])
def test_job_id(text: str, expected: JobId) -> None:
    assert parse_job_id(text) == expected
    assert parse_job_id(format_job_id(expected)) == expected


@pytest.mark.parametrize("text", [
    pytest.param("0_0", id="C19-zero"), pytest.param("", id="C19-blank"), pytest.param("   ", id="C19-blanks"), "0", "-1", "12_",
    "12_x", "12_[]", "12_[5-1]", "12_[1-5].batch", "12_[1-5]x", "12.", "12_3_4", "12+", "JOBID", "12_[1-5%]", "12_[1-5%%2]",
    "12_[1;2]", "12_[1....5]", "99999999999", "CLUSTER: a", "12\n13", "(Resources)",
])
def test_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_job_id(text)


def test_indices() -> None:
    assert list(array_indices("1-3,9,20-40:10%3")) == [1, 2, 3, 9, 20, 30, 40]
    assert count_array("0-11%2") == 12


@pytest.mark.parametrize(("spec", "cause"), [("1,2,...", "array list was cut"), ("5-1", "not an array list"),
                                             ("", "not an array list"), ("1-3%x", "not an array list")])
def test_indices_reject_before_the_first_number(spec: str, cause: str) -> None:
    with pytest.raises(ParseError) as caught:
        array_indices(spec)
    assert caught.value.cause == cause


def test_a_huge_range_is_counted_without_being_built() -> None:
    assert parse_job_id("1_[0-4000000000]").tasks == 4_000_000_001


_RANGE = st.tuples(st.integers(0, 10**6), st.integers(0, 500), st.integers(1, 20))
_SPECS = st.lists(_RANGE, min_size=1, max_size=6)


def _text(ranges: list[tuple[int, int, int]]) -> str:
    parts = []
    for first, length, stride in ranges:
        if length == 0:
            parts.append(str(first))
        else:
            parts.append(f"{first}-{first + length}" + (f":{stride}" if stride > 1 else ""))
    return ",".join(parts)


@settings(deadline=None)
@given(_SPECS)
def test_count_is_the_number_of_indices(ranges: list[tuple[int, int, int]]) -> None:
    spec = _text(ranges)
    job = parse_job_id(f"7_[{spec}]")
    assert job.tasks == len(list(array_indices(spec))) == count_array(spec)
    assert job.tasks_exact


@settings(deadline=None, max_examples=200)
@given(st.sets(st.integers(0, 5000), min_size=2, max_size=60), st.data())
def test_a_cut_list_never_counts_more_than_there_were(tasks: set[int], data: st.DataObject) -> None:
    runs: list[str] = []
    ordered = sorted(tasks)
    start = previous = ordered[0]
    for n in [*ordered[1:], -1]:
        if n == previous + 1:
            previous = n
            continue
        runs.append(str(start) if start == previous else f"{start}-{previous}")
        start = previous = n
    spec = ",".join(runs)
    assert parse_job_id(f"7_[{spec}]").tasks == len(tasks)
    cut = spec[: data.draw(st.integers(0, len(spec)))]
    for text in (f"7_[{cut}...]", f"7_[{cut}"):
        job = parse_job_id(text)
        assert not job.tasks_exact
        assert 1 <= job.tasks <= len(tasks)
        assert parse_job_id(format_job_id(job)) == job


_IDS = st.one_of(
    st.builds(JobId, st.integers(1, 2**31), step=st.none() | st.sampled_from(["batch", "extern", "0", "17", "interactive"])),
    st.builds(JobId, st.integers(1, 2**31), st.integers(0, 4_000_000), step=st.none() | st.sampled_from(["batch", "3"])),
    st.builds(JobId, st.integers(1, 2**31), het_offset=st.integers(0, 127), step=st.none() | st.sampled_from(["0", "extern"])),
)


@settings(deadline=None)
@given(_IDS)
def test_round_trip(job: JobId) -> None:
    assert parse_job_id(format_job_id(job)) == job


@settings(deadline=None)
@given(_SPECS, st.none() | st.integers(1, 1000))
def test_array_round_trip(ranges: list[tuple[int, int, int]], throttle: int | None) -> None:
    spec = _text(ranges)
    text = f"9_[{spec}" + (f"%{throttle}" if throttle else "") + "]"
    job = parse_job_id(text)
    assert (job.throttle, job.array_spec) == (throttle, spec)
    assert format_job_id(job) == text
