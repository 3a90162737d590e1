"""The review as rows: for other programs (fields separated by |) and for spreadsheets (CSV)."""

from __future__ import annotations

from collections.abc import Iterator

from queuecast.answers.rightsizing.overrequest_answer import Amounts, OverRequests
from queuecast.render.csvsafe import to_csv
from queuecast.render.words import safe

FIELDS = (
    *("by", "name", "user", "others", "jobs"),
    *(
        f"{r}_{what}"
        for r in ("gpu_h", "core_h", "mem_gib_h", "limit_h")
        for what in ("asked", "measured", "used", "reclaimable", "default")
    ),
    *("jobs_without_gpu_data", "jobs_without_cpu_data", "jobs_without_memory_data"),
)
PROPOSED = (
    *("user", "account", "partition", "name", "command", "jobs", "what", "asked", "proposed", "unit", "more_needed", "site_default"),
    *(
        "jobs_with_data",
        "jobs_without_data",
        "found_on",
        "risk",
        "gpu_h_saved",
        "core_h_saved",
        "mem_gib_h_saved",
        "limit_h_saved",
        "price",
    ),
    *("flags", "generated"),
)


def _rows(answer: OverRequests) -> Iterator[list[object]]:
    entries: list[tuple[str, str | None, str | None, int, int, Amounts]] = [("all", "", None, 0, answer.jobs, answer.total)]
    entries += [(by, g.name, g.user, g.rest, g.jobs, g.amounts) for by, groups in answer.groups.items() for g in groups]
    for by, name, user, rest, jobs, amounts in entries:
        cells: list[object] = [by, name, user, rest or None, jobs]
        for _resource, h in amounts.items():
            known = h.measured > 0
            used = [round(v, 3) if known else None for v in (h.used, h.reclaimable, h.by_default)]
            cells += [round(h.asked, 3), round(h.measured, 3), *used]
        yield [*cells, amounts.gpu.without, amounts.core.without, amounts.memory.without]


def _proposed(answer: OverRequests) -> Iterator[list[object]]:
    for p in answer.proposals.items:
        k, s = p.kind, p.saved
        for c in p.changes:
            e = c.evidence
            yield [
                *(k.user, k.account, k.partition, k.shown, k.command, p.jobs, c.what, c.asked, c.proposed, c.unit),
                *(_yes(c.more), _yes(c.site_default), e.n, e.without, e.rung, e.risk),
                *(round(v, 3) for v in (s.gpu_hours, s.core_hours, s.memory_gib_hours, s.limit_hours)),
                *(None if s.price is None else round(s.price, 2), " ".join(p.flags), _yes(p.generated)),
            ]


def _yes(value: bool) -> str:
    return "yes" if value else "no"


def parsable(answer: OverRequests) -> str:
    """Groups, fields separated by | with a header; empty where unknown."""
    lines = ["|".join(FIELDS)]
    lines += ["|".join(_flat(cell) for cell in row) for row in _rows(answer)]
    return "\n".join(lines)


def _flat(cell: object) -> str:
    return "" if cell is None else safe(str(cell)).replace("|", "/")


def groups_csv(answer: OverRequests) -> bytes:
    """The groups; no cell is taken for a formula."""
    return to_csv(FIELDS, _rows(answer))


def proposals_csv(answer: OverRequests) -> bytes:
    """Every proposed change, a row each; savings are those of the whole proposal."""
    return to_csv(PROPOSED, _proposed(answer))
