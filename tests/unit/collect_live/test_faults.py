"""What an ending means: exit code, stderr and output together."""

from __future__ import annotations

from datetime import UTC, datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.collect.faults import fault, looks_right, transient, unknown_fields
from queuecast.collect.run import Finished, Runner
from queuecast.errors import CommandNotFound, CommandTimeout, NotPermitted, SlurmDown, SourceError

HERE, THERE = Runner(), Runner(ssh="login1")
D = "\x1f"
SACCT_OK = f"JobIDRaw{D}JobID{D}State\n"
COMMAND = {"qos": "sacctmgr", "assoc": "sacctmgr", "nodes": "scontrol", "config": "scontrol", "squeue_start": "squeue"}


def judge(
    kind: str, code: int, stderr: str, out: str = "", runner: Runner = HERE, *, timed_out: bool = False, missing: bool = False
) -> SourceError | None:
    done = Finished(code, stderr, 1.0, datetime.now(UTC), timed_out, missing)
    return fault(kind, (COMMAND.get(kind, kind),), done, out, runner)


@pytest.mark.parametrize(
    ("kind", "code", "stderr", "out", "expected", "says"),
    [
        # slurmctld away
        ("squeue", 1, "slurm_load_jobs error: Unable to contact slurm controller (connect failure)", "", SlurmDown, "slurmctld"),
        ("squeue", 1, "slurm_load_jobs error: Socket timed out on send/recv operation", "", SlurmDown, "Socket timed out"),
        ("nodes", 1, "slurm_load_node error: Zero Bytes were transmitted or received", "", SlurmDown, "slurmctld"),
        (
            "sprio",
            255,
            "Couldn't get priority factors from controller: Unable to contact slurm controller (connect failure)",
            "",
            SlurmDown,
            "slurmctld",
        ),
        ("squeue", 1, "squeue: error: 'x' can't be reached now, or it is an invalid entry for --cluster.", "", SlurmDown, "x"),
        # slurmdbd away (G13), also with exit code 0
        ("sacct", 1, "sacct: error: Problem talking to the database: Connection refused", "", SlurmDown, "slurmdbd"),
        ("qos", 0, "sacctmgr: error: Sending PersistInit msg: Connection refused\n", "", SlurmDown, "slurmdbd"),
        (
            "assoc",
            1,
            "sacctmgr: error: slurm_persist_conn_open_without_init: failed to open persistent connection to host:localhost:6819: "
            "Connection refused",
            "",
            SlurmDown,
            "slurmdbd",
        ),
        # half an answer
        (
            "squeue",
            1,
            "slurm_load_jobs error: Socket timed out on send/recv operation",
            f"JOBID{D}STATE\n1{D}RUNNING\n",
            SlurmDown,
            "Socket",
        ),
        # refused
        ("assoc", 1, "sacctmgr: error: Access/permission denied", "", NotPermitted, "denied"),
        ("sshare", 1, "sshare: error: Your user doesn't have privilege to perform this action", "", NotPermitted, "privilege"),
        # empty or other output with success
        ("sacct", 0, "", "", SourceError, "nothing usable"),
        ("squeue", 0, "", "Usage: squeue [-u user] [-j JOBID]\n", SourceError, "prints what Slurm's does not"),
        ("nodes", 0, "", "hello\n", SourceError, "hello"),
        ("config", 0, "", "ClusterName=x\n", SourceError, "prints what"),
        # a cluster that is not there answers with an empty queue and 0
        ("squeue", 0, "squeue: error: No cluster 'nosuch' known by database.", f"JOBID{D}STATE\n", SourceError, "nosuch"),
        (
            "sacct",
            1,
            "sacct: error: Start time (2027-01-01T00:00:00) requested is after end time (2026-01-01T00:00:00).",
            "",
            SourceError,
            "after end time",
        ),
        ("sacct", 1, 'sacct: error: Invalid field requested: "Planned"', "", SourceError, "Planned"),
        ("sacct", 1, "Slurm accounting storage is disabled", "", SourceError, "disabled"),
    ],
)
def test_faults(kind: str, code: int, stderr: str, out: str, expected: type[SourceError], says: str) -> None:
    error = judge(kind, code, stderr, out)
    assert type(error) is expected
    assert says in error.message
    assert error.hint
    assert "\n" not in error.message
    assert transient(error) is (expected is SlurmDown)


@pytest.mark.parametrize(
    ("kind", "stderr", "out"),
    [
        ("sacct", "", SACCT_OK),
        ("squeue", "squeue: error: Invalid job format specification: Restarts", f"JOBID{D}{D}\n"),
        ("squeue", "", f"CLUSTER: campus\nJOBID{D}STATE{D}\n"),
        ("reservations", "", "No reservations in the system\n"),
        ("nodes", "", "NodeName=n1 State=IDLE\n"),
        ("jobs_detail", "", ""),
        ("sdiag", "", "anything"),
        ("events", "", "Cluster|NodeName|TimeStart|TimeEnd|State|User|Reason\n"),
        ("sshare", "sshare: warning: something", "Account|User\n"),
    ],
)
def test_usable(kind: str, stderr: str, out: str) -> None:
    assert judge(kind, 0, stderr, out) is None


def test_timeout_and_missing() -> None:
    """a slow command is stopped and named."""
    assert isinstance(judge("sacct", -1, "", timed_out=True), CommandTimeout)
    assert isinstance(judge("sacct", 127, "sacct: No such file or directory", missing=True), CommandNotFound)
    assert isinstance(judge("sacct", 127, "env: 'sacct': No such file or directory", runner=THERE), CommandNotFound)
    assert isinstance(judge("sacct", 127, "bash: line 1: sacct: command not found", runner=THERE), CommandNotFound)


@pytest.mark.parametrize(
    ("stderr", "expected"),
    [
        ("ann@login1: Permission denied (publickey,password).", NotPermitted),
        ("Host key verification failed.", NotPermitted),
        ("ssh: Could not resolve hostname login1: Name or service not known", SourceError),
        ("ssh: connect to host login1 port 22: Connection refused", SourceError),
        ("", SourceError),
    ],
)
def test_ssh_faults_are_not_slurms(stderr: str, expected: type[SourceError]) -> None:
    error = judge("squeue", 255, stderr, runner=THERE)
    assert type(error) is expected
    assert "ssh" in error.message
    assert "BatchMode" in error.hint


def test_unknown_fields_of_every_command() -> None:
    assert unknown_fields(
        "squeue: error: Invalid job format specification: Restarts\nsqueue: error: Invalid job format specification: o"
    ) == ("Restarts", "o")
    assert unknown_fields('sacct: error: Invalid field requested: "Reserved"') == ("Reserved",)
    assert unknown_fields("sacct: fatal: AllocGRES has been removed, please use AllocTRES") == ("AllocGRES",)
    assert unknown_fields(" Unknown field 'lft'") == ("lft",)
    assert unknown_fields("") == ()


@given(st.sampled_from(["sacct", "squeue", "squeue_start", "sprio", "qos", "assoc", "nodes", "config"]), st.text(max_size=200))
def test_no_arbitrary_text_passes_for_a_table(kind: str, text: str) -> None:
    if (
        "JOBID" not in text.upper()
        and "NAME" not in text.upper()
        and "ACCOUNT" not in text.upper()
        and "CONFIG" not in text.upper()
    ):
        assert not looks_right(kind, text)
        assert judge(kind, 0, "", text) is not None
