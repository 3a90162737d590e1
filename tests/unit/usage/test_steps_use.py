"""What Slurm's accounting says of the steps, read right."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from usage_support import GIB, capture, job, step, use

from queuecast.usage.steps import likelier, usage_columns

CONFIG = "Configuration data as of 2026-06-13T12:00:00\nSLURM_VERSION           = {}\nClusterName             = toy\n"


def test_a_share_that_cannot_be_is_flagged_and_shown(tmp_path: Path) -> None:
    """41 CPU hours on two CPUs in 27 minutes: shown as it is, never clipped."""
    found = use(tmp_path, job(AllocCPUS="2", AllocTRES="cpu=2,mem=8G,node=1", ElapsedRaw="1600", TotalCPU="1-17:00:00"))
    assert found["cpu_quality"] == "implausible"
    assert found["cpu_share"] == pytest.approx(147600 / 3200)


def test_a_little_over_one_is_plausible(tmp_path: Path) -> None:
    assert use(tmp_path, job(TotalCPU="04:40:00"))["cpu_quality"] == "ok"


def test_no_run_time_has_no_share(tmp_path: Path) -> None:
    found = use(tmp_path, job(State="FAILED", ElapsedRaw="0", End="2026-06-01T09:00:00", TotalCPU="00:00.002", AllocCPUS="8"))
    assert found["cpu_share"] is None
    assert found["cpu_quality"] == "unknown"


def test_memory_of_a_step_is_the_sum_over_its_tasks(tmp_path: Path) -> None:
    """Eight tasks of 1.9 GiB each: Tot tells 14.9 GiB, MaxRSS one task's peak."""
    found = use(tmp_path, job(), step("0", NTasks="8", MaxRSS="1990000K", TRESUsageInTot="cpu=01:00:00,mem=15600000K"))
    assert found["mem_peak_bytes"] == 15_600_000 * 1024
    assert (found["mem_basis"], found["mem_at_least"]) == ("tasks", False)


def test_mean_times_tasks_where_the_sum_is_not_told(tmp_path: Path) -> None:
    found = use(tmp_path, job(), step("0", NTasks="8", MaxRSS="1990000K", AveRSS="1900000K"))
    assert found["mem_peak_bytes"] == 8 * 1_900_000 * 1024
    assert found["mem_basis"] == "tasks"


def test_one_task_of_several_is_a_lower_bound(tmp_path: Path) -> None:
    """Tasks times MaxRSS would be an upper bound: it is never reported as what was used."""
    found = use(tmp_path, job(), step("0", NTasks="8", MaxRSS="2000000K"))
    assert found["mem_peak_bytes"] == 2_000_000 * 1024
    assert (found["mem_basis"], found["mem_at_least"]) == ("task", True)


def steps_one_after_the_other() -> list[dict[str, str]]:
    times = [("2026-06-01T09:00:00", "2026-06-01T09:20:00"), ("2026-06-01T09:20:00", "2026-06-01T09:40:00")]
    return [step(str(i), Start=a, End=b, MaxRSS=f"{39_000_000 + i}K") for i, (a, b) in enumerate(times)]


def test_peak_is_the_highest_of_steps_in_turn(tmp_path: Path) -> None:
    found = use(tmp_path, job(ReqMem="655G"), step("batch", MaxRSS="6000K"), step("extern", MaxRSS="1300K"), *steps_one_after_the_other())
    assert found["mem_peak_bytes"] == 39_000_001 * 1024
    assert not found["mem_at_least"]


def test_steps_side_by_side_make_it_a_lower_bound(tmp_path: Path) -> None:
    found = use(tmp_path, job(), step("0", MaxRSS="39000000K"), step("1", MaxRSS="39000000K"))
    assert found["mem_peak_bytes"] == 39_000_000 * 1024
    assert found["mem_at_least"]


def test_a_job_killed_for_memory_used_at_least_that(tmp_path: Path) -> None:
    found = use(tmp_path, job(State="OUT_OF_MEMORY"), step("batch", State="OUT_OF_MEMORY", MaxRSS="16G"))
    assert found["mem_at_least"]
    assert found["interrupted"]


def test_zero_of_the_external_step_hides_nothing_and_is_no_use(tmp_path: Path) -> None:
    alone = use(tmp_path / "a", job(), step("extern", MaxRSS="0"))
    assert alone["mem_peak_bytes"] is None
    assert use(tmp_path / "b", job(), step("extern", MaxRSS="0"), step("batch", MaxRSS="512M"))["mem_peak_bytes"] == 512 << 20


def test_missing_memory_is_null_not_zero(tmp_path: Path) -> None:
    found = use(tmp_path, job(), step("batch"))
    assert (found["mem_peak_bytes"], found["mem_basis"]) == (None, None)


def test_memory_above_the_request_is_told_as_it_is(tmp_path: Path) -> None:
    found = use(tmp_path, job(AllocTRES="cpu=4,mem=1G,node=1", ReqMem="1G"), step("batch", MaxRSS="1258291K"))
    assert found["mem_peak_bytes"] > found["mem_alloc_bytes"] == GIB


