"""The job that is to be sent again: its attempt as accounting knows it, its tasks if it is an array, its files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

import pyarrow.compute as pc

from queuecast.answers.lookup import find_job, parse_id
from queuecast.errors import UsageError
from queuecast.i18n import _
from queuecast.slurmtext.states import ENDED_STATES
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.store.lake import Lake

COLUMNS = (
    "job_id job_id_text array_job_id array_task array_tasks array_throttle het_job_id name user uid account partition qos state "
    "cancelled_by exit_code exit_signal derived_exit_code derived_exit_signal reason submit start end elapsed_s limit_s "
    "limit_kind nodes_req nodes_alloc cpus_req cpus_alloc mem_req_bytes mem_alloc_bytes gpus_req gpu_type_req gpus_alloc "
    "gpu_type_alloc node_list constraints reservation max_rss_bytes restarts submit_line work_dir comment observed_at "
).split()


@dataclass(frozen=True)
class Ended:
    """``row``: the latest attempt (of an array, that of its first failed task). ``tasks``: one row for each ended task of an
    array, its latest attempt; a single row otherwise. ``base``: the id that names all of it: of an array the array's.

    ``files``: row of ``job_files`` or None. ``waiting``: tasks of the array that have not ended.
    """

    base: str
    row: Mapping[str, Any]
    tasks: tuple[Mapping[str, Any], ...]
    files: Mapping[str, Any] | None
    is_array: bool
    waiting: int = 0

    @property
    def failed(self) -> tuple[Mapping[str, Any], ...]:
        """Tasks that did not complete."""
        return tuple(t for t in self.tasks if t["state"] != "COMPLETED")


def ended_job(lake: Lake, cluster: str, text: str, at: datetime, viewer: Viewer) -> Ended:
    """The job as it had ended by ``at``. Raises ``NoDataError`` if it is not known, ``UsageError`` if it has not ended,
    ``NotPermitted`` if the viewer may not see it."""
    known = find_job(lake, cluster, text, at)
    viewer.check(known.user, text)
    wanted = parse_id(text)
    since = (known.submit or at) - timedelta(days=1)
    rows = lake.read("jobs", COLUMNS, cluster=cluster, since=since, until=at + timedelta(microseconds=1))
    same = pc.equal(rows["job_id"], known.job_id)
    if wanted.array_task is None:
        same = pc.or_(same, pc.fill_null(pc.equal(rows["array_job_id"], wanted.base), False))
    else:
        of_array = pc.and_(pc.equal(rows["array_job_id"], wanted.base), pc.equal(rows["array_task"], wanted.array_task))
        same = pc.fill_null(of_array, False)
    found = rows.filter(pc.and_(same, pc.less_equal(rows["submit"], instant(at)))).to_pylist()
    latest: dict[int, dict[str, Any]] = {}
    for row in sorted(found, key=lambda r: r["submit"]):
        latest[row["job_id"]] = row
    ended = [r for r in latest.values() if r["end"] is not None and r["end"] <= at and r["state"] in ENDED_STATES]
    if not ended:
        raise UsageError(
            _("job {job} has not ended").format(job=text),
            _("retry is for jobs that ended; ask about a waiting one with: queuecast why {job}").format(job=text),
        )
    ended.sort(key=lambda r: (r["array_task"] is None, r["array_task"] or 0))
    first = next((r for r in ended if r["state"] != "COMPLETED"), ended[0])
    is_array = any(r["array_job_id"] is not None for r in ended)
    base = str(first["array_job_id"] if is_array and wanted.array_task is None else first["job_id_text"] or first["job_id"])
    return Ended(base, first, tuple(ended), _files(lake, cluster, first), is_array, len(latest) - len(ended))


def _files(lake: Lake, cluster: str, row: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """Of the job, or, where only the array is known, of the array."""
    rows = lake.read("job_files", cluster=cluster, since=row["submit"] - timedelta(days=1), until=row["submit"] + timedelta(days=1))
    if not rows.num_rows:
        return None
    ids = [i for i in (row["job_id"], row["array_job_id"]) if i is not None]
    found: list[dict[str, Any]] = [r for r in rows.to_pylist() if r["job_id"] in ids]
    found.sort(key=lambda r: (r["job_submit"] == row["submit"], r["job_id"] == row["job_id"], r["observed_at"]))
    return found[-1] if found else None
