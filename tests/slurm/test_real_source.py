"""The live source against a real Slurm: what comes in, before anything is parsed."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queuecast.collect.commands import DEFAULT_KINDS, LIVE_KINDS
from queuecast.collect.doctor import examine
from queuecast.collect.live import LiveSource
from queuecast.collect.run import Runner
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import NotPermitted, SlurmDown, SourceError

from .cluster import Cluster
from .configuration import CLUSTER, KINDS
from .machine import wait
from .truth import squeue
from .workload import ANN, Workload

pytestmark = pytest.mark.slurm
D = b"\x1f"


def take(source: LiveSource, *kinds: str) -> dict[str, tuple[Capture, bytes]]:
    found = {}
    for result in source.captures(kinds=kinds or None):
        assert isinstance(result, Capture), result
        with result.raw() as stream:
            found[result.kind] = (result, stream.read())
    return found


def test_everything_listens_on_loopback_only(cluster: Cluster) -> None:
    """The test itself must not open the machine."""
    ours = {f"{port:04X}": name for name, port in cluster.ports.items()}
    seen = {}
    for line in [*Path("/proc/net/tcp").read_text().splitlines(), *Path("/proc/net/tcp6").read_text().splitlines()]:
        address, _, port = line.split()[1].partition(":")
        if line.split()[3] == "0A" and port in ours:  # 0A: listening
            seen[ours[port]] = address
    assert set(seen) >= {"sql", "dbd", "ctld", "cpu-1"}
    assert set(seen.values()) == {"0100007F"}, seen


def test_every_kind_comes_in(workload: Workload) -> None:
    found = take(LiveSource(), *LIVE_KINDS)
    assert set(found) == set(LIVE_KINDS)
    for kind, (capture, data) in found.items():
        assert (capture.cluster, capture.exit_code, capture.zone) == (CLUSTER, 0, "UTC"), kind
        assert capture.slurm_version is not None
        assert capture.slurm_version[:1].isdigit()
        assert abs(capture.taken_at - datetime.now(UTC)) < timedelta(minutes=1)
        assert data
        assert "error" not in capture.stderr, (kind, capture.stderr)


def test_named_cluster_comes_in_too(workload: Workload) -> None:
    assert set(take(LiveSource(clusters=(CLUSTER,)))) == set(DEFAULT_KINDS)


def test_every_row_has_all_fields(workload: Workload) -> None:
    """No name, comment or command line can add or take fields without the count telling."""
    odd = {b"newline", b"newlines", b"unit-separator", b"carriage-return"}
    for kind in ("squeue", "squeue_start", "sprio", "sacct"):
        data = take(LiveSource(), kind)[kind][1]
        lines = data.split(b"\n")
        width = lines[0].count(D)
        short = [line for line in lines[1:] if line and line.count(D) != width]
        # only the names with a newline or the delimiter itself may do so
        assert len(short) <= 6 * len(odd), (kind, short[:3])
        assert width >= 9


def test_waiting_arrays_are_one_record(workload: Workload) -> None:
    """Bounded output: fifty thousand waiting tasks are one line, and none of their list is cut."""
    data = take(LiveSource(), "squeue")["squeue"][1]
    assert data.count(b"%d_[0-49999]" % workload.ids["array-large"]) == 1
    assert len(data) < 100_000
    gaps = [n for n in range(1, 120, 3) if n not in (7, 10)]
    line = next(row for row in data.split(b"\n") if row.startswith(b"%d_[" % workload.ids["array-gaps"]))
    assert b"..." not in line
    shown = line.split(D)[0].decode().split("[")[1].rstrip("]")
    assert shown == ",".join(map(str, gaps))


def test_user_formats_change_nothing(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    before = take(LiveSource(), "squeue", "sacct", "sinfo")
    for name, value in (
        ("SQUEUE_FORMAT", "%i"),
        ("SQUEUE_FORMAT2", "JobID"),
        ("SQUEUE_USERS", "nobody"),
        ("SQUEUE_STATES", "R"),
        ("SACCT_FORMAT", "JobID"),
        ("SINFO_FORMAT", "%N"),
        ("SLURM_TIME_FORMAT", "relative"),
        ("TZ", "Asia/Tokyo"),
        ("SQUEUE_PARTITION", "long"),
        ("SLURM_BITSTR_LEN", "8"),
    ):
        monkeypatch.setenv(name, value)
    after = take(LiveSource(), "squeue", "sacct", "sinfo")
    for kind in before:
        assert after[kind][1].split(b"\n")[0] == before[kind][1].split(b"\n")[0]
        assert after[kind][1].count(b"\n") == before[kind][1].count(b"\n")
        assert b"T" in after[kind][1]


def test_hidden_partition_is_seen(workload: Workload) -> None:
    data = take(LiveSource(), "squeue", "partitions")
    assert b"PartitionName=hid " in data["partitions"][1]
    assert str(workload.ids["run-hidden"]).encode() in [row.split(D)[0] for row in data["squeue"][1].split(b"\n")]


def test_ordinary_user_sees_the_queue(workload: Workload, cluster: Cluster) -> None:
    """No rights are needed: as a user of the cluster, everything that is collected by default comes in."""
    found = take(LiveSource(runner=Runner(prefix=("runuser", "-u", ANN, "--"))))
    assert set(found) == set(DEFAULT_KINDS)
    ids = {row.split(D)[1].decode() for row in found["squeue"][1].split(b"\n") if row.count(D) > 20}
    assert {row["raw"] for row in squeue(cluster).values()} <= ids


def test_refusal_is_told(workload: Workload) -> None:
    """Slurm refuses a privileged list to an ordinary user with the words that we read as such."""
    from queuecast.collect.faults import fault

    runner = Runner(prefix=("runuser", "-u", ANN, "--"))
    out = Path("/tmp") / f"qc-{ANN}"
    try:
        with out.open("w+b") as stream:
            done = runner.run(("sacctmgr", "show", "problem"), stream, 30)
    finally:
        out.unlink(missing_ok=True)
    assert isinstance(fault("other", ("sacctmgr",), done, "", runner), NotPermitted)


def test_unknown_cluster_is_an_error(workload: Workload) -> None:
    """Slurm answers with an empty list and success."""
    results = list(LiveSource(clusters=("nosuch",)).captures(kinds=["sacct", "squeue"]))
    assert all(isinstance(r, SourceFailure) for r in results)
    assert all("nosuch" in r.error.message for r in results if isinstance(r, SourceFailure))


def test_columns_that_slurm_does_not_know_are_found_out(workload: Workload, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command refuses in its own way; all of them end in a usable output without that column."""
    from queuecast.collect import capabilities, fields

    monkeypatch.setattr(fields, "SQUEUE_LONG", ("JobArrayID", "NoSuch", "JobID", "Name"))
    monkeypatch.setattr(capabilities, "ASSOC", ("Cluster", "Account", "NoSuch", "User"))
    monkeypatch.setattr(capabilities, "EVENTS", ("Cluster", "NodeName", "NoSuch", "Start", "Reason"))
    source = LiveSource()
    found = take(source, "squeue", "assoc", "events")
    assert {kind: capture.missing_fields for kind, (capture, _) in found.items()} == {
        "squeue": ("NoSuch",),
        "assoc": ("NoSuch",),
        "events": ("NoSuch",),
    }
    assert take(source, "squeue")["squeue"][1].split(b"\n")[0] == b"JOBID\x1fJOBID\x1fNAME\x1f"