def test_cpu_time_of_the_usage_where_totalcpu_is_blank_or_zero(tmp_path: Path) -> None:
    """Some sites' TotalCPU is 00:00:00 for every step; TRESUsageInTot has it."""
    found = use(
        tmp_path,
        job(ElapsedRaw="3000", AllocCPUS="1"),
        step("batch", ElapsedRaw="3000", AllocCPUS="1", MaxRSS="1G", TRESUsageInTot="cpu=00:25:00,mem=1G"),
    )
    assert found["cpu_s"] == 1500.0
    assert found["cpu_share"] == 0.5


def test_zero_where_nothing_is_gathered_is_unknown(tmp_path: Path) -> None:
    """Without an accounting plugin all steps print 00:00:00 and no memory: that is not a job that did nothing."""
    found = use(tmp_path, job(), step("batch"), step("extern"))
    assert (found["cpu_s"], found["cpu_quality"]) == (None, "unknown")


def test_zero_that_was_measured_is_zero(tmp_path: Path) -> None:
    found = use(tmp_path, job(), step("batch", MaxRSS="2000K", TRESUsageInTot="cpu=00:00:00,mem=2000K"))
    assert (found["cpu_s"], found["cpu_share"], found["cpu_quality"]) == (0.0, 0.0, "ok")


def test_allocated_cpu_time_is_not_used_cpu_time(tmp_path: Path) -> None:
    found = use(tmp_path, job(TotalCPU="01:00:00"))
    assert (found["cpu_s"], found["cpu_share"]) == (3600.0, 0.25)


@pytest.mark.parametrize("state", ["TIMEOUT", "CANCELLED by 1001", "PREEMPTED", "NODE_FAIL"])
def test_cpu_time_of_killed_jobs_is_too_low(tmp_path: Path, state: str) -> None:
    found = use(tmp_path, job(State=state, AllocCPUS="32", AllocTRES="cpu=32,mem=16G,node=1", TotalCPU="00:06:00"))
    assert (found["cpu_quality"], found["interrupted"]) == ("too_low", True)


def test_work_outside_the_steps_is_said(tmp_path: Path) -> None:
    """20 nodes and only the batch shell: 19 idle nodes, or ranks that ssh started."""
    many = job(
        AllocNodes="20",
        AllocCPUS="720",
        NodeList="n[01-20]",
        ElapsedRaw="1088199",
        TotalCPU="451-06:00:24",
        End="2026-06-13T23:16:39",
        AllocTRES="cpu=720,mem=100G,node=20",
    )
    shell = step("batch", AllocNodes="1", AllocCPUS="36", ElapsedRaw="1088199", TotalCPU="451-06:00:24", End="2026-06-13T23:16:39")
    late = use(tmp_path, many, shell, at=datetime(2026, 6, 14, tzinfo=UTC))
    assert late["cpu_share"] == pytest.approx(0.0498, abs=0.0001)
    assert late["cpu_quality"] == "few_steps"


def test_steps_on_all_nodes_are_enough(tmp_path: Path) -> None:
    found = use(
        tmp_path,
        job(AllocNodes="2", NodeList="n[01-02]", TotalCPU="01:00:00"),
        step("batch", TotalCPU="00:00:01"),
        step("0", AllocNodes="2", NTasks="2", TotalCPU="00:59:59"),
    )
    assert found["cpu_quality"] == "ok"


def test_energy_is_joules_and_zero_is_no_meter(tmp_path: Path) -> None:
    assert use(tmp_path / "a", job(), step("batch"))["energy_joules"] is None
    found = use(
        tmp_path / "b",
        job(),
        step("batch", ConsumedEnergyRaw="900"),
        step("0", ConsumedEnergyRaw="400"),
        step("1", ConsumedEnergyRaw="600"),
    )
    assert found["energy_joules"] == 1000.0


GPU2 = {"AllocTRES": "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1"}


def test_gpu_figures_of_slurm_are_peaks_of_one_gpu(tmp_path: Path) -> None:
    """Two tasks with a GPU each, both once at 100 %: Tot says 200, which is neither 200 % nor a mean."""
    found = use(
        tmp_path,
        job(**GPU2),
        step(
            "0",
            NTasks="2",
            **GPU2,
            TRESUsageInTot="cpu=00:10:00,gres/gpumem=72532M,gres/gpuutil=200",
            TRESUsageInMax="cpu=00:05:00,gres/gpumem=36266M,gres/gpuutil=100",
        ),
    )
    assert (found["gpu_util_mean"], found["gpu_util_peak"], found["gpu_basis"]) == (None, 1.0, "slurm")
    assert found["gpu_mem_peak_bytes"] == 38_027_657_216


@pytest.mark.parametrize(("text", "expected"), [("36266M", 38_027_657_216), ("40777023488", 40_777_023_488), ("35.50G", 38_117_834_752)])
def test_gpu_memory_counts_in_1024(text: str, expected: int) -> None:
    columns = usage_columns(pa.chunked_array([[f"cpu=00:00:01,gres/gpumem={text},gres/gpuutil=3,mem=1K"]]))
    assert columns["gpumem"][0] == expected
    assert (columns["gpuutil"][0], columns["mem"][0], columns["cpu"][0]) == (3.0, 1024.0, 1.0)


