"""How a copy says whose copy it is: a word in the job's comment, which accounting keeps where the site stores comments."""

from __future__ import annotations

import re
from typing import Final

WORD: Final = "queuecast:parent="
_MARK = re.compile(r"(?:^|(?<=[\s;,]))queuecast:parent=([A-Za-z0-9_.-]{1,64})/([0-9]{1,10}(?:[_+][0-9]{1,10})?)(?=$|[\s;,])")
_UNSAFE = re.compile(r"[^A-Za-z0-9_.-]")
MOST: Final = 900
"""Slurm takes at most 1,024 characters of comment."""


def mark(cluster: str, job: str) -> str:
    """``queuecast:parent=campus/1234``; safe characters only."""
    return f"{WORD}{_UNSAFE.sub('_', cluster)[:64]}/{job}"


def marked(comment: str | None, cluster: str, job: str) -> str:
    """The comment with this parent: an earlier one is replaced, the rest stays. What no ``#SBATCH`` line can hold is dropped."""
    rest = _MARK.sub("", comment or "").strip(" ;,")
    if not rest.isprintable() or len(rest) > MOST:
        rest = ""
    return f"{rest};{mark(cluster, job)}" if rest else mark(cluster, job)


def parent_of(comment: str | None) -> tuple[str, str] | None:
    """(cluster, job) that the comment names as the parent; the last one where several are named. None without."""
    found = _MARK.findall(comment or "")
    return (str(found[-1][0]), str(found[-1][1])) if found else None


def same_cluster(name: str, cluster: str) -> bool:
    """Whether the cluster in a mark is this one."""
    return name.casefold() == _UNSAFE.sub("_", cluster)[:64].casefold()
