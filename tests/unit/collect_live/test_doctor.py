"""doctor: what is found, and that every trouble says what to do."""

from __future__ import annotations

import time
from datetime import UTC, datetime, timedelta

import pytest

from queuecast.collect.checks import freshness, judge
from queuecast.collect.doctor import examine, summary
from queuecast.collect.fields import Version
from queuecast.collect.findings import COMMANDS, Facts, Finding
from queuecast.collect.live import LiveSource
from queuecast.collect.run import Runner
from queuecast.errors import SlurmDown

from .conftest import Fake

D = "\x1f"
NOW = datetime(2026, 6, 10, 12, tzinfo=UTC)
CONFIG = """Configuration data as of 2026-06-10T12:00:00
AccountingStorageTRES   = cpu,mem,node,gres/gpu,gres/gpu:a100
PriorityType            = priority/multifactor
PrivateData             = none
SchedulerParameters     = bf_window=4320,bf_max_job_test=100
SchedulerType           = sched/backfill
"""


def facts(config: str = "", pending: int = 1, **more: object) -> Facts:
    lines = dict(line.split("=", 1) for line in CONFIG.splitlines()[1:])
    changed = {k.strip(): v for k, v in lines.items()} | dict(line.split("=", 1) for line in config.splitlines())
    made = Facts(
        texts={
            "config": "Configuration data as of x\n" + "\n".join(f"{k} = {v}" for k, v in changed.items()),
            "squeue": f"JOBID{D}STATE{D}\n" + f"1{D}PENDING{D}\n" * pending,
            "nodes": "NodeName=n1 Gres=gpu:a100:4(S:0) State=IDLE\n",
            "sprio": "x",
            "sshare": "x",
            "partitions": "PartitionName=gpu A=1 MaxTime=3-00:00:00 B=2\nPartitionName=cpu A=1 MaxTime=UNLIMITED B=2\n",
            "sdiag": "",
        },
        versions=dict.fromkeys(COMMANDS, Version(22, 5, 8)),
        cluster="campus",
        user="ann",
        admin_level="None",
        job_owners=frozenset(("ann", "ben")),
        controller_offset_s=0.4,
    )
    for name, value in more.items():
        setattr(made, name, value)
    return made


def by_check(findings: list[Finding]) -> dict[str, Finding]:
    return {f.check: f for f in findings}


def test_all_well() -> None:
    found = judge(facts())
    assert {f.level for f in found} == {"ok"}
    assert all(f.check and f.what and not f.todo for f in found)
    assert {
        "commands",
        "clock",
        "slurmctld",
        "slurmdbd",
        "visibility",
        "rights",
        "gpu_accounting",
        "backfill",
        "sprio",
        "sshare",
    } <= set(by_check(found))


@pytest.mark.parametrize(
    ("made", "check", "says"),
    [
        (facts(job_owners=frozenset(("ann",))), "own_jobs_only", "own jobs"),
        (facts(job_owners=frozenset()), "no_jobs", "no job"),
        (facts("PrivateData=jobs,usage"), "private_data", "jobs, usage"),
        (facts("AccountingStorageTRES=cpu,mem,node"), "gpu_accounting", "gres/gpu"),
        (facts("AccountingStorageTRES=cpu,gres/gpu"), "gpu_types", "a100"),
        (facts("SchedulerParameters=bf_window=4320,bf_max_job_test=1", pending=2), "bf_max_job_test", "2 job records"),
        (facts("SchedulerParameters=bf_window=1440"), "bf_window", "3.0 days"),
        (facts("SchedulerParameters=(null)"), "bf_window", "1.0 days"),
        (facts("SchedulerParameters=bf_window=9999,bf_max_job_user=5"), "bf_max_job", "bf_max_job_user=5"),
        (facts("SchedulerType=sched/builtin"), "backfill", "sched/builtin"),
        (facts(controller_offset_s=-300.0), "clock", "300 s"),
        (facts(versions=dict.fromkeys(COMMANDS, Version(22, 5)) | {"sacct": Version(23, 2)}), "releases", "sacct 23.02.0"),
    ],
)
def test_limits_are_told(made: Facts, check: str, says: str) -> None:
    """H07, B05 and the settings of backfill that leave jobs without an estimate."""
    found = by_check(judge(made))
    assert found[check].level == "warn"
    assert says in found[check].what
    assert found[check].why_it_matters
    assert sum(f.level != "ok" for f in found.values()) == 1


