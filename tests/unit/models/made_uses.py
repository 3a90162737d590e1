"""Invented tables of uses for sizing."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pyarrow as pa

from queuecast.usage.uses import SCHEMA, Uses

AT = datetime(2026, 6, 1, tzinfo=UTC)
GB = float(1 << 30)


def made_uses(rows: Sequence[dict[str, Any]], *, at: datetime = AT) -> Uses:
    """Rows with some columns set; the rest is a plain job of one hour that ended some hours before ``at`` in the order given."""
    full = []
    for i, row in enumerate(rows):
        end = at - timedelta(hours=2 * (len(rows) - i))
        job: dict[str, Any] = dict.fromkeys(SCHEMA.names)
        job |= {
            "job_id": i + 1, "job_id_text": str(i + 1), "submit": end - timedelta(minutes=70), "start": end - timedelta(hours=1),
            "end": end,
            "user": "ann", "account": "lab", "partition": "main", "name": "train", "state": "COMPLETED", "nodes": 1, "elapsed_s": 3600.0,
            "limit_s": 4 * 3600.0, "final": True, "interrupted": False, "cpus_alloc": 8.0, "cpu_s": 2 * 3600.0, "cpu_quality": "ok",
            "mem_alloc_bytes": 64 * GB, "mem_peak_bytes": 8 * GB, "mem_basis": "sampled", "mem_at_least": False, "generated": False,
        }  # fmt: skip
        full.append(job | row)
    return Uses("main", at - timedelta(days=365), at, pa.Table.from_pylist(full, schema=SCHEMA))


def many(count: int, *, seed: int = 1, **fixed: Any) -> list[dict[str, Any]]:
    """Jobs of several users whose memory and run time scatter about the user's own level."""
    draws = np.random.default_rng(seed)
    user = draws.integers(0, 6, count)
    level = np.array([2.0, 4.0, 6.0, 9.0, 14.0, 20.0])[user] * np.exp(0.15 * draws.normal(size=count))
    return [
        {"user": f"u{u}", "name": f"run_{i}", "mem_peak_bytes": float(m) * GB, "elapsed_s": float(m) * 300.0} | fixed
        for i, (u, m) in enumerate(zip(user.tolist(), level.tolist(), strict=True))
    ]
