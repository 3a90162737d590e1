"""Reading a stream of text: whole blocks, refusing what is not text, saying why a header is missing."""

from __future__ import annotations

import re
from typing import BinaryIO

from queuecast.errors import ParseError

MARKER = re.compile(rb"### (\d{9,11}) (\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d) ?(.*)")
MESSAGE = re.compile(rb"\s*(?:(?:sacct|squeue|sinfo|sprio|sshare|sacctmgr|scontrol|sdiag|sreport|sstat|slurm\w*)"
                     rb"(?:: (?:error|fatal|warning|info|debug\d?):| error:))|\s*slurm_\w+ error:|\s*You are attempting to")

def fill(stream: BinaryIO, size: int) -> bytes:
    """As many bytes as asked for unless the stream ends: decompressors and pipes give small pieces."""
    data = stream.read(size)
    if not data or len(data) == size:
        return data
    parts = [data]
    left = size - len(data)
    while left and (more := stream.read(left)):
        parts.append(more)
        left -= len(more)
    return b"".join(parts)


def refuse_binary(head: bytes) -> None:
    """Raises `ParseError` for a picture, an archive or anything else that is not text."""
    start = head[:4096]
    odd = sum(b < 32 and b not in (9, 10, 12, 13, 27, 30, 31) for b in start)
    if start.startswith((b"\x89PNG", b"\xff\xd8\xff", b"GIF8", b"%PDF", b"PK\x03\x04", b"PAR1", b"SQLite")) or odd > max(8,
        len(start) // 10):
        raise ParseError("not text")


def why_no_header(line: bytes, error: ParseError) -> tuple[str, str]:
    text = line.decode("utf-8", "replace").strip()
    if re.match(r"\d+([_+]\S*)?[^\w\s]", text):
        return "no header line (was it taken with -n or -h?)", text
    if re.match(r"(?i)usage\b", text):
        return "usage text of a command", text
    return error.cause, text
