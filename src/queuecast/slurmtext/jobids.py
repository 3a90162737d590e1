"""Job ids as Slurm prints them: ``12``, ``12_3``, ``12_[1-5%2]``, ``12+1``, ``12_3.batch``, ``1000+1.0``.

A pending array is one record for many tasks. Slurm cuts long task lists with ``...``, and squeue's ``%i`` simply
stops after 31 characters, without a closing bracket; the number of tasks is then only a lower bound.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import chain
from typing import Final

from queuecast.errors import ParseError

_PLAIN = re.compile(r"[1-9][0-9]{0,9}")
_ID = re.compile(r"([1-9][0-9]{0,9})"
                 r"(?:_([0-9]{1,10})|_\[([0-9,.:%-]*\]?)|\+([0-9]{1,5}))?"
                 r"(?:\.([A-Za-z0-9_]+(?:\+[0-9]+)?))?")
_ITEM = re.compile(r"([0-9]{1,10})(?:-([0-9]{1,10})(?::([1-9][0-9]{0,9}))?)?")
_CUT_ITEM = re.compile(r"(?:([0-9]{1,10})(?:-([0-9]{0,10})(?::[0-9]{0,10})?)?)?")
_THROTTLE = re.compile(r"[0-9]{1,10}")
_NO_VAL: Final = 4_294_967_294

_STEP_SENTINELS: Final = {
    # 20.11 and later
    "4294967290": "interactive", "4294967291": "batch", "4294967292": "extern", "4294967293": "pending",
    # before 20.11
    "4294967294": "batch", "4294967295": "extern",
}


@dataclass(frozen=True, slots=True)
class JobId:
    """``base`` is the number before ``_``, ``+`` or ``.``: of an array the array's id, of a het job the leader's.

    ``array_spec`` is the text between the brackets without the throttle; ``tasks`` is how many tasks the record
    stands for, a lower bound unless ``tasks_exact``. ``step`` is ``batch``, ``extern``, ``interactive``, a number, ...
    """

    base: int
    array_task: int | None = None
    array_spec: str | None = None
    tasks: int = 1
    tasks_exact: bool = True
    throttle: int | None = None
    het_offset: int | None = None
    step: str | None = None


def parse_job_id(text: str) -> JobId:
    """A printed job or step id. Raises ParseError for ``0_0``, blank text and anything that names no job."""
    if _PLAIN.fullmatch(text):
        return JobId(int(text))
    text = text.strip()
    m = _ID.fullmatch(text)
    if m is None:
        raise ParseError("not a job id", text)
    base, task, spec, offset, step = m.groups()
    if step is not None:
        step = _STEP_SENTINELS.get(step, step)
    if spec is not None:
        if step is not None:
            raise ParseError("not a job id", text)
        return _array(int(base), spec, text)
    task_number = None if task is None or int(task) >= _NO_VAL else int(task)
    return JobId(int(base), task_number, het_offset=None if offset is None else int(offset), step=step)


def _array(base: int, spec: str, text: str) -> JobId:
    closed = spec.endswith("]")
    body, percent, limit = spec.removesuffix("]").partition("%")
    if closed and percent and not _THROTTLE.fullmatch(limit):
        raise ParseError("not a job id", text)
    if not closed and not percent:
        body = body.rstrip(".") + "..."
    ranges, lower_bound, exact = _ranges(body, text)
    tasks = sum((last - first) // stride + 1 for first, last, stride in ranges) + lower_bound
    # a throttle that was cut with the bracket may have lost digits
    throttle = int(limit) if percent and closed and int(limit) > 0 else None
    return JobId(base, None, body, max(1, tasks), exact, throttle)


def _ranges(body: str, text: str) -> tuple[list[tuple[int, int, int]], int, bool]:
    """(whole ranges as first, last, stride; tasks that a cut item stands for at least; whether nothing was cut)."""
    ranges: list[tuple[int, int, int]] = []
    lower_bound = 0
    exact = True
    for item in body.split(","):
        if "..." in item:
            exact = False
            lower_bound += _cut_item(item, text)
            continue
        m = _ITEM.fullmatch(item)
        if m is None:
            raise ParseError("not an array list", text)
        first, last, stride = int(m[1]), int(m[2] or m[1]), int(m[3] or 1)
        if last < first:
            raise ParseError("not an array list", text)
        ranges.append((first, last, stride))
    return ranges, lower_bound, exact


def _cut_item(item: str, text: str) -> int:
    """Tasks that an item ending in dots stands for at least: ``...`` 0, ``29...`` 1, ``12-2...`` 2.

    Slurm cuts by characters, so the number before the dots may have lost digits: it counts, its value does not.
    """
    m = _CUT_ITEM.fullmatch(item.removesuffix("..."))
    if m is None or not item.endswith("..."):
        raise ParseError("not an array list", text)
    if m[1] is None:
        return 0
    return 1 if m[2] is None else 2


def array_indices(spec: str) -> Iterator[int]:
    """Task numbers of ``1-5,9,20-40:10%3``, in order. Raises ParseError if the list is malformed or was cut."""
    body, percent, limit = spec.strip().partition("%")
    if percent and not (limit.isascii() and limit.isdigit()):
        raise ParseError("not an array list", spec)
    ranges, _, exact = _ranges(body, spec)
    if not exact:
        raise ParseError("array list was cut", spec)
    return chain.from_iterable(range(first, last + 1, stride) for first, last, stride in ranges)


def count_array(spec: str) -> int:
    """Tasks of an array list as typed after ``--array`` or printed; raises ParseError as :func:`array_indices`."""
    body = spec.strip().partition("%")[0]
    ranges, _, exact = _ranges(body, spec)
    if not exact:
        raise ParseError("array list was cut", spec)
    return sum((last - first) // stride + 1 for first, last, stride in ranges)


def format_job_id(job: JobId) -> str:
    """The id as Slurm prints it; :func:`parse_job_id` gives the same JobId back."""
    out = str(job.base)
    if job.array_spec is not None:
        throttle = f"%{job.throttle}" if job.throttle is not None else ""
        out += f"_[{job.array_spec}{throttle}]"
    elif job.array_task is not None:
        out += f"_{job.array_task}"
    elif job.het_offset is not None:
        out += f"+{job.het_offset}"
    return out if job.step is None else f"{out}.{job.step}"
