"""One real cluster for all tests of this folder. If it cannot be brought up, they fail: nothing is skipped."""

from __future__ import annotations

import contextlib
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from types import FrameType

import pytest

from .cluster import Cluster
from .queue_cli import Queuecast
from .seen import Seen, look
from .workload import Workload, play


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    def interrupted(number: int, frame: FrameType | None) -> None:
        sys.exit(128 + number)  # so that the cluster is taken down

    previous = signal.signal(signal.SIGTERM, interrupted)
    made = Cluster.create()
    try:
        made.up()
        yield made
    finally:
        made.down()
        signal.signal(signal.SIGTERM, previous)


@pytest.fixture(scope="session")
def workload(cluster: Cluster) -> Workload:
    return play(cluster)


@pytest.fixture(scope="session")
def queuecast(cluster: Cluster, workload: Workload, tmp_path_factory: pytest.TempPathFactory) -> Queuecast:
    """The command line on a lake of its own, after its first collection."""
    made = Queuecast(cluster, tmp_path_factory.mktemp("lake") / "lake")
    made.collect()
    return made


@pytest.fixture(scope="module")
def seen(queuecast: Queuecast, cluster: Cluster) -> Seen:
    """Collected once more, with the truth asked around it."""
    return look(queuecast, cluster)


@pytest.fixture(autouse=True)
def on_this_cluster(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """What runs inside the test process asks the test cluster as well."""
    cluster: Cluster = request.getfixturevalue("cluster")
    for name in ("SACCT_FORMAT", "SQUEUE_FORMAT", "SLURM_CLUSTERS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("SLURM_CONF", str(cluster.conf))
    with contextlib.suppress(KeyError):
        monkeypatch.setenv("PATH", f"{Path(sys.executable).parent}:/usr/sbin:/usr/bin:/sbin:/bin")
