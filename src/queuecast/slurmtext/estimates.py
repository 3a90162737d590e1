"""What ``sbatch --test-only`` answers on stderr: one sentence with a start time."""

from __future__ import annotations

import re
from dataclasses import dataclass

from queuecast.errors import ParseError
from queuecast.slurmtext.times import ParsedTime, parse_time

_START = re.compile(r"\bto start at (\S{1,40})")
_NODES = re.compile(r"\bon nodes (\S+)")
_PARTITION = re.compile(r"\bin partition (\S+)")
_PROCESSORS = re.compile(r"\busing ([0-9]{1,10}) processors")
_JOB = re.compile(r"\bJob ([0-9]{1,10})\b")


@dataclass(frozen=True, slots=True)
class StartAnswer:
    """``start`` as Slurm would plan a hypothetical job, tested against running jobs only, so it is optimistic.

    ``nodes`` is a host list as printed. ``fake_id`` is the number in the sentence: no such job exists.
    None: the sentence does not tell.
    """

    start: ParsedTime
    processors: int | None = None
    nodes: str | None = None
    partition: str | None = None
    fake_id: int | None = None


def parse_test_only(text: str, zone: str = "UTC") -> StartAnswer:
    """The first line that tells a start; other lines, such as a site's messages, are passed over.

    Only the time is required; words around it vary by version. Raises ParseError if no line has one (Slurm
    refuses the request: the text then is the reason).
    """
    for line in text.splitlines():
        m = _START.search(line)
        if m is None:
            continue
        processors, nodes, partition, job = (p.search(line) for p in (_PROCESSORS, _NODES, _PARTITION, _JOB))
        return StartAnswer(parse_time(m[1], zone), int(processors[1]) if processors else None, nodes[1] if nodes else None,
                        partition[1] if partition else None, int(job[1]) if job else None)
    raise ParseError("no start in the answer of --test-only", text.strip())
