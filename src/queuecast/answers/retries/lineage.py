"""The tree of attempts at one piece of work: requeues, corrected copies, and, marked as such, guesses."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any, Final, Literal

import pyarrow.compute as pc

from queuecast.answers.failures.rows import signs_of
from queuecast.answers.failures.weigh import weigh
from queuecast.answers.lookup import find_job, parse_id
from queuecast.answers.retries.lineage_log import Entry, entries
from queuecast.answers.retries.lineage_mark import parent_of, same_cluster
from queuecast.i18n import _
from queuecast.policy.tables import policy_at
from queuecast.slurmtext.durations import format_limit
from queuecast.slurmtext.sizes import format_size
from queuecast.slurmtext.states import ENDED_STATES
from queuecast.store.files import instant

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.store.lake import Lake

Link = Literal["root", "requeue", "comment", "log", "guess"]
BACK: Final = timedelta(days=92)
SOON: Final = timedelta(days=7)
"""A copy is submitted that soon after it was made, and a guess that soon after the failure."""
MOST: Final = 200
_GENERIC: Final = frozenset({"wrap", "bash", "sh", "sbatch", "interactive", "job", "test", "run", "salloc"})
_COLUMNS: Final = (
    "job_id job_id_text array_job_id array_task array_tasks name user uid account partition qos state cancelled_by exit_code exit_signal "
    "derived_exit_code derived_exit_signal reason submit start end elapsed_s limit_s limit_kind nodes_req nodes_alloc cpus_req cpus_alloc "
    "mem_req_bytes mem_alloc_bytes gpus_req gpu_type_req gpus_alloc node_list constraints max_rss_bytes submit_line work_dir comment "
    "observed_at"
).split()
_Row = Mapping[str, Any]


@dataclass(frozen=True)
class Attempt:
    """One attempt: a job as submitted or requeued; of an array all its tasks together.

    ``parent``: index in ``Lineage.attempts``; None for the first. ``link``: how it is known to follow the parent. ``states``: count
    by state. ``failure_class`` of the (first) failed task, None if none failed. Times UTC; ``elapsed_s`` of the longest task.
    ``gpu_hours`` and ``core_hours``: sums over tasks, None if nothing was allocated or it is not known. ``parameters``: option to
    value as asked; ``changed``: (option, before, after) against the parent.
    """

    job: str
    name: str | None
    parent: int | None
    link: Link
    submit: datetime
    start: datetime | None
    end: datetime | None
    tasks: int
    states: dict[str, int]
    failure_class: str | None
    exit_code: int | None
    exit_signal: int | None
    elapsed_s: float | None
    gpu_hours: float | None
    core_hours: float | None
    parameters: dict[str, str]
    changed: tuple[tuple[str, str | None, str | None], ...] = ()

    def as_json(self) -> dict[str, Any]:
        """Plain values."""
        told = asdict(self)
        told |= {k: v.isoformat() if v else None for k, v in (("submit", self.submit), ("start", self.start), ("end", self.end))}
        told["changed"] = [{"option": n, "before": b, "after": a} for n, b, a in self.changed]
        return told


@dataclass(frozen=True)
class Lineage:
    """``attempts`` by time of submission, parents before children. ``asked``: the job asked about, as it stands there."""

    cluster: str
    at: datetime
    asked: str
    attempts: tuple[Attempt, ...]
    notes: tuple[str, ...]

    def as_json(self) -> dict[str, Any]:
        """Plain values; times ISO 8601."""
        return {
            "cluster": self.cluster,
            "at": self.at.isoformat(),
            "job": self.asked,
            "attempts": [a.as_json() for a in self.attempts],
            "notes": list(self.notes),
        }


@dataclass
class _Node:
    """Rows of one attempt, and where it hangs."""

    base: int
    text: str
    rows: list[_Row]
    submit: datetime
    parent: _Node | None = None
    link: Link = "root"

    @property
    def first(self) -> _Row:
        return self.rows[0]

    @property
    def end(self) -> datetime | None:
        """None while a task has not ended."""
        ends = [r["end"] for r in self.rows]
        return max(ends) if all(ends) else None

    @property
    def failed(self) -> bool:
        return any(r["end"] is not None and r["state"] not in ("COMPLETED", "PENDING", "RUNNING") for r in self.rows)


def lineage(lake: Lake, cluster: str, job: str, at: datetime, viewer: Viewer) -> Lineage:
    """All attempts that belong to the job's line as known at ``at``, among its owner's jobs of 92 days around it.

    Raises ``NoDataError``, ``UsageError``, ``NotPermitted``.
    """
    known = find_job(lake, cluster, job, at)
    viewer.check(known.user, job)
    about = known.submit or at
    rows = _rows(lake, cluster, known.user, about - BACK, min(at, about + BACK), at)
    nodes = _nodes(rows)
    notes: list[str] = []
    if not nodes:  # seen in the queue only
        notes.append(_("Accounting does not know the job yet."))
    by_base: dict[int, list[_Node]] = {}
    for node in nodes:
        by_base.setdefault(node.base, []).append(node)
    flags = policy_at(lake, cluster, at).settings.get("accountingstoreflags")
    stored = None if flags is None else "job_comment" in flags.lower()
    if stored is False:
        notes.append(_("Accounting does not keep comments here (AccountingStoreFlags): parents are known by the lake's log, or guessed."))
    # where comments are kept, a copy names its parent: the log could only mistake another job for one
    _hang(nodes, by_base, cluster, [] if stored else entries(lake.path, cluster, at))
    wanted = parse_id(job)
    mine = by_base.get(known.job_id) or by_base.get(wanted.base) or []
    if not mine:
        of_array = [n for n in nodes if any(r["job_id"] == known.job_id for r in n.rows)]
        mine = of_array
    line = _line(nodes, mine)
    if len(line) > MOST:
        notes.append(_("Only the first {n} attempts are shown.").format(n=MOST))
        line = line[:MOST]
    if any(n.link == "guess" for n in line):
        notes.append(_("Guesses: same user, name and folder, submitted within 7 days of a failure. They may be wrong."))
    return Lineage(cluster, at, mine[-1].text if mine else job, _attempts(line), tuple(notes))


def _rows(lake: Lake, cluster: str, user: str | None, since: datetime, until: datetime, at: datetime) -> list[_Row]:
    """The owner's attempts, cut at ``at``: what came later is not told."""
    rows = lake.read("jobs", list(_COLUMNS), cluster=cluster, since=since, until=until + timedelta(microseconds=1))
    owner = pc.is_null(rows["user"]) if user is None else pc.fill_null(pc.equal(rows["user"], user), False)
    rows = rows.filter(pc.and_(owner, pc.less_equal(rows["submit"], instant(at))))
    out: list[_Row] = []
    for row in rows.to_pylist():
        if row["end"] is not None and row["end"] > at:
            row |= {"end": None, "state": "RUNNING", "elapsed_s": None, "exit_code": None, "exit_signal": None}
        if row["start"] is not None and row["start"] > at:
            row |= {"start": None, "state": "PENDING"}
        out.append(row)
    return out


