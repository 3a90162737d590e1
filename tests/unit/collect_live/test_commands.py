"""Command lines: one bounded call per kind."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta, timezone

import pytest

from queuecast.collect.commands import DEFAULT_KINDS, LIVE_KINDS, WINDOWED_KINDS, command_for, slurm_time
from queuecast.collect.fields import ASSOC, EVENTS, SSHARE, Chosen, Version, choose_sprio, choose_squeue
from queuecast.collect.source import KINDS
from queuecast.errors import UsageError

START = datetime(2026, 6, 1, 12, tzinfo=UTC)


def chosen(version: Version) -> dict[str, Chosen]:
    return {
        "sacct": Chosen(("JobIDRaw", "State", "JobName", "Cluster")),
        "squeue": choose_squeue(version),
        "sprio": choose_sprio(version),
        "sshare": Chosen(SSHARE),
        "assoc": Chosen(ASSOC),
        "events": Chosen(EVENTS),
    }


@pytest.mark.parametrize("version", [Version(17, 11), Version(20, 2), Version(20, 11), Version(22, 5), Version(24, 11)], ids=str)
@pytest.mark.parametrize("kind", LIVE_KINDS)
def test_each_kind_is_one_command_for_all_jobs(kind: str, version: Version) -> None:
    command = command_for(kind, chosen(version), version, cluster="campus", start=START if kind in WINDOWED_KINDS else None)
    assert command[0] in ("sacct", "squeue", "sinfo", "scontrol", "sprio", "sshare", "sacctmgr", "sdiag")
    assert not {"-j", "-r", "--array", "-u"} & set(command)
    assert kind in KINDS
    assert "-M" not in command
    assert all("\n" not in word for word in command)


def test_sacct_is_explicit_in_everything() -> None:
    """the default window is midnight, or now, or all time; an empty window is refused before Slurm does."""
    command = command_for("sacct", chosen(Version(22, 5)), Version(22, 5), start=START)
    assert command == (
        "sacct",
        "-a",
        "-D",
        "-P",
        "--delimiter=\x1f",
        "--noconvert",
        "-S",
        "2026-06-01T12:00:00",
        "-E",
        "now",
        "-o",
        "JobIDRaw,State,JobName,Cluster",
    )
    assert (
        command_for("sacct", chosen(Version(22, 5)), None, start=START, end=START + timedelta(days=1))[9] == "2026-06-02T12:00:00"
    )
    with pytest.raises(UsageError):
        command_for("sacct", chosen(Version(22, 5)), None)
    for end in (START, START - timedelta(hours=1)):
        with pytest.raises(UsageError, match="empty"):
            command_for("sacct", chosen(Version(22, 5)), None, start=START, end=end)


def test_times_are_given_in_utc() -> None:
    assert slurm_time(START.astimezone(timezone(timedelta(hours=8)))) == "2026-06-01T12:00:00"
    with pytest.raises(UsageError):
        slurm_time(datetime(1970, 1, 1, tzinfo=UTC))


def test_squeue_delimits_every_field() -> None:
    new = command_for("squeue", chosen(Version(22, 5)), Version(22, 5))
    assert new[2] == "-O"
    assert all(field.endswith(":\x1f") for field in new[3].split(","))
    assert "tres-alloc:\x1f" in new[3]
    old = command_for("squeue", chosen(Version(19, 5)), Version(19, 5))
    assert old[2] == "-o"
    assert old[3].startswith("%i\x1f%A\x1f")
    assert old[3].endswith("%j\x1f")


def test_estimates_are_asked_by_letters() -> None:
    """squeue --start prints its own table if it is given -O."""
    for version in (Version(17, 11), Version(24, 11)):
        command = command_for("squeue_start", chosen(version), version)
        assert "-O" not in command
        assert "--start" in command
        assert command[-1].startswith("%i\x1f%A\x1f")


def test_named_cluster_goes_to_every_client() -> None:
    for kind in DEFAULT_KINDS:
        command = command_for(
            kind,
            chosen(Version(22, 5)),
            Version(22, 5),
            cluster="campus",
            named=True,
            start=START if kind in WINDOWED_KINDS else None,
        )
        if command[0] == "sacctmgr":
            assert kind == "qos" or any(word in ("cluster=campus", "clusters=campus") for word in command)
        else:
            assert command[1:3] == ("-M", "campus")


def test_hidden_partitions_are_included() -> None:
    for kind in ("squeue", "squeue_start", "nodes", "partitions", "reservations"):
        assert "-a" in command_for(kind, chosen(Version(22, 5)), Version(22, 5))


def test_old_sshare_prints_its_long_form() -> None:
    assert command_for("sshare", {"sshare": Chosen((), SSHARE)}, Version(14, 3)) == ("sshare", "-a", "-P", "-l")


def test_unknown_kind() -> None:
    with pytest.raises(UsageError):
        command_for("sreport", {}, None)