def test_operators_see_through_private_data() -> None:
    assert "private_data" not in by_check(judge(facts("PrivateData=jobs", admin_level="Operator")))
    assert "Operator" in by_check(judge(facts(admin_level="Operator")))["rights"].what


def test_no_gpus_no_complaint() -> None:
    made = facts("AccountingStorageTRES=cpu,mem")
    made.texts["nodes"] = "NodeName=n1 Gres=(null) State=IDLE\n"
    assert by_check(judge(made))["gpus"].level == "ok"


def test_daemons_away() -> None:
    made = facts(
        failures={
            "sacct": SlurmDown("slurmdbd does not answer: refused", "later"),
            "config": SlurmDown("slurmctld does not answer", "x"),
        },
        job_owners=None,
    )
    made.texts.clear()
    found = by_check(judge(made))
    assert found["slurmdbd"].level == found["slurmctld"].level == "fail"
    assert found["slurmdbd"].todo == "later"


@pytest.mark.parametrize(
    ("age", "level"), [(None, "fail"), (3, "ok"), (20, "warn"), (60 * 5, "warn"), (60 * 30, "fail"), (-10, "warn")]
)
def test_freshness(age: int | None, level: str) -> None:
    found = freshness(None if age is None else NOW - timedelta(minutes=age), NOW, "/lake")
    assert found.level == level
    assert bool(found.todo) == (level != "ok")


def test_examine_a_healthy_cluster(slurm: Fake) -> None:
    slurm.rule("scontrol", "config", stdout=CONFIG + "ClusterName = campus\n")
    slurm.rule("id", stdout="ann\n")
    slurm.rule("sdiag", stdout=f"sdiag output at Mon Jun 01 00:00:00 2026 ({int(time.time())})\n")
    slurm.rule("sdiag", "--version", stdout="slurm 22.05.8\n")
    found = examine(LiveSource(), newest=datetime.now(UTC), lake="/lake")
    assert [f for f in found if f.level != "ok"] == []
    assert summary(found)["ok"] == len(found)
    assert "campus" in by_check(found)["slurmctld"].what
    assert "2 users" in by_check(found)["visibility"].what
    assert by_check(found)["freshness"].level == "ok"


def test_examine_only_own_jobs(slurm: Fake) -> None:
    slurm.rule("id", stdout="ann\n")
    slurm.rule("sacct", "-X", stdout="JobID|User\n1|ann\n2|ann\n")
    assert by_check(examine(LiveSource()))["own_jobs_only"].level == "warn"


def test_examine_without_slurm(fake: Fake) -> None:
    found = examine(LiveSource(), lake="/lake")
    assert [f.level for f in found if f.check == "command_missing"].count("fail") == 4
    assert all(f.todo for f in found if f.level != "ok")


def test_examine_wrappers_and_missing_ones(slurm: Fake) -> None:
    slurm.rule("squeue", "--version", stdout="Usage: squeue\n")
    slurm.remove("sprio")
    found = examine(LiveSource())
    odd = {(f.check, f.level) for f in found if f.check.startswith("command_")}
    assert odd == {("command_wrapped", "fail"), ("command_missing", "warn")}


def test_examine_database_away(slurm: Fake) -> None:
    slurm.rule("sacct", "-X", stderr="sacct: error: Problem talking to the database: Connection refused", exit=1)
    found = by_check(examine(LiveSource()))
    assert found["slurmdbd"].level == "fail"
    assert "slurmdbd does not answer" in found["slurmdbd"].what
    assert found["slurmctld"].level == "ok"


def test_examine_unreachable_host(fake: Fake) -> None:
    ssh = fake.folder / "ssh"
    ssh.write_text("#!/bin/sh\necho 'ann@login1: Permission denied (publickey).' >&2\nexit 255\n")
    ssh.chmod(0o755)
    (found,) = examine(LiveSource(runner=Runner(ssh="login1")))
    assert found.level == "fail"
    assert found.check == "ssh"
    assert "Permission denied" in found.what
    assert "BatchMode" in found.todo