def test_history_in_windows_is_the_whole(workload: Workload) -> None:
    """Jobs at the edge of two windows come twice; none is lost."""

    def ids(results: list[Capture | SourceFailure], data: list[bytes]) -> set[bytes]:
        assert all(isinstance(r, Capture) for r in results)
        return {row.split(D)[0] for part in data for row in part.split(b"\n")[1:] if row.count(D) > 20}

    now = datetime.now(UTC)
    whole = ids([], [take(LiveSource(first_window=timedelta(hours=2)), "sacct")["sacct"][1]])
    parts, results = [], []
    for result in LiveSource(overlap=timedelta(0)).history(
        now - timedelta(minutes=30), now + timedelta(minutes=1), timedelta(minutes=2), 0.0, ["sacct"]
    ):
        results.append(result)
        if isinstance(result, Capture):
            with result.raw() as stream:
                parts.append(stream.read())
    assert ids(results, parts) == whole
    assert len(parts) == 16


def test_doctor_on_a_healthy_cluster(workload: Workload) -> None:
    found = {f.check: f for f in examine(LiveSource())}
    assert [f for f in found.values() if f.level == "fail"] == []
    assert found["gpu_accounting"].level == "ok"
    assert f"{sum(k.count * k.gpus for k in KINDS)} GPUs" in found["gpu_accounting"].what
    assert found["clock"].level == "ok"
    assert found["backfill"].level == "ok"
    user = {f.check: f for f in examine(LiveSource(runner=Runner(prefix=("runuser", "-u", ANN, "--"))))}
    assert "ordinary user" in user["rights"].what
    assert [f for f in user.values() if f.level != "ok"] == []