@pytest.mark.parametrize(
    ("version", "printed", "peak"),
    [
        pytest.param("23.11.10", "90", 0.9, id="until 24.05.0 one GPU's"),
        pytest.param("24.05.1", "90", 0.45, id="from 24.05.1 the sum over the task's GPUs"),
        pytest.param("23.11.10", "180", 0.9, id="above 100 it is a sum in any release"),
    ],
)
def test_gpu_peak_of_a_task_with_several_gpus(tmp_path: Path, version: str, printed: str, peak: float) -> None:
    use_ = f"gres/gpuutil={printed},gres/gpumem=1000M"
    found = use(
        tmp_path,
        job(**GPU2),
        step("0", **GPU2, TRESUsageInTot=use_, TRESUsageInMax=use_),
        also=(capture("config", CONFIG.format(version)),),
    )
    assert found["gpu_util_peak"] == pytest.approx(peak)


def test_a_gpu_that_never_computed_is_zero_not_unknown(tmp_path: Path) -> None:
    usage = "cpu=00:10:00,gres/gpumem=0,gres/gpuutil=0,mem=1G"
    found = use(tmp_path, job(**GPU2), step("0", **GPU2, TRESUsageInTot=usage, TRESUsageInMax=usage))
    assert (found["gpus_used"], found["gpus_seen"], found["gpu_util_peak"]) == (0.0, 2.0, 0.0)


def test_no_figure_of_a_gpu_is_unknown(tmp_path: Path) -> None:
    found = use(tmp_path, job(**GPU2), step("0", **GPU2, MaxRSS="1G"))
    assert [found[c] for c in ("gpus_used", "gpu_util_mean", "gpu_util_peak", "gpu_mem_peak_bytes", "gpu_basis")] == [None] * 5


def test_zero_of_a_slice_is_not_a_reading(tmp_path: Path) -> None:
    mig = {"AllocTRES": "cpu=4,gres/gpu:a100_1g.5gb=1,gres/gpu=1,mem=16G,node=1"}
    usage = "gres/gpumem=0,gres/gpuutil=0"
    found = use(tmp_path, job(**mig), step("0", **mig, TRESUsageInTot=usage, TRESUsageInMax=usage))
    assert (found["gpus_used"], found["gpu_util_peak"], found["gpu_basis"]) == (None, None, None)


def test_running_jobs_are_never_final(tmp_path: Path) -> None:
    found = use(tmp_path, job(State="RUNNING", End="Unknown", TotalCPU="00:10:00"), step("batch", State="RUNNING", End="Unknown"))
    assert (found["state"], found["end"], found["final"], found["cpu_quality"]) == ("RUNNING", None, False, "running")
    assert found["cpu_share"] is None


def test_some_shape_as_of_a_real_site(tmp_path: Path) -> None:
    """A typed GPU, usage of the batch step with every key, TotalCPU in minutes."""
    tres = {"AllocTRES": "billing=8,cpu=8,gres/gpu:v100=1,gres/gpu=1,mem=10G,node=1", "AllocCPUS": "8"}
    usage = "cpu=00:22:41,energy=0,fs/disk=9613409101,gres/gpumem=2398M,gres/gpuutil=31,mem=1733784K,pages=11,vmem=9114316K"
    found = use(
        tmp_path,
        job(**tres, TotalCPU="23:08.358"),
        step("batch", **tres, TotalCPU="23:08.355", MaxRSS="1733784K", TRESUsageInTot=usage, TRESUsageInMax=usage),
        step("extern", **tres, TotalCPU="00:00.002", MaxRSS="904K"),
    )
    assert found["cpu_s"] == pytest.approx(1388.358, abs=0.01)
    assert found["mem_peak_bytes"] == 1_733_784 * 1024
    assert (found["gpu_util_peak"], found["gpu_mem_peak_bytes"]) == (0.31, 2398 << 20)
    assert (found["gpus_alloc"], found["gpu_type"]) == (1.0, "v100")


@given(st.lists(st.text(alphabet="cpumegrs/til=,0123456789.:KMG-", max_size=60), max_size=5))
@settings(max_examples=200, deadline=None)
def test_any_text_of_usage_gives_numbers_or_nothing(texts: list[str]) -> None:
    for values in usage_columns(pa.chunked_array([pa.array(texts, pa.string())])).values():
        assert len(values) == len(texts)
        assert not (values < 0).any()


amounts = st.one_of(st.just(float("nan")), st.floats(0, 1e7))


@given(amounts, amounts, st.floats(0, 1e6))
def test_the_likelier_of_two_counts_is_one_of_them(first: float, second: float, room: float) -> None:
    (value,) = likelier(np.array([first]), np.array([second]), np.array([room]))
    known = [v for v in (first, second) if v == v]
    assert (value in known) if known else value != value
    if len(known) == 2 and max(known) <= 1.2 * room:
        assert value == max(known)
