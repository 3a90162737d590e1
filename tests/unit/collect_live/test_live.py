"""The live source as a whole, on fake commands."""

from __future__ import annotations

import json
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from queuecast.collect.commands import DEFAULT_KINDS, LIVE_KINDS
from queuecast.collect.live import LiveSource
from queuecast.collect.run import Runner
from queuecast.collect.source import Capture, SourceFailure
from queuecast.errors import CommandNotFound, CommandTimeout, NotPermitted, SlurmDown, SourceError, UsageError

from .conftest import Fake

D = "\x1f"
NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
DOWN = "slurm_load_jobs error: Unable to contact slurm controller (connect failure)"
DB_DOWN = "sacct: error: Problem talking to the database: Connection refused"


@dataclass
class Patient(LiveSource):
    """Never really waits: ``waits`` says how long it would have."""

    waits: list[float] = field(default_factory=list)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.runner.clock = self.runner.clock or (lambda: NOW)
        self.sleep = self.waits.append


source = Patient


def collect(made: LiveSource, *kinds: str, since: datetime | None = None) -> tuple[dict[str, bytes], dict[str, SourceError]]:
    good: dict[str, bytes] = {}
    bad: dict[str, SourceError] = {}
    for result in made.captures(since, kinds or None):
        if isinstance(result, Capture):
            with result.raw() as stream:
                good[result.kind] = stream.read()
        else:
            bad[result.kind] = result.error
    return good, bad


def test_a_cycle_asks_each_kind_once(slurm: Fake) -> None:
    good, bad = collect(source())
    assert bad == {}
    assert tuple(good) == DEFAULT_KINDS
    names = slurm.names()
    # one more `show config` tells the cluster's name
    assert sorted(names) == sorted(
        [
            "scontrol config",
            "scontrol config",
            "squeue",
            "squeue --start",
            "scontrol job",
            "scontrol node",
            "scontrol partition",
            "scontrol reservation",
            "sprio",
            "sprio",
            "sacct",
            "sshare",
            "sacctmgr qos",
            "sacctmgr assoc",
            "sacctmgr event",
        ]
    )


def test_captures_say_where_they_come_from(slurm: Fake) -> None:
    capture = next(iter(source().captures(kinds=["sacct"])))
    assert isinstance(capture, Capture)
    assert (capture.kind, capture.cluster, capture.zone, capture.slurm_version) == ("sacct", "campus", "UTC", "22.05.8")
    assert capture.taken_at == NOW
    assert capture.command[0] == "sacct"
    assert capture.exit_code == 0
    assert not capture.sampled
    assert set(capture.missing_fields) == {"Restarts", "SLUID", "QOSREQ", "Licenses"}


def test_the_same_bytes_can_be_read_twice_and_go_when_the_iterator_moves_on(slurm: Fake) -> None:
    cycle = source().captures(kinds=["sacct", "qos"])
    first = next(cycle)
    assert isinstance(first, Capture)
    with first.raw() as a, first.raw() as b:
        assert a.read() == b.read() != b""
    next(cycle)
    with pytest.raises(FileNotFoundError):
        first.raw()
    assert list(cycle) == []
    assert not list(Path(tempfile.gettempdir()).glob("queuecast-*/sacct"))


def test_bytes_come_through_untouched(slurm: Fake) -> None:
    """What is not UTF-8 is the parser's business."""
    row = f"1{D}1{D}a\udcff|\x1b[31m\r\n\u4e2d\n"
    slurm.rule("sacct", "-S", stdout=f"JobIDRaw{D}JobID{D}JobName\n{row}")
    good, _ = collect(source(), "sacct")
    assert good["sacct"].endswith(b"a\xff|\x1b[31m\r\n\xe4\xb8\xad\n")


def test_sacct_starts_before_what_is_known(slurm: Fake) -> None:
    """accounting lags, so windows overlap."""
    collect(source(overlap=timedelta(hours=2)), "sacct", "events", since=NOW - timedelta(minutes=10))
    calls = {name: args for name, args, _ in slurm.calls if "-S" in args or any(a.startswith("start=") for a in args)}
    assert calls["sacct"][calls["sacct"].index("-S") + 1] == "2026-06-10T09:50:00"
    assert calls["sacct"][calls["sacct"].index("-E") + 1] == "now"
    assert "start=2026-06-10T09:50:00" in calls["sacctmgr"]