def test_database_away_and_back_with_private_data(workload: Workload, cluster: Cluster) -> None:
    """slurmdbd stopped: a clear message, the live view goes on. Then it hides others' jobs: doctor notices."""
    cluster.stop("slurmdbd")
    try:
        results = {r.kind: r for r in LiveSource(retries=1, backoff_s=0.1).captures()}
        failed = {k: r.error for k, r in results.items() if isinstance(r, SourceFailure)}
        assert set(failed) == {"sacct", "qos", "assoc", "events"}
        for error in failed.values():
            assert isinstance(error, SlurmDown)
            assert "slurmdbd does not answer" in error.message
        assert {f.check: f.level for f in examine(LiveSource())}["slurmdbd"] == "fail"
        cluster.write_dbd_conf(private="jobs")
    finally:
        cluster.start_slurmdbd()
    for _ in wait(30, "accounting does not come back"):
        results = {r.kind: r for r in LiveSource(retries=0).captures(kinds=["sacct"])}
        if isinstance(results["sacct"], Capture):
            break
    found = {f.check: f for f in examine(LiveSource(runner=Runner(prefix=("runuser", "-u", ANN, "--"))))}
    assert found["own_jobs_only"].level == "warn"
    assert "adminlevel=operator" in found["own_jobs_only"].todo


def test_controller_away(workload: Workload, cluster: Cluster, tmp_path: Path) -> None:
    """slurmctld stopped: accounting still comes in, under the right name, and the wait is that of one call."""
    memory = tmp_path / "memory.json"
    take(LiveSource(memory=memory), "sacct")
    cluster.stop("slurmctld")
    try:
        begin = datetime.now(UTC)
        results = {r.kind: r for r in LiveSource(memory=memory, retries=0).captures()}
        seconds = (datetime.now(UTC) - begin).total_seconds()
        good = {k: r for k, r in results.items() if isinstance(r, Capture)}
        assert set(good) == {"sacct", "qos", "assoc", "events"}
        assert {r.cluster for r in good.values()} == {CLUSTER}
        assert all(isinstance(r.error, SlurmDown) for r in results.values() if isinstance(r, SourceFailure))
        assert seconds < 45, "more than two calls waited for the controller"
        alone: list[SourceError] = [
            r.error for r in LiveSource(retries=0, timeouts={"squeue": 1.0}).captures(kinds=["squeue"]) if isinstance(r, SourceFailure)
        ]
        assert len(alone) == 1
    finally:
        cluster.start_slurmctld()
