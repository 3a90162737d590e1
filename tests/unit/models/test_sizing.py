"""Bounds from a table of uses."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.models.made_uses import AT, GB, made_uses, many

from queuecast.models.sizing import sizes_of
from queuecast.models.sizing_bound import Resource, SizeBound
from queuecast.usage.uses import SCHEMA, Uses

HOUR = 3600.0


def bound(uses: Uses, resource: Resource = "memory", *, risk: float = 0.01, **asking: Any) -> SizeBound | None:
    asked = {"memory": 64 * GB, "time": 4 * HOUR, "cpus": 8.0, "gpu_memory": 80 * GB}[resource]
    kind: dict[str, Any] = {"user": "u2", "name": "run_7", "account": "lab", "partition": "main", "asked": asked}
    return sizes_of(uses, risk=risk).bound(resource, **(kind | asking))


def test_a_kind_that_uses_a_tenth_is_sized_down() -> None:
    found = bound(made_uses(many(600)))
    assert found is not None
    assert found.kind == "user and name"
    assert found.unit == "bytes"
    assert found.used[2] <= found.value < 32 * GB
    assert found.used[0] == pytest.approx(6 * GB, rel=0.2)
    assert not found.needs_more
    assert found.changed_at is None
    assert found.risk_seen is not None


@pytest.mark.parametrize(("resource", "unit"), [("memory", "bytes"), ("time", "s"), ("cpus", "CPUs")])
def test_each_resource_has_its_unit(resource: Resource, unit: str) -> None:
    found = bound(made_uses(many(600)), resource)
    assert found is not None
    assert (found.resource, found.unit) == (resource, unit)
    assert found.value < {"memory": 64 * GB, "time": 4 * HOUR, "cpus": 8.0}[resource]


def test_cpus_are_whole() -> None:
    found = bound(made_uses(many(600, cpu_s=2.3 * HOUR, elapsed_s=HOUR)), "cpus")
    assert found is not None
    assert found.value == round(found.value)
    assert found.value >= 3


def test_few_jobs_are_no_ground_to_shrink() -> None:
    found = bound(made_uses(many(20)))
    assert found is not None
    assert found.value == 64 * GB
    assert found.risk_seen is None


def test_unknown_is_not_zero() -> None:
    assert bound(made_uses(many(100, mem_peak_bytes=None))) is None
    assert bound(made_uses(many(100, mem_alloc_bytes=None))) is None
    assert bound(made_uses([])) is None
    assert bound(made_uses(many(100)), asked=None) is None
    assert bound(made_uses(many(100)), asked=float("nan")) is None
    assert bound(made_uses(many(100, cpu_quality="unknown")), "cpus") is None


@pytest.mark.parametrize("change", [{"final": False}, {"state": "NODE_FAIL"}, {"state": "PREEMPTED"}, {"mem_at_least": True}])
def test_rows_that_tell_too_little_are_left_out(change: dict[str, Any]) -> None:
    assert bound(made_uses(many(100, **change))) is None


def test_a_new_user_is_judged_by_coarser_kinds() -> None:
    found = bound(made_uses(many(600)), user="eve", name="other")
    assert found is not None
    assert found.kind == "account"
    assert found.value >= found.used[2]


def test_killed_for_memory_needs_more() -> None:
    rows = many(400)
    rows += [{"user": "u2", "name": f"run_{i}", "state": "OUT_OF_MEMORY", "mem_peak_bytes": None, "mem_at_least": True} for i in range(2)]
    found = bound(made_uses(rows))
    assert found is not None
    assert found.needs_more
    assert found.value == 128 * GB
    assert found.retry is None
    more = bound(made_uses(rows), asked=200 * GB)
    assert more is not None
    assert not more.needs_more  # it asks for more already
    assert more.value >= 64 * GB


def test_an_old_time_out_keeps_the_limit() -> None:
    rows = many(600)
    late = [i for i, row in enumerate(rows) if row["user"] == "u2"][-20]
    rows[late] |= {"state": "TIMEOUT", "elapsed_s": 4 * HOUR}
    found = bound(made_uses(rows), "time")
    assert found is not None
    assert not found.needs_more
    assert found.value == 4 * HOUR


def test_a_new_level_drops_earlier_jobs() -> None:
    rows = many(600)
    own = [i for i, row in enumerate(rows) if row["user"] == "u2"]
    for i in own[-15:]:
        rows[i]["mem_peak_bytes"] = GB
    uses = made_uses(rows)
    found = bound(uses)
    assert found is not None
    assert found.n == 15
    assert found.used == (GB, GB, GB)
    assert found.changed_at == uses.rows["end"][own[-15]].as_py()


def test_gpu_memory_by_type() -> None:
    rows = many(600, gpu_mem_peak_bytes=10 * GB, gpu_mem_total_bytes=80 * GB, gpu_type="a100")
    rows += many(600, seed=2, gpu_mem_peak_bytes=75 * GB, gpu_mem_total_bytes=80 * GB, gpu_type="h100")
    found = bound(made_uses(rows), "gpu_memory", gpu_type="A100")
    assert found is not None
    assert found.used == (10 * GB, 10 * GB, 10 * GB)
    assert found.value < 40 * GB
    assert bound(made_uses(rows), "gpu_memory", gpu_type="h100").value > 70 * GB  # type: ignore[union-attr]


def test_risks_that_make_no_sense() -> None:
    for risk in (-0.1, 0.6):
        with pytest.raises(ValueError, match="risk"):
            sizes_of(made_uses([]), risk=risk)


def test_kind_keys_follow_the_rows() -> None:
    keys = sizes_of(made_uses([{"name": "fit_1"}, {"name": "fit_2", "user": None}])).kind_keys
    assert keys == [("ann", "fit", "lab", "main"), (None, "fit", "lab", "main")]


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), one=st.floats(0, 0.3), other=st.floats(0, 0.3), resource=st.sampled_from(["memory", "time", "cpus"]))
def test_less_risk_asks_for_no_less(seed: int, one: float, other: float, resource: Resource) -> None:
    uses = made_uses(many(400, seed=seed))
    careful, daring = (bound(uses, resource, risk=r) for r in sorted((one, other)))
    assert careful is not None
    assert daring is not None
    assert careful.value >= daring.value


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 10_000), user=st.sampled_from(["u0", "u3", "u5", "eve"]))
def test_without_risk_never_under_a_use_seen(seed: int, user: str) -> None:
    found = bound(made_uses(many(300, seed=seed)), risk=0.0, user=user)
    assert found is not None
    assert found.value >= found.used[2]


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), factor=st.sampled_from([0.25, 2.0, 64.0]))
def test_the_bound_scales_with_the_unit(seed: int, factor: float) -> None:
    rows = many(400, seed=seed)
    scaled = [r | {"mem_peak_bytes": r["mem_peak_bytes"] * factor, "mem_alloc_bytes": 64 * GB * factor} for r in rows]
    one, other = bound(made_uses(rows)), bound(made_uses(scaled), asked=64 * GB * factor)
    assert one is not None
    assert other is not None
    assert other.value == pytest.approx(one.value * factor)


@settings(max_examples=10, deadline=None)
@given(seed=st.integers(0, 10_000), wild=st.floats(0.1, 60))
def test_nothing_later_than_the_moment_counts(seed: int, wild: float) -> None:
    uses = made_uses(many(300, seed=seed))
    later = made_uses(many(40, seed=seed + 1, mem_peak_bytes=wild * GB), at=AT + timedelta(hours=81)).rows
    both = replace(uses, rows=pa.concat_tables([uses.rows, later]))
    assert bound(uses) == bound(both)


def test_trees_serve_where_there_are_many_jobs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("queuecast.models.sizing_chance.FEWEST", 1200)
    uses = made_uses(many(2000))
    found = {risk: bound(uses, risk=risk) for risk in (0.0, 0.01, 0.1)}
    values = [f.value for f in found.values() if f is not None]
    assert len(values) == 3
    assert values == sorted(values, reverse=True)
    assert 6 * GB < values[1] < 32 * GB
    assert found[0.01] == bound(uses)  # learned twice: the same


def test_hostile_names_change_nothing() -> None:
    rows = [r | {"name": "\x1b[31m'; DROP--" + "9" * 5000, "submit_line": "sbatch \x00 --wrap='"} for r in many(300)]
    found = bound(made_uses(rows), name="\x1b[31m'; DROP--" + "1" * 5000)
    assert found is not None
    assert np.isfinite(found.value)


def test_the_table_has_the_columns_that_are_read() -> None:
    assert made_uses([{}]).rows.schema == SCHEMA