def test_a_long_gap_is_read_in_windows(slurm: Fake) -> None:
    """nobody asks for a quarter in one call because the collector stood still."""
    made = source(overlap=timedelta(0), max_window=timedelta(days=7))
    results = list(made.captures(NOW - timedelta(days=15), ["sacct"]))
    windows = [(a[a.index("-S") + 1], a[a.index("-E") + 1]) for n, a, _ in slurm.calls if n == "sacct" and "-S" in a]
    assert windows == [
        ("2026-05-26T12:00:00", "2026-06-02T12:00:00"),
        ("2026-06-02T12:00:00", "2026-06-09T12:00:00"),
        ("2026-06-09T12:00:00", "now"),
    ]
    assert all(isinstance(r, Capture) for r in results)


def test_windows_after_one_that_failed_are_not_asked(slurm: Fake) -> None:
    slurm.rule("sacct", "-S", stderr="sacct: error: nonsense", exit=1)
    results = list(source().captures(NOW - timedelta(days=30), ["sacct"]))
    assert len(results) == 1
    assert isinstance(results[0], SourceFailure)


def test_first_window(slurm: Fake) -> None:
    collect(source(first_window=timedelta(days=3)), "sacct")
    args = slurm.calls[-1][1]
    assert args[args.index("-S") + 1] == "2026-06-07T12:00:00"


def test_one_failing_kind_stops_no_other(slurm: Fake) -> None:
    slurm.rule("sacctmgr", "qos", stderr="sacctmgr: error: Access/permission denied", exit=1)
    slurm.rule("sprio", "-o", stderr="sprio: weird", exit=4)
    good, bad = collect(source())
    assert type(bad.pop("qos")) is NotPermitted
    assert type(bad.pop("sprio")) is SourceError
    assert not bad
    assert len(good) == len(DEFAULT_KINDS) - 2


def test_database_away_keeps_the_live_view(slurm: Fake) -> None:
    """no data is not 'no jobs'. slurmdbd is asked only once."""
    slurm.rule("sacct", "-S", stderr=DB_DOWN, exit=1)
    slurm.rule("sacctmgr", stderr="sacctmgr: error: Sending PersistInit msg: Connection refused", exit=0)
    made = source(retries=0)
    good, bad = collect(made)
    assert set(bad) == {"sacct", "qos", "assoc", "events"}
    assert all(type(e) is SlurmDown for e in bad.values())
    assert "slurmdbd does not answer" in bad["qos"].message
    assert "squeue" in good
    assert not [n for n in slurm.names() if n.startswith("sacctmgr")]


def test_controller_away_keeps_accounting(slurm: Fake, tmp_path: Path) -> None:
    """The cluster's name is remembered from an earlier run; each client would wait half a minute, so one is asked."""
    memory = tmp_path / "memory.json"
    collect(source(memory=memory))
    before = len(slurm.names())
    slurm.rule("squeue", "-a", stderr=DOWN, exit=1)
    for word in ("config", "node", "partition", "reservation"):
        slurm.rule(
            "scontrol", word, stderr="slurm_load_ctl_conf error: Unable to contact slurm controller (connect failure)", exit=1
        )
    good, bad = collect(source(memory=memory, retries=0))
    assert set(good) == {"sacct", "qos", "assoc", "events"}
    assert all(type(e) is SlurmDown for e in bad.values())
    assert len(slurm.names()) - before == 6
    # without memory nobody can say which cluster it is
    good, bad = collect(source(retries=0))
    assert not good
    assert set(bad) == set(DEFAULT_KINDS)


def test_a_daemon_that_comes_back_is_asked_again(slurm: Fake) -> None:
    slurm.rule("squeue", "-a", stderr="slurm_load_jobs error: Socket timed out on send/recv operation", exit=1, times=2)
    made = source(retries=2, backoff_s=3.0)
    good, bad = collect(made, "squeue")
    assert "squeue" in good
    assert not bad
    assert made.waits == [3.0, 6.0]


def test_retries_are_bounded_in_number_and_time(slurm: Fake) -> None:
    slurm.rule("squeue", "-a", stderr=DOWN, exit=1)
    made = source(retries=3)
    assert type(collect(made, "squeue")[1]["squeue"]) is SlurmDown
    assert slurm.names().count("squeue") == 4
    impatient = source(retries=3, retry_within_s=0.0)
    collect(impatient, "squeue")
    assert slurm.names().count("squeue") == 5
    assert impatient.waits == []


