"""The same collection through a real sshd."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from queuecast.collect.cycle import collect_once
from queuecast.collect.live import LiveSource
from queuecast.collect.run import Runner
from queuecast.collect.source import SourceFailure
from queuecast.errors import SourceError
from queuecast.store.lake import Lake

from .cluster import Cluster
from .sshd import Sshd, running
from .workload import Workload

pytestmark = pytest.mark.slurm


@pytest.fixture(scope="module")
def sshd(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Sshd]:
    with running(tmp_path_factory.mktemp("sshd")) as made:
        yield made


def runner(sshd: Sshd, cluster: Cluster) -> Runner:
    return Runner(ssh="root@127.0.0.1", ssh_options=sshd.options, extra_env={"SLURM_CONF": str(cluster.conf)})


def test_a_lake_collected_through_ssh_is_the_one_collected_here(sshd: Sshd, cluster: Cluster, workload: Workload, tmp_path: Path) -> None:
    here, there = Lake.open(tmp_path / "here", create=True), Lake.open(tmp_path / "there", create=True)
    assert not collect_once(LiveSource(), here).failures
    assert not collect_once(LiveSource(runner(sshd, cluster)), there).failures
    columns = ["job_id", "submit", "name", "user", "gpus_req", "limit_s", "eligible"]
    order = [("job_id", "ascending"), ("submit", "ascending")]
    jobs = here.refresh().read("jobs", columns).sort_by(order)
    assert jobs.num_rows > 30
    assert there.refresh().read("jobs", columns).sort_by(order).equals(jobs)


def test_a_command_that_hangs_is_ended_on_the_far_side(sshd: Sshd, cluster: Cluster, tmp_path: Path) -> None:
    begun = time.monotonic()
    with (tmp_path / "out").open("w+b") as out:
        done = runner(sshd, cluster).run(("sleep", "300"), out, 2.0)
    assert done.timed_out
    assert time.monotonic() - begun < 30


def test_a_key_that_is_refused_is_told(sshd: Sshd, cluster: Cluster, tmp_path: Path) -> None:
    without = [o for o in sshd.options if o != "-i" and not o.endswith("/user")]
    source = LiveSource(Runner(ssh="root@127.0.0.1", ssh_options=(*without, "-i", str(tmp_path / "none"))))
    with pytest.raises(SourceError, match=r"(?i)permission denied|ssh"):
        source.capabilities()
    assert all(isinstance(r, SourceFailure) for r in source.captures(kinds=("squeue",)))
