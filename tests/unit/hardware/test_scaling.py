"""Run times carry over as a range that holds what was told."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.hardware.gpufacts import gpu_fact
from queuecast.hardware.gputable import Link
from queuecast.hardware.scaling import CHECKPOINTING, Set, carry_over

TYPES = ("v100", "a100", "h100", "l4", "mi300x")


def gpus(kind: str, count: int = 1, nodes: int = 1, link: Link = "nvlink", recompute: bool = False) -> Set:
    fact = gpu_fact(kind)
    assert fact is not None
    return Set(fact, count, nodes, link, recompute)


sets = st.builds(gpus, st.sampled_from(TYPES), st.sampled_from([1, 2, 4, 8]), st.just(1), st.sampled_from(["nvlink", "none"]))


@given(st.floats(0.1, 1000), sets)
def test_the_same_set_takes_what_was_told(hours: float, group: Set) -> None:
    run = carry_over(hours, group, group, "full", "fp16")
    assert run is not None
    assert run.low_s == pytest.approx(hours * 3600)
    assert run.high_s == pytest.approx(hours * 3600)


@given(st.floats(0.1, 1000), sets, sets, st.sampled_from(["full", "inference"]))
def test_a_range_in_order(hours: float, one: Set, other: Set, mode: str) -> None:
    run = carry_over(hours, one, other, mode, "fp16")
    assert run is not None
    assert 0 < run.low_s <= run.likely_s <= run.high_s
    twice = carry_over(2 * hours, one, other, mode, "fp16")
    assert twice is not None
    assert twice.likely_s == pytest.approx(2 * run.likely_s)


def test_more_gpus_run_shorter_and_use_more_gpu_hours() -> None:
    few, many = (
        carry_over(10, gpus("a100", 2), gpus("a100", 2), "full", "bf16"),
        carry_over(10, gpus("a100", 2), gpus("a100", 8), "full", "bf16"),
    )
    assert few is not None
    assert many is not None
    assert few.likely_s / 4 <= many.likely_s < few.likely_s
    assert many.low_s == pytest.approx(few.likely_s / 4)


def test_checkpointing_costs_a_third_and_unknown_is_unknown() -> None:
    again = carry_over(9, gpus("a100", 4), gpus("a100", 4, recompute=True), "full", "bf16")
    assert again is not None
    assert again.likely_s == pytest.approx(9 * 3600 * CHECKPOINTING)
    assert carry_over(9, gpus("a100"), gpus("1g.10gb"), "full", "bf16") is None
    assert carry_over(9, gpus("a100"), gpus("1g.10gb"), "inference", "bf16") is None
