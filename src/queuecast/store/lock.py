"""One writer at a time: an advisory lock on a file of the lake, released by the kernel when its holder dies."""

from __future__ import annotations

import fcntl
import json
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path

from queuecast.errors import LakeLocked, StoreError


@contextmanager
def writer_lock(path: Path, label: str, wait_s: float = 0.0) -> Iterator[None]:
    """Hold the lock at ``path`` for the block.

    Raises ``LakeLocked`` (naming the holder) if it is not free within ``wait_s`` seconds, ``StoreError`` if the
    folder cannot be written.
    """
    try:
        fd = os.open(path, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise StoreError(
            f"cannot write to {path.parent}: {error.strerror}",
            "choose a folder of your own with --lake, or ask its owner to run the collector",
        ) from error
    try:
        deadline = time.monotonic() + wait_s
        while True:
            try:
                fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    raise LakeLocked(_who_holds(fd), "let it finish, or give --wait SECONDS to wait for it") from None
                time.sleep(0.1)
        note = {"pid": os.getpid(), "host": socket.gethostname(), "doing": label, "since": datetime.now(UTC).isoformat(timespec="seconds")}
        os.ftruncate(fd, 0)
        os.pwrite(fd, json.dumps(note).encode(), 0)
        yield
    finally:
        os.close(fd)


def _who_holds(fd: int) -> str:
    try:
        note = json.loads(os.pread(fd, 4096, 0))
        return f"another queuecast writes to this lake: {note['doing']}, process {note['pid']} on {note['host']}, since {note['since']}"
    except (ValueError, KeyError, TypeError):
        return "another queuecast writes to this lake"