def _nodes(rows: Sequence[_Row]) -> list[_Node]:
    """One for each attempt of a job; one for all tasks of an array, requeued ones among them."""
    grouped: dict[tuple[int, datetime | None], list[_Row]] = {}
    for row in sorted(rows, key=lambda r: (r["submit"], r["job_id"])):
        key = (row["array_job_id"], None) if row["array_job_id"] is not None else (row["job_id"], row["submit"])
        grouped.setdefault(key, []).append(row)
    out = [
        _Node(base, str(base) if of[0]["array_job_id"] is not None else of[0]["job_id_text"] or str(base), of, of[0]["submit"])
        for (base, _submit), of in grouped.items()
    ]
    return sorted(out, key=lambda n: (n.submit, n.base))


def _hang(nodes: Sequence[_Node], by_base: Mapping[int, Sequence[_Node]], cluster: str, log: Sequence[Entry]) -> None:
    """Give each node its parent: an earlier attempt of the same id, else the comment's, else the log's, else a guess."""
    used: set[int] = set()
    for node in nodes:
        earlier = [n for n in by_base[node.base] if n.submit < node.submit]
        named = parent_of(node.first["comment"])
        if earlier:
            node.parent, node.link = earlier[-1], "requeue"
        elif named is not None and same_cluster(named[0], cluster):
            _explicit(node, int(named[1].split("_")[0].split("+")[0]), by_base, "comment")
    for i, entry in enumerate(log):
        told = any(n.link == "comment" and n.parent is not None and n.parent.text == entry.parent and n.submit >= entry.at for n in nodes)
        node_of = None if told else _of_entry(nodes, entry, log, i)
        if node_of is not None and node_of.base not in used and entry.parent.split("_")[0].split("+")[0].isdigit():
            used.add(node_of.base)
            _explicit(node_of, int(entry.parent.split("_")[0].split("+")[0]), by_base, "log")
    for node in nodes:
        if node.parent is None:
            _guess(node, nodes)


def _explicit(node: _Node, base: int, by_base: Mapping[int, Sequence[_Node]], link: Link) -> None:
    before = [n for n in by_base.get(base, ()) if n.submit < node.submit and n is not node]
    if before:
        node.parent, node.link = before[-1], link


