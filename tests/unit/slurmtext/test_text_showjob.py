"""Records of ``scontrol show job``: fields by their place, memory by what it counts for."""

from __future__ import annotations

import pytest

from queuecast.errors import ParseError
from queuecast.slurmtext.showjob import is_whole, min_memory, split_job
from queuecast.slurmtext.sizes import NO_REQ_MEM, ReqMem

HEAD = "JobId=7 JobName=train"
OWN = ("UserId=alice(1001) JobState=RUNNING Reason=None BatchFlag=1 RunTime=00:10:00 SubmitTime=2026-06-01T08:00:00 "
       "StartTime=2026-06-01T09:00:00 EndTime=2026-06-01T10:00:00 Partition=gpu NodeList=n[1-2] NumNodes=2 NumCPUs=4")
REST = "Command=/home/alice/run me.sh WorkDir=/home/alice StdErr=/e StdIn=/i StdOut=/o TresPerNode=gres/gpu:2"


def test_fields_by_their_place() -> None:
    job = split_job(f"{HEAD} {OWN} Nodes=n[1-2] CPU_IDs=0-1 Mem=10 GRES=gpu:a100:2(IDX:0-1) Features=a & b {REST} ")
    assert job.fields["JobName"] == "train"
    assert (job.fields["Features"], job.fields["Command"], job.fields["TresPerNode"]) == ("a & b", "/home/alice/run me.sh", "gres/gpu:2")
    assert job.gres == (("n[1-2]", "gpu:a100:2(IDX:0-1)"),)
    assert not {"Nodes", "GRES", "Mem"} & job.fields.keys()


def test_a_comment_does_not_begin_another_key() -> None:
    rest = REST.replace(" StdErr", " Comment=x WorkDir=/etc AdminComment=forged StdOut=y TresPerNode=gres/gpu:99  StdErr")
    fields = split_job(f"{HEAD} {OWN} {rest}").fields
    assert fields["Comment"] == "x WorkDir=/etc AdminComment=forged StdOut=y TresPerNode=gres/gpu:99"
    assert (fields["WorkDir"], fields["TresPerNode"]) == ("/home/alice", "gres/gpu:2")
    assert "AdminComment" not in fields


@pytest.mark.parametrize(("text", "cause"), [
    ("", "not a record of scontrol show job"),
    ("JobId=x JobName=y", "not a record of scontrol show job"),
    (f"{HEAD} UserId=alice(1) {REST}", "job without its fields"),
    (f"{HEAD} {OWN}", "job without its fields"),
    (f"{HEAD} {OWN} Command=a {OWN} {REST}", "fields of the job are told twice"),
])
def test_what_is_none(text: str, cause: str) -> None:
    with pytest.raises(ParseError) as error:
        split_job(text)
    assert error.value.cause == cause


def test_the_end_of_a_record() -> None:
    assert is_whole(f"{HEAD} {OWN} {REST}")
    assert not is_whole(HEAD)
    assert not is_whole(f"{HEAD} {OWN} Command=a")
    assert is_whole(f"{HEAD} {OWN.replace('BatchFlag=1', 'BatchFlag=0')} Command=(null) WorkDir=/tmp")


@pytest.mark.parametrize(("fields", "expected"), [
    ({"MinMemoryCPU": "512M"}, ReqMem(512 << 20, "cpu")),
    ({"MinMemoryNode": "4G"}, ReqMem(4 << 30, "node")),
    ({"MinMemoryTRES": "0", "MemPerTres": "gres/gpu:4096"}, ReqMem(4 << 30, "gpu")),
    ({"MinMemoryTRES": "0", "MemPerTres": "gres:gpu:a100:4096"}, ReqMem(4 << 30, "gpu")),
    ({"MinMemoryTRES": "4G"}, ReqMem(4 << 30, "gpu")),
    ({"MinMemoryNode": "0"}, NO_REQ_MEM),
    ({"MinMemoryTRES": "0"}, NO_REQ_MEM),
    ({}, NO_REQ_MEM),
])
def test_B28_memory(fields: dict[str, str], expected: ReqMem) -> None:
    assert min_memory(fields) == expected
