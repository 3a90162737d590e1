"""jobstats' summary in AdminComment: read where it is whole, a reason where it is not, never an error."""

from __future__ import annotations

import base64
import gzip
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.slurmtext.jobstats import MOST_JSON, MOST_TEXT, parse_jobstats

GIB = 1 << 30
TWO_GPUS: dict[str, Any] = {
    "total_time": 7200, "gpus": 2,
    "nodes": {"n01": {"used_memory": 12 * GIB, "total_memory": 64 * GIB, "cpus": 8, "total_time": 21000.5,
                      "gpu_used_memory": {"0": 9 * GIB, "1": 0}, "gpu_total_memory": {"0": 80 * GIB, "1": 80 * GIB},
                      "gpu_utilization": {"0": 90, "1": 0}}},
}


def packed(data: Any) -> str:
    raw = data if isinstance(data, bytes) else json.dumps(data).encode()
    return "JS1:" + base64.b64encode(gzip.compress(raw, mtime=0)).decode()


def test_a_summary_of_two_gpus_one_of_them_unused() -> None:
    found = parse_jobstats(packed(TWO_GPUS))
    assert found.why is None
    assert found.stats is not None
    assert (found.stats.total_time, found.stats.gpus) == (7200.0, 2)
    numbers = found.stats.numbers()
    assert (numbers["gpus_seen"], numbers["gpus_used"], numbers["gpu_util_mean"]) == (2.0, 1.0, 0.45)
    assert (numbers["cpu_s"], numbers["mem_peak_bytes"]) == (21000.5, 12 * GIB)
    assert (numbers["gpu_mem_peak_bytes"], numbers["gpu_mem_total_bytes"]) == (9 * GIB, 80 * GIB)


def test_memory_of_nodes_is_summed_only_if_all_tell() -> None:
    node = TWO_GPUS["nodes"]["n01"]
    both = parse_jobstats(packed({"nodes": {"a": node, "b": node}})).stats
    assert both is not None
    assert both.numbers()["mem_peak_bytes"] == 24 * GIB
    one = parse_jobstats(packed({"nodes": {"a": node, "b": {"cpus": 8, "total_memory": 0}}})).stats
    assert one is not None
    assert one.numbers()["mem_peak_bytes"] is None
    assert one.numbers()["cpu_s"] is None


def test_missing_and_zero_are_told_apart() -> None:
    stats = parse_jobstats(packed({"nodes": {"a": {"gpu_utilization": {"0": 0}}}})).stats
    assert stats is not None
    assert (stats.numbers()["gpus_used"], stats.numbers()["gpu_util_mean"]) == (0.0, 0.0)
    stats = parse_jobstats(packed({"nodes": {"a": {"gpu_used_memory": {"0": 5}}}})).stats
    assert stats is not None
    assert (stats.numbers()["gpus_used"], stats.numbers()["gpu_util_mean"]) == (None, None)


@pytest.mark.parametrize(("text", "why"), [
    (None, "absent"), ("", "absent"), ("moved by admin", "absent"), ("'{\"arrayTaskId\":4294967294", "absent"),
    ("JS1:Short", "short"), ("JS1:None", "none"), ("JS1:", "truncated"),
    (packed(TWO_GPUS)[:-10], "truncated"), (packed(TWO_GPUS)[:40], "truncated"), ("JS1:not base64 at all!", "not_base64"),
    ("JS1:" + base64.b64encode(b"plain text").decode(), "not_gzip"), (packed(b"\xff\xfe"), "not_json"), (packed(b"{"), "not_json"),
    (packed(b"[" * 5000), "not_json"), (packed([1, 2]), "not_jobstats"), (packed({"jobs": []}), "not_jobstats"),
    (packed({"nodes": {}}), "not_jobstats"), (packed({"nodes": {"a": 3}}), "not_jobstats"), (packed(b"9" * 5000), "not_json"),
])
def test_whatever_else_it_is_gives_a_reason(text: str | None, why: str) -> None:
    found = parse_jobstats(text)
    assert (found.stats, found.why) == (None, why)


def test_little_text_that_becomes_much_is_refused() -> None:
    bomb = packed(b"[" + b" " * (50 * MOST_JSON))
    assert len(bomb) < MOST_TEXT
    assert parse_jobstats(bomb).why == "too_large"
    assert parse_jobstats("JS1:" + "A" * (MOST_TEXT + 4)).why == "too_large"


@pytest.mark.parametrize("value", [-1, 1e400, "12", None, True, [], {}, float("nan")])
def test_odd_numbers_are_unknown(value: Any) -> None:
    node = {"used_memory": value, "total_time": value, "gpu_utilization": {"0": value}, "gpu_used_memory": {"0": value}}
    stats = parse_jobstats(packed({"total_time": value, "gpus": value, "nodes": {"a": node}})).stats
    assert stats is not None
    assert set(stats.numbers().values()) == {None}


plain = st.recursive(st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
                     lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3), max_leaves=8)


@given(st.text(max_size=80))
def test_any_text_gives_an_answer(text: str) -> None:
    for comment in (text, f"JS1:{text}"):
        found = parse_jobstats(comment)
        assert (found.stats is None) == (found.why is not None)


@given(st.dictionaries(st.sampled_from(("nodes", "gpus", "total_time", "x")), plain, max_size=4),
       st.dictionaries(st.sampled_from(("used_memory", "total_time", "gpu_utilization", "gpu_used_memory", "gpu_total_memory")), plain))
@settings(deadline=None)
def test_any_json_gives_numbers_or_a_reason(data: dict[str, Any], node: dict[str, Any]) -> None:
    for whole in (data, data | {"nodes": {"a": node}}):
        found = parse_jobstats(packed(whole))
        if found.stats is not None:
            for value in found.stats.numbers().values():
                assert value is None or value >= 0


@given(st.data())
def test_a_cut_summary_is_never_half_read(data: st.DataObject) -> None:
    text = packed(TWO_GPUS)
    cut = data.draw(st.integers(4, len(text) - 1))
    assert parse_jobstats(text[:cut]).stats is None
