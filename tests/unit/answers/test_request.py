"""Requests from flags and scripts."""

from __future__ import annotations

import pytest

from queuecast.errors import UsageError
from queuecast.policy.request import from_options


@pytest.mark.parametrize(
    ("options", "gpus", "kind", "nodes", "cpus"),
    [
        ({"gres": "gpu:a100:4"}, 4, "a100", 1, 1),
        ({"gres": "gpu:a100:4", "nodes": "2"}, 8, "a100", 2, 2),
        ({"gres": "gpu:2"}, 2, None, 1, 1),
        ({"gres": "gpu"}, 1, None, 1, 1),
        ({"gres": "gpu:a100:2,shard:1"}, 2, "a100", 1, 1),
        ({"gres": "shard:4"}, 0, None, 1, 1),
        ({"gres": "none"}, 0, None, 1, 1),
        ({"gpus": "a100:8"}, 8, "a100", 1, 1),
        ({"gpus": "3"}, 3, None, 1, 1),
        ({"gpus-per-node": "v100:2", "nodes": "3-5"}, 6, "v100", 3, 3),
        ({"gpus-per-task": "1", "ntasks": "4", "cpus-per-task": "6"}, 4, None, 1, 24),
        ({"gpus": "a100:1,v100:1"}, 2, None, 1, 1),
        ({"ntasks-per-node": "4", "nodes": "2", "cpus-per-task": "2"}, 0, None, 2, 16),
        ({"gpus": "2", "cpus-per-gpu": "8"}, 2, None, 1, 16),
        ({"gres": "gpu:nvidia_a100_1g.5gb:1"}, 1, "nvidia_a100_1g.5gb", 1, 1),
    ],
)
def test_counts(options: dict[str, str], gpus: int, kind: str | None, nodes: int, cpus: int) -> None:
    found = from_options(options)
    assert (found.gpus, found.gpu_type, found.nodes, found.cpus) == (gpus, kind, nodes, cpus)


def test_the_rest() -> None:
    found = from_options(
        {"partition": "gpu,long", "time": "1-00:00:00", "mem": "64G", "nodes": "2", "account": "a", "qos": "q", "array": "0-99%4"}, user="u"
    )
    assert found.partitions == ("gpu", "long")
    assert (found.limit_s, found.unlimited, found.mem_bytes) == (86400, False, 2 * 64 * 2**30)
    assert (found.account, found.qos, found.user, found.array_tasks) == ("a", "q", "u", 100)
    assert from_options({"time": "UNLIMITED"}).unlimited
    assert from_options({"mem": "0"}).mem_bytes is None


@pytest.mark.parametrize(
    "options",
    [{"time": "soon"}, {"gres": "gpu:a100:x"}, {"nodes": "-1"}, {"nodes": "two"}, {"mem": "lots"}, {"array": "a-b"}, {"gpus": "a100:"}],
)
def test_what_sbatch_would_refuse_names_the_option(options: dict[str, str]) -> None:
    with pytest.raises(UsageError, match=f"--{next(iter(options))}="):
        from_options(options)
