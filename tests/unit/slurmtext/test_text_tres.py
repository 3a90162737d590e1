"""TRES, GRES and the counting of GPUs."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.gres import Gpus, Gres, Mig, count_indices, gpus_of_gres, mig_of_type, parse_gres
from queuecast.slurmtext.tres import format_tres, gpus_of_tres, parse_tres, parse_tres_limits, parse_tres_usage

GIB = 1 << 30


@pytest.mark.parametrize(("text", "total", "types"), [
    pytest.param("billing=10,cpu=10,gres/gpu:a100=1,gres/gpu=1,mem=100G,node=1", 1, (("a100", 1),), id="B01-once"),
    pytest.param("billing=1,cpu=1,gres/gpu:p100=1,mem=125G,node=1", 1, (("p100", 1),), id="B02-typed-only"),
    pytest.param("gres/gpu=3,gres/gpu:a100=2", 3, (("a100", 2),), id="B04-generic-larger"),
    pytest.param("cpu=4,mem=32G,node=1,gres/gpu=1", 1, (), id="B07-generic-only"),
    pytest.param("cpu=1,gres/gpu:a100_3g.20gb=1,gres/gpu=1", 1, (("a100_3g.20gb", 1),), id="B13-mig"),
    pytest.param("gres/gpu:NVlink_A100_40GB=4", 4, (("nvlink_a100_40gb", 4),), id="B14-case"),
    pytest.param("cpu=1,gres/gpumem=36266M,gres/gpuutil=100", 0, (), id="B16-not-gpus"),
    pytest.param("gres/gpu:h100=0,gres/gpu=0", 0, (), id="B32-zero"),
    pytest.param("gres/gpu:h100=0", 0, (), id="B32-typed-zero"),
    pytest.param("billing=30,cpu=12,gres/gpu:a100=1,gres/gpu:v100=1,gres/gpu=2,mem=8G,node=2", 2, (("a100", 1), ("v100", 1)),
                 id="real-two-types"),
    pytest.param("cpu=2,gres/shard=8,gres/mps=100", 0, (), id="shards-are-not-gpus"),
    pytest.param("cpu=8,mem=15867M,node=1,billing=8", 0, (), id="B08-no-gpu"),
])
def test_gpus_of_tres(text: str, total: int, types: tuple[tuple[str, int], ...]) -> None:
    assert gpus_of_tres(text) == Gpus(total, types)


def test_b05_h19_untracked_gpus_are_unknown_not_zero() -> None:
    assert gpus_of_tres("cpu=1,mem=512M,node=1,billing=1", tracked=False) == Gpus(None)
    assert gpus_of_tres("cpu=1,gres/gpu=2", tracked=False) == Gpus(2)


@pytest.mark.parametrize("text", ["", "(null)", "N/A", "Unknown"])
def test_nothing_printed_tells_nothing(text: str) -> None:
    assert gpus_of_tres(text) == Gpus(None)
    assert parse_tres(text) == {}
    assert parse_tres_usage(text) == {}
    assert parse_tres_limits(text) == {}


@pytest.mark.parametrize(("gpus", "expected"), [
    (Gpus(2, (("a100", 2),)), "a100"), (Gpus(2, (("a100", 1), ("v100", 1))), "mixed"), (Gpus(3, (("a100", 2),)), "mixed"),
    (Gpus(2), None), (Gpus(0), None), (Gpus(None), None),
])
def test_type(gpus: Gpus, expected: str | None) -> None:
    assert gpus.type == expected


@pytest.mark.parametrize("text", [
    pytest.param("billing=40,cpu=40,mem=10G,node=1", id="B25-sacct-order"),
    pytest.param("cpu=40,mem=10G,node=1,billing=40", id="B25-squeue-order"),
])
def test_order_does_not_matter(text: str) -> None:
    assert parse_tres(text) == {"billing": 40, "cpu": 40, "mem": 10 * GIB, "node": 1}


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("mem=2.50G", {"mem": 5 * GIB // 2}, id="B25-decimal"),
    pytest.param("mem=1024M,node=1", {"mem": GIB, "node": 1}, id="noconvert"),
    pytest.param("mem=1000", {"mem": 1000 << 20}, id="bare-mem-is-MiB"),
    pytest.param("cpu=1,gres/bandwidth=0", {"cpu": 1, "gres/bandwidth": None}, id="B17-no-consume"),
    pytest.param("cpu=1,gres/bandwidth:lustre=0", {"cpu": 1, "gres/bandwidth:lustre": None}, id="B17-no-consume-typed"),
    pytest.param("cpu=1,gres/gpu=0", {"cpu": 1, "gres/gpu": 0}, id="B32-zero-gpus"),
    pytest.param("cpu=1,energy=18446744073709551614", {"cpu": 1}, id="B26-sentinel"),
    pytest.param("cpu=1,energy=-2,fs/disk=NONE", {"cpu": 1}, id="B26-other-sentinels"),
    pytest.param("license/ansys=2", {"license/ansys": 2}, id="licence"),
    pytest.param("gres/gpu=1.50K", {"gres/gpu": 1536}, id="count-with-unit"),
    pytest.param("bb/datawarp=1T", {"bb/datawarp": 1 << 40}, id="burst-buffer"),
])
def test_amounts(text: str, expected: dict[str, int | None]) -> None:
    assert parse_tres(text) == expected


@pytest.mark.parametrize("text", ["cpu", "=4", "cpu=x", "cpu=1.5", "cpu=4,,mem=1G", "gpu:a100:2(IDX:0,3)", "mem=12Q", "cpu=N(0)",
                                  "cpu=00:25:00", "8000M"])
def test_amounts_reject(text: str) -> None:
    with pytest.raises(ParseError):
        parse_tres(text)


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("cpu=00:25:00,energy=0,mem=3396K", {"cpu": 1500.0, "energy": 0.0, "mem": 3396.0 * 1024}, id="E08-cpu-time"),
    pytest.param("gres/gpumem=36266M,gres/gpuutil=100", {"gres/gpumem": 38027657216.0, "gres/gpuutil": 100.0},
                 id="E10-E11-average"),
    pytest.param("gres/gpumem=72532M,gres/gpuutil=200", {"gres/gpumem": 76055314432.0, "gres/gpuutil": 200.0}, id="E10-total"),
    pytest.param("gres/gpumem=40777023488", {"gres/gpumem": 40777023488.0}, id="E11-noconvert"),
    pytest.param("gres/gpuutil=0", {"gres/gpuutil": 0.0}, id="E13-zero-is-measured"),
    pytest.param("mem=1921024,vmem=77955072", {"mem": 1921024.0, "vmem": 77955072.0}, id="bare-is-bytes"),
    pytest.param("energy=18446744073709551614,pages=5", {"pages": 5.0}, id="B26-sentinel"),
    pytest.param("cpu=1-02:00:00,fs/disk=0.5M", {"cpu": 93600.0, "fs/disk": 524288.0}, id="days"),
    pytest.param("mem=16?", {"mem": None}, id="B23-unknown-unit"),
])
def test_usage(text: str, expected: dict[str, float | None]) -> None:
    assert parse_tres_usage(text) == expected


@pytest.mark.parametrize("text", ["cpu=cpu-01,mem=cpu-01", "energy=x", "mem"])
def test_usage_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_tres_usage(text)


def test_limits_with_their_usage() -> None:
    assert parse_tres_limits("cpu=N(30),mem=300000(4096),gres/gpu:a100=8(6),energy=N(18446744073709551614)") == {
        "cpu": (None, 30), "mem": (300000 << 20, 4096 << 20), "gres/gpu:a100": (8, 6), "energy": (None, None)}
    with pytest.raises(ParseError):
        parse_tres_limits("cpu=30")


@pytest.mark.parametrize(("text", "total", "types"), [
    pytest.param("gpu:8(S:0-3)", 8, (), id="B10-sockets"),
    pytest.param("gpu:a100:3(IDX:0-1,3)", 3, (("a100", 3),), id="B10-indices"),
    pytest.param("gpu:a100:0(IDX:N/A)", 0, (), id="B10-none-used"),
    pytest.param("gpu:h200:0(IDX:)", 0, (), id="B10-blank-indices"),
    pytest.param("gpu:(null):0(IDX:N/A)", 0, (), id="B10-null-type"),
    pytest.param("gpu:(null):2(IDX:0-1)", 2, (), id="B10-null-type-in-use"),
    pytest.param("gpu:0", 0, (), id="B10-zero"),
    pytest.param("(null)", 0, (), id="B10-B32-none"),
    pytest.param("", 0, (), id="blank"),
    pytest.param("gpu(CNT:2)", 2, (), id="B10-cnt"),
    pytest.param("gpu(IDX:0,2-3)", 3, (), id="indices-without-count"),
    pytest.param("gres:gpu", 1, (), id="B10-no-count"),
    pytest.param("gpu:a100:2(IDX:0,3),shard:a100:0(IDX:N/A)", 2, (("a100", 2),), id="B11-commas-inside"),
    pytest.param("gpu:nvidia_a100_1g.5gb:21(S:0-1)", 21, (("nvidia_a100_1g.5gb", 21),), id="B13-mig"),
    pytest.param("gpu:NVlink_A100_40GB:4", 4, (("nvlink_a100_40gb", 4),), id="B14-case"),
    pytest.param("gpu:tesla_v100-sxm3-32gb:16", 16, (("tesla_v100-sxm3-32gb", 16),), id="B14-hyphens"),
    pytest.param("gres:third:sub:17,gres:gpu:v100-32g:2,gres:pfsdir:ess", 2, (("v100-32g", 2),), id="B16-lookalikes"),
    pytest.param("tmp:844G", 0, (), id="B16-tmp"),
    pytest.param("gpu:titanrtx:0", 0, (), id="B32-zero-request"),
    pytest.param("gpu:12", 12, (), id="B29-request"),
    pytest.param("gres/gpu:4", 4, (), id="B05-slash"),
    pytest.param("gpu:h100:4(IDX:0-3)", 4, (("h100", 4),), id="B05-gres-detail"),
    pytest.param("gres/gpu:a100=2", 2, (("a100", 2),), id="equals"),
    pytest.param("gpu:h100:8", 8, (("h100", 8),), id="H19-capacity"),
    pytest.param("gpu:a100:4(S:0),gpu:v100:2(S:1)", 6, (("a100", 4), ("v100", 2)), id="two-types"),
    pytest.param("gpu:1080:2", 2, (("1080", 2),), id="type-of-digits"),
    pytest.param("shard:a100:8(2/4,6/8),gpu:a100:2(IDX:0-1)", 2, (("a100", 2),), id="B12-shards-per-gpu"),
])
def test_gpus_of_gres(text: str, total: int, types: tuple[tuple[str, int], ...]) -> None:
    assert gpus_of_gres(text) == Gpus(total, types)


def test_b07_not_available_is_unknown() -> None:
    assert gpus_of_gres("N/A") == Gpus(None)


def test_entries_keep_what_was_printed() -> None:
    assert parse_gres("gpu:A100:3(IDX:0-1,3)(S:0)") == (Gres("gpu", "A100", 3, "0-1,3", "0"),)
    assert parse_gres("bandwidth:lustre:no_consume:4G") == (Gres("bandwidth", "lustre", None),)
    assert parse_gres("tmp:844G") == (Gres("tmp", None, 844 * GIB),)
    assert parse_gres("gpu:(null):0(IDX:N/A)") == (Gres("gpu", None, 0),)


@pytest.mark.parametrize("text", ["gpu:a:b:c", "gpu,,shard", ":2", "gpu:a100:2(IDX:0", "two gpus", "gpu:a 100:2"])
def test_gres_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_gres(text)


@pytest.mark.parametrize(("kind", "expected"), [
    pytest.param("nvidia_a100_1g.5gb", Mig("nvidia_a100", 1, 5), id="B13-vendor"),
    pytest.param("a100_3g.20gb", Mig("a100", 3, 20), id="B13-plain"),
    pytest.param("1g.10gb", Mig("", 1, 10), id="profile-alone"),
    pytest.param("a100", None, id="whole"), pytest.param("v100-32g", None, id="memory-in-the-name"),
    pytest.param("tesla_v100-sxm3-32gb", None, id="memory-in-gb"),
])
def test_mig(kind: str, expected: Mig | None) -> None:
    assert mig_of_type(kind) == expected


@pytest.mark.parametrize(("text", "count"), [("0-1,3", 3), ("5", 1), ("", None), ("N/A", None), ("0-", None)])
def test_indices(text: str, count: int | None) -> None:
    assert count_indices(text) == count


_KEYS = st.sampled_from(["cpu", "node", "billing", "gres/gpu", "gres/gpu:a100", "gres/gpu:a100_3g.20gb", "license/x"])


@settings(deadline=None)
@given(st.dictionaries(_KEYS, st.integers(0, 10**15)), st.none() | st.integers(1, 10**9))
def test_round_trip(amounts: dict[str, int], mem_mib: int | None) -> None:
    full: dict[str, int | None] = dict(amounts)
    if mem_mib is not None:
        full["mem"] = mem_mib << 20
    assert parse_tres(format_tres(full)) == full


def test_mem_without_a_notation_is_refused() -> None:
    with pytest.raises(ValueError, match="mem"):
        format_tres({"mem": 1000})


_TYPES = st.from_regex(r"[a-z][a-z0-9_.-]{0,12}", fullmatch=True).filter(lambda t: t != "no_consume")


@settings(deadline=None)
@given(st.dictionaries(_TYPES, st.integers(1, 64), min_size=1, max_size=4), st.integers(0, 3))
def test_generic_and_typed_agree_however_they_are_printed(types: dict[str, int], untracked: int) -> None:
    typed = [f"gres/gpu:{kind}={count}" for kind, count in types.items()]
    total = sum(types.values())
    assert gpus_of_tres(",".join(typed)).total == total
    both = gpus_of_tres(",".join([*typed, f"gres/gpu={total + untracked}", "cpu=1"]))
    assert both == Gpus(total + untracked, tuple(sorted(types.items())))
    gres = ",".join(f"gpu:{kind}:{count}(IDX:0,2)" for kind, count in types.items())
    assert gpus_of_gres(gres) == Gpus(total, tuple(sorted(types.items())))