def test_other_faults_are_not_retried(slurm: Fake) -> None:
    slurm.rule("sacct", "-S", stderr="sacct: error: nonsense", exit=1)
    made = source()
    collect(made, "sacct")
    assert made.waits == []


def test_slow_command_is_stopped(slurm: Fake) -> None:
    slurm.rule("sacct", "-S", sleep=60)
    good, bad = collect(source(timeouts={"sacct": 0.5}), "sacct", "qos")
    assert type(bad["sacct"]) is CommandTimeout
    assert set(good) == {"qos"}


def test_no_slurm_here(fake: Fake) -> None:
    good, bad = collect(source())
    assert not good
    assert {type(e) for e in bad.values()} == {CommandNotFound}
    assert "login node" in bad["squeue"].hint


def test_wrapper_script_is_not_taken_for_slurm(slurm: Fake) -> None:
    """a script in place of a command, which prints its own usage with success."""
    slurm.rule("squeue", "-a", stdout="Usage: squeue [-u USER] [-p PARTITION] [-j JOBID]\n")
    good, bad = collect(source(), "squeue", "nodes")
    assert "wrapper" in bad["squeue"].hint
    assert "nodes" in good
    slurm.rule("sinfo", "--version", stdout="our tools 3.1\n")
    good, bad = collect(source(), "squeue", "nodes")
    assert not good
    assert "is not Slurm's own" in bad["nodes"].message
    assert "wrapper" in bad["nodes"].hint


def test_client_without_configuration_is_not_called_a_wrapper(slurm: Fake) -> None:
    """Seen with 24.11: without slurm.conf a client does not even tell its version."""
    said = "sinfo: error: fetch_config: DNS SRV lookup failed\nsinfo: fatal: Could not establish a configuration source\n"
    slurm.rule("sinfo", "--version", stderr=said, exit=1)
    error = collect(source(), "squeue")[1]["squeue"]
    assert "DNS SRV" in error.message
    assert "SLURM_CONF" in error.hint


def test_wrapper_is_got_around_by_a_path(slurm: Fake, tmp_path: Path) -> None:
    slurm.rule("squeue", "-a", stdout="Usage\n")
    real = tmp_path / "squeue"
    real.write_text('#!/bin/sh\nprintf "JOBID\\037STATE\\037\\n"\n')
    real.chmod(0o755)
    made = LiveSource(runner=Runner(paths={"squeue": str(real)}, clock=lambda: NOW))
    assert set(collect(made, "squeue")[0]) == {"squeue"}


def test_negotiation_is_remembered_per_cluster_and_release(slurm: Fake, tmp_path: Path) -> None:
    memory = tmp_path / "deep" / "memory.json"
    collect(source(memory=memory), "sacct")
    collect(source(memory=memory), "sacct")
    asked = [name for name, args, _ in slurm.calls if "--helpformat" in args]
    assert asked == ["sacct", "sshare"]
    slurm.rule("sinfo", "--version", stdout="slurm 24.11.5\n")
    capture = next(iter(source(memory=memory).captures(kinds=["sacct"])))
    assert isinstance(capture, Capture)
    assert capture.slurm_version == "24.11.5"
    assert len([1 for _, args, _ in slurm.calls if "--helpformat" in args]) == 4


@pytest.mark.parametrize("content", ["", "[]", "{", '{"x": 1}'])
def test_odd_memory_costs_only_time(slurm: Fake, tmp_path: Path, content: str) -> None:
    memory = tmp_path / "memory.json"
    memory.write_text(content)
    assert collect(source(memory=memory), "sacct")[1] == {}
    assert "sacct" in json.dumps(json.loads(memory.read_text()))


def test_refused_columns_are_dropped_and_noted(slurm: Fake) -> None:
    """sacct ends with an error; it is asked again without them."""
    slurm.rule("sacct", "-S", stderr='sacct: error: Invalid field requested: "Reserved"', exit=1, times=1)
    made = source()
    capture = next(iter(made.captures(kinds=["sacct"])))
    assert isinstance(capture, Capture)
    assert "Reserved" in capture.missing_fields
    assert "Reserved" not in capture.command[-1].split(",")


