"""Which columns are asked for, by release."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.collect import fields
from queuecast.collect.fields import (
    SACCT,
    SPRIO,
    SQUEUE_LONG,
    SQUEUE_SHORT,
    Chosen,
    Version,
    choose,
    choose_sacct,
    choose_sprio,
    choose_squeue,
    long_squeue,
    parse_helpformat,
    parse_version,
    refused_names,
)

_ALWAYS = """Account AdminComment AllocCPUS AllocNodes AllocTRES AssocID AveCPU AveRSS Cluster Comment ConsumedEnergy
ConsumedEnergyRaw CPUTime DerivedExitCode Elapsed Eligible End ExitCode GID Group JobID JobIDRaw JobName MaxRSS
NCPUS NNodes NodeList NTasks Partition Priority QOS ReqCPUS ReqMem ReqTRES Reservation Start State Submit Suspended
Timelimit TotalCPU UID User UserCPU"""


def offered(*more: str, without: str = "") -> str:
    names = [n for n in (*_ALWAYS.split(), *" ".join(more).split()) if n not in without.split()]
    rows = [names[i : i + 4] for i in range(0, len(names), 4)]
    return "\n".join("".join(f"{n:<20}" for n in row) for row in rows) + "\n"


_18 = "TimelimitRaw ElapsedRaw TRESUsageInAve TRESUsageInMax TRESUsageInTot ReqNodes WorkDir Flags"
_20 = f"{_18} Constraints Reason DBIndex"
_21 = f"{_20} SubmitLine Container"
HELP = {
    (17, 11, 2): offered("Reserved ReqGRES AllocGRES"),
    (20, 11, 8): offered("Reserved", _20),
    (22, 5, 8): offered("Reserved", _21),
    (23, 2, 6): offered("Planned", _21),
    (24, 11, 5): offered("Planned Restarts SLUID QOSREQ Licenses StdOut Extra", _21),
    (25, 11, 1): offered("Planned Restarts SLUID OriginalSLUID QOSREQ Licenses SegmentSize", _21),
}
MISSING = {
    (17, 11, 2): {
        "ElapsedRaw",
        "TimelimitRaw",
        "ReqNodes",
        "TRESUsageInTot",
        "TRESUsageInMax",
        "TRESUsageInAve",
        "Flags",
        "Restarts",
        "DBIndex",
        "SLUID",
        "QOSREQ",
        "Licenses",
        "Constraints",
        "WorkDir",
        "SubmitLine",
        "Reason",
    },
    (20, 11, 8): {"Restarts", "SLUID", "QOSREQ", "Licenses", "SubmitLine"},
    (22, 5, 8): {"Restarts", "SLUID", "QOSREQ", "Licenses"},
    (23, 2, 6): {"Restarts", "SLUID", "QOSREQ", "Licenses"},
    (24, 11, 5): set(),
    (25, 11, 1): set(),
}


@pytest.mark.parametrize("release", HELP, ids=str)
def test_sacct_by_release(release: tuple[int, int, int]) -> None:
    version = Version(*release)
    chosen = choose_sacct(parse_helpformat(HELP[release]), version)
    assert set(chosen.missing) == MISSING[release]
    assert ("Reserved" in chosen.fields) != ("Planned" in chosen.fields)
    assert ("Planned" in chosen.fields) == (version >= Version(23, 2))
    assert ("AllocGRES" in chosen.fields) == (version < Version(20, 11))
    assert len(chosen.fields) == len(set(chosen.fields))
    assert chosen.fields[0] == "JobIDRaw"
    assert chosen.fields[-1] == "Cluster"


def test_user_text_comes_last_before_a_constant() -> None:
    """A delimiter or newline in a name must not shift what stands before it."""
    assert SACCT[-7:] == ("Constraints", "JobName", "WorkDir", "Comment", "AdminComment", "SubmitLine", "Cluster")
    assert SQUEUE_LONG[-1] == "Name" == SQUEUE_SHORT[-1][0]


def test_removed_fields_are_not_asked_for_even_if_listed() -> None:
    assert not {"ReqGRES", "AllocGRES"} & set(
        choose_sacct(parse_helpformat(offered("ReqGRES AllocGRES")), Version(20, 11)).fields
    )
    assert not {"ReqGRES", "AllocGRES"} & set(choose_sacct(parse_helpformat(offered("ReqGRES AllocGRES")), None).fields)


def test_sacct_without_a_list_of_fields_asks_for_the_least() -> None:
    chosen = choose_sacct((), Version(22, 5, 8))
    assert {"JobIDRaw", "State", "Submit", "Eligible", "Start", "End"} <= set(chosen.fields)
    assert "Planned" not in chosen.fields
    assert "SubmitLine" in chosen.missing


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("slurm-wlm 22.05.8\n", Version(22, 5, 8)),
        ("slurm 23.11.10-1.el9\n", Version(23, 11, 10)),
        ("slurm 17.11.2", Version(17, 11, 2)),
        ("slurm 26.05.0-0rc1", Version(26, 5, 0)),
        ("squeue: our own wrapper 1.2.3", None),
        ("Usage: squeue [-u user]", None),
        ("", None),
    ],
)
def test_versions(text: str, expected: Version | None) -> None:
    assert parse_version(text) == expected


def test_versions_compare_by_release() -> None:
    assert Version(9, 11) < Version(17, 11, 2) < Version(20, 2) < Version(20, 11)
    assert str(Version(20, 2, 3)) == "20.02.3"


@pytest.mark.parametrize(
    ("version", "long"),
    [(None, False), (Version(17, 11), False), (Version(20, 2, 7), False), (Version(20, 11), True), (Version(25, 11, 1), True)],
)
def test_squeue_takes_delimiters_with_long_names_only_lately(version: Version | None, long: bool) -> None:
    assert long_squeue(version) is long
    chosen = choose_squeue(version)
    assert ("tres-alloc" in chosen.fields) is long
    assert ("tres-alloc" in chosen.missing) is not long
    assert {"JobArrayID", "JobID", "State", "Reason", "StartTime", "Name"} <= set(chosen.fields)


def test_sprio_by_release() -> None:
    assert {"Site", "Assoc", "Account", "QOSName"} <= set(choose_sprio(Version(17, 11)).missing)
    assert choose_sprio(Version(22, 5)).missing == ("Account", "QOSName")
    assert choose_sprio(Version(24, 11)).missing == ()
    assert "Site" not in choose_sprio(None).fields


def test_refused_letters_become_names() -> None:
    assert refused_names(SPRIO, ("o", "%n", "z")) == ("Account", "QOSName", "z")


def test_refused_columns_are_left_out_and_noted() -> None:
    chosen = Chosen(("JobID", "Priority", "Name"), ("Site",)).without(("priority", "nosuch"))
    assert chosen == Chosen(("JobID", "Name"), ("Site", "Priority"))


@given(st.lists(st.sampled_from(fields.SACCT), unique=True))
def test_choice_keeps_order_and_loses_nothing(names: list[str]) -> None:
    chosen = choose(SACCT, [n.upper() for n in names])
    if names:
        assert list(chosen.fields) == [f for f in SACCT if f in names]
        assert set(chosen.fields) | set(chosen.missing) == set(SACCT)
        assert not set(chosen.fields) & set(chosen.missing)
    else:
        assert chosen.fields == SACCT
