"""jobstats' comments in the table of uses, and who asked for the memory."""

from __future__ import annotations

import base64
import gzip
import json
from datetime import timedelta
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from usage_support import GIB, TAKEN, capture, job, lake_of, put, use, uses

from queuecast.usage.asked import asks_for_memory
from queuecast.usage.uses import SCHEMA

NODE = {
    "used_memory": 3 * GIB,
    "total_memory": 16 * GIB,
    "cpus": 4,
    "total_time": 7200.0,
    "gpu_used_memory": {"0": 5 * GIB, "1": 0},
    "gpu_total_memory": {"0": 40 * GIB, "1": 40 * GIB},
    "gpu_utilization": {"0": 80.0, "1": 0},
}
COMMENT = "JS1:" + base64.b64encode(gzip.compress(json.dumps({"gpus": 2, "total_time": 3600, "nodes": {"n01": NODE}}).encode())).decode()
GPUS = {"AllocTRES": "cpu=4,gres/gpu:a100=2,gres/gpu=2,mem=16G,node=1"}


def test_a_summary_in_the_comment_is_used(tmp_path: Path) -> None:
    found = use(tmp_path, job(AdminComment=COMMENT, TotalCPU="00:01:00", **GPUS))
    assert (found["cpu_s"], found["mem_peak_bytes"], found["mem_basis"]) == (7200.0, 3 * GIB, "sampled")
    assert (found["gpu_basis"], found["gpu_util_mean"], found["gpus_used"], found["gpus_seen"]) == ("jobstats", 0.4, 1.0, 2.0)
    assert found["gpu_mem_peak_bytes"] == 5 * GIB
    assert not found["generated"]


@pytest.mark.parametrize("comment", [COMMENT[:-30], "JS1:Short", "JS1:None", "JS1:", "drained by root", '{"arrayTaskId":42949672'])
def test_a_comment_without_one_leaves_the_row_as_it_is(tmp_path: Path, comment: str) -> None:
    found = use(tmp_path, job(AdminComment=comment, TotalCPU="01:00:00", **GPUS))
    assert (found["cpu_s"], found["mem_peak_bytes"], found["gpu_util_mean"], found["gpu_basis"]) == (3600.0, None, None, None)


def test_no_jobs_give_an_empty_table(tmp_path: Path) -> None:
    lake = lake_of(tmp_path, job(State="PENDING", Start="Unknown", End="Unknown", NodeList="None assigned", AllocTRES=""))
    assert uses(lake) == []
    put(lake, "gpu_samples", [])


def test_the_columns_are_those_promised(tmp_path: Path) -> None:
    assert list(use(tmp_path, job())) == SCHEMA.names


def test_limit_and_run_time(tmp_path: Path) -> None:
    found = use(tmp_path, job())
    assert (found["elapsed_s"], found["limit_s"]) == (3600.0, 7200.0)


@pytest.mark.parametrize(
    ("line", "asks"),
    [
        ("sbatch --mem=16G job.sh", True),
        ("sbatch --mem 16G job.sh", True),
        ("sbatch -n 4 --mem-per-cpu=2G job.sh", True),
        ("srun -n4 --mem-per-gpu 8G ./a.out", True),
        ("sbatch job.sh", False),
        ("sbatch -c 8 job.sh --mem 5", False),
        ("sbatch --parsable job.sh --mem=9G", False),
        ("sbatch --mem-bind=local job.sh", False),
        ("sbatch -J x --wrap python train.py --mem 9G", False),
        ("sbatch --wrap='x --mem=4'", False),
        ("sbatch --exclusive job.sh --mem=3G", False),
        ("", False),
        ("sbatch -J 'it --mem=4G", True),
        ("salloc --mem=0", True),
    ],
)
def test_memory_in_the_command_line(line: str, asks: bool) -> None:
    assert asks_for_memory(line) is asks


@given(st.text(max_size=80))
def test_any_command_line_is_answered(line: str) -> None:
    assert asks_for_memory(line) in (True, False)


PARTITION = (
    "PartitionName=gpu\n   AllowGroups=ALL AllowAccounts=ALL AllowQos=ALL\n   AllocNodes=ALL Default=YES QoS=N/A\n"
    "   MaxNodes=UNLIMITED MaxTime=UNLIMITED MinNodes=0\n   Nodes=n01\n   State=UP TotalCPUs=64 TotalNodes=1\n   {}\n"
)
CONFIG = "Configuration data as of 2026-06-13T12:00:00\nDefMemPerCPU            = {}\nClusterName             = toy\n"


@pytest.mark.parametrize(
    ("partition", "config", "memory", "line", "by"),
    [
        pytest.param("DefMemPerCPU=UNLIMITED", "4096", "16G", "sbatch job.sh", "default", id="4 CPUs at the cluster's 4 GiB"),
        pytest.param("DefMemPerCPU=2048 MaxMemPerNode=UNLIMITED", "4096", "8G", "sbatch job.sh", "default", id="the partition's own"),
        pytest.param("DefMemPerNode=32768 MaxMemPerNode=UNLIMITED", "4096", "32G", "sbatch job.sh", "default", id="for each node"),
        pytest.param("DefMemPerCPU=UNLIMITED", "4096", "20G", "sbatch job.sh", None, id="another amount: the script asked"),
        pytest.param("DefMemPerCPU=UNLIMITED", "4096", "16G", "sbatch --mem=16G job.sh", "user", id="asked for, though the same"),
        pytest.param("DefMemPerCPU=UNLIMITED", "UNLIMITED", "16G", "sbatch job.sh", None, id="no default"),
        pytest.param("DefMemPerCPU=UNLIMITED", "4096", "16G", "", None, id="the command line is not told"),
    ],
)
def test_who_asked_for_the_memory(tmp_path: Path, partition: str, config: str, memory: str, line: str, by: str | None) -> None:
    row = job(AllocTRES=f"cpu=4,mem={memory},node=1", ReqMem=memory, SubmitLine=line)
    weights = "JOBID PARTITION PRIORITY SITE AGE\nWeights 1 1000 5\n"
    also = (
        capture("partitions", PARTITION.format(partition)),
        capture("config", CONFIG.format(config)),
        capture("sprio_weights", weights, taken_at=TAKEN + timedelta(seconds=2)),
    )
    assert use(tmp_path, row, also=also)["mem_asked_by"] == by