def test_columns_that_squeue_leaves_empty_are_not_asked_again(slurm: Fake) -> None:
    slurm.rule("squeue", "-O", stdout=f"JOBID{D}{D}\n", stderr="squeue: error: Invalid job format specification: AccrueTime\n")
    made = source()
    for n in range(2):
        capture = next(iter(made.captures(kinds=["squeue"])))
        assert isinstance(capture, Capture)
        assert capture.missing_fields == ("AccrueTime",)
        assert ("AccrueTime" in capture.command[-1]) is (n == 0)


def test_old_squeue_is_asked_by_letters(slurm: Fake) -> None:
    slurm.rule("sinfo", "--version", stdout="slurm 19.05.8\n")
    capture = next(iter(source().captures(kinds=["squeue"])))
    assert isinstance(capture, Capture)
    assert "-o" in capture.command
    assert "tres-alloc" in capture.missing_fields


def test_several_clusters(slurm: Fake) -> None:
    for name in ("north", "south"):
        slurm.rule("scontrol", name, "config", stdout=f"Configuration data as of x\nClusterName = {name}\n")
    made = source(clusters=("north", "south"))
    found = [(r.cluster, r.kind) for r in made.captures(kinds=["sacct", "squeue"])]
    assert found == [("north", "squeue"), ("north", "sacct"), ("south", "squeue"), ("south", "sacct")]
    assert [a[a.index("-M") + 1] for n, a, _ in slurm.calls if n == "sacct" and "-M" in a] == ["north", "south"]
    assert made.name == "north, south on this machine"


def test_unknown_cluster_is_an_error_not_an_empty_queue(slurm: Fake) -> None:
    slurm.rule(
        "scontrol",
        "nosuch",
        "config",
        stderr="scontrol: error: No cluster 'nosuch' known by database.\nscontrol: error: 'nosuch' can't be reached now",
        exit=1,
    )
    good, bad = collect(source(clusters=("nosuch",)), "sacct")
    assert not good
    assert "knows no cluster 'nosuch'" in bad["sacct"].message


@pytest.mark.parametrize("name", ["", "-x", "a,b", "a\nb"])
def test_cluster_cannot_be_an_option(name: str) -> None:
    with pytest.raises(UsageError):
        LiveSource(clusters=(name,))


def test_unknown_kind_is_said_at_once(slurm: Fake) -> None:
    with pytest.raises(UsageError, match="sreport"):
        source().captures(kinds=["sreport", "sacct"])


def test_history_goes_in_bounded_windows_with_pauses(slurm: Fake) -> None:
    """One process per window; windows touch, so a job in both comes twice and is one row by its key."""
    made = source()
    results = list(made.history(NOW - timedelta(days=2, hours=12), NOW, kinds=["sacct"], pause_s=5.0))
    windows = [(a[a.index("-S") + 1], a[a.index("-E") + 1]) for n, a, _ in slurm.calls if n == "sacct" and "-S" in a]
    assert windows == [
        ("2026-06-08T00:00:00", "2026-06-09T00:00:00"),
        ("2026-06-09T00:00:00", "2026-06-10T00:00:00"),
        ("2026-06-10T00:00:00", "2026-06-10T12:00:00"),
    ]
    assert made.waits == [5.0, 5.0]
    assert len(results) == 3


def test_history_stops_where_the_database_is_away(slurm: Fake) -> None:
    slurm.rule("sacct", "-S", stderr=DB_DOWN, exit=1)
    results = list(source(retries=0).history(NOW - timedelta(days=9), NOW, kinds=["sacct"]))
    assert len(results) == 1
    assert isinstance(results[0], SourceFailure)


def test_every_kind_can_be_asked_for(slurm: Fake) -> None:
    slurm.rule("sinfo", "-N", stdout=f"NODELIST{D}STATE\n")
    slurm.rule("scontrol", "job", stdout="JobId=1 JobName=x\n")
    slurm.rule("scontrol", "assoc_mgr", stdout="Current Association Manager state\n")
    slurm.rule("sacctmgr", "reservation", stdout="Cluster|Name|TRES|TimeStart|TimeEnd|UnusedWall\n")
    good, bad = collect(source(), *LIVE_KINDS)
    assert bad == {}
    assert set(good) == set(LIVE_KINDS)