def _of_entry(nodes: Sequence[_Node], entry: Entry, log: Sequence[Entry], i: int) -> _Node | None:
    """The job that was submitted from the copy: its file is on the command line, or it is the first of this name and folder."""
    later = [e.at for e in log[i + 1 :] if (e.user, e.name, e.folder) == (entry.user, entry.name, entry.folder)]
    until = min([entry.at + SOON, *later])
    new = [n for n in nodes if n.parent is None and entry.at <= n.submit <= until and n.text != entry.parent]
    if entry.file:
        word = entry.file.rsplit("/", 1)[-1]
        named = [n for n in new if any(w.rsplit("/", 1)[-1] == word for w in (n.first["submit_line"] or "").split())]
        if named:
            return named[0]
    if not entry.folder or (entry.name or "").casefold() in _GENERIC:
        return None
    same = [n for n in new if (n.first["name"], n.first["work_dir"]) == (entry.name, entry.folder)]
    return same[0] if same else None


def _guess(node: _Node, nodes: Sequence[_Node]) -> None:
    """The last attempt of the same name and folder that had ended before, if it failed not long ago."""
    name, folder = node.first["name"], node.first["work_dir"]
    if not name or not folder or name.casefold() in _GENERIC:
        return
    before = [
        n
        for n in nodes
        if n is not node and n.submit < node.submit and n.base != node.base and (n.first["name"], n.first["work_dir"]) == (name, folder)
    ]
    if not before:
        return
    last = before[-1]
    if last.end is not None and last.failed and last.end <= node.submit <= last.end + SOON:
        node.parent, node.link = last, "guess"


def _line(nodes: Sequence[_Node], mine: Sequence[_Node]) -> list[_Node]:
    """Everything below the first ancestor, in the order of submission; guesses lead down from the line, but no job of another
    line is drawn in over them twice."""
    if not mine:
        return []
    root = mine[0]
    seen = {id(root)}
    while root.parent is not None and id(root.parent) not in seen:
        root = root.parent
        seen.add(id(root))
    inside = {id(root)}
    out = [root]
    for node in nodes:  # parents were submitted before
        if node.parent is not None and id(node.parent) in inside and id(node) not in inside:
            inside.add(id(node))
            out.append(node)
    return out


def _attempts(line: Sequence[_Node]) -> tuple[Attempt, ...]:
    index = {id(n): i for i, n in enumerate(line)}
    out: list[Attempt] = []
    for node in line:
        parent = index.get(id(node.parent)) if node.parent is not None else None
        made = _attempt(node, parent)
        if parent is not None:
            before = out[parent].parameters
            names = dict.fromkeys([*before, *made.parameters])
            changed = tuple((n, before.get(n), made.parameters.get(n)) for n in names if before.get(n) != made.parameters.get(n))
            made = replace(made, changed=changed)
        out.append(made)
    return tuple(out)


def _attempt(node: _Node, parent: int | None) -> Attempt:
    rows = node.rows
    first = node.first
    ended = [r for r in rows if r["end"] is not None and r["state"] in ENDED_STATES and r["state"] != "COMPLETED"]
    worst = ended[0] if ended else None
    starts = [r["start"] for r in rows if r["start"] is not None]
    elapsed = [r["elapsed_s"] for r in rows if r["elapsed_s"] is not None]
    return Attempt(
        job=node.text,
        name=first["name"],
        parent=parent,
        link=node.link if parent is not None else "root",
        submit=node.submit,
        start=min(starts, default=None),
        end=node.end,
        tasks=sum(r["array_tasks"] or 1 for r in rows) if first["array_job_id"] is not None else 1,
        states=dict(Counter(r["state"] for r in rows)),
        failure_class=weigh(signs_of(worst)).failure_class if worst is not None else None,
        exit_code=(worst or first)["exit_code"],
        exit_signal=(worst or first)["exit_signal"],
        elapsed_s=float(max(elapsed)) if elapsed else None,
        gpu_hours=_hours(rows, "gpus_alloc"),
        core_hours=_hours(rows, "cpus_alloc"),
        parameters=_parameters(first),
    )


def _hours(rows: Sequence[_Row], column: str) -> float | None:
    known = [r["elapsed_s"] * r[column] / 3600 for r in rows if r["elapsed_s"] is not None and r[column] is not None]
    return sum(known) if known else None


def _parameters(row: _Row) -> dict[str, str]:
    out: dict[str, str] = {}
    for option in ("partition", "qos", "account"):
        if row[option]:
            out[option] = row[option]
    if row["nodes_req"]:
        out["nodes"] = str(row["nodes_req"])
    if row["cpus_req"]:
        out["cpus"] = str(row["cpus_req"])
    if row["gpus_req"]:
        out["gpus"] = f"{row['gpu_type_req']}:{row['gpus_req']}" if row["gpu_type_req"] else str(row["gpus_req"])
    if row["mem_req_bytes"]:
        out["memory"] = format_size(row["mem_req_bytes"])
    if row["limit_s"] is not None:
        out["time"] = format_limit(row["limit_s"])
    if row["constraints"]:
        out["constraint"] = row["constraints"]
    return out
