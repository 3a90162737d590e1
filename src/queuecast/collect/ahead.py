"""One step ahead: the next block is cut in another thread while this one is converted."""

from __future__ import annotations

import queue
import threading
from collections.abc import Iterator
from typing import TypeVar

T = TypeVar("T")


def ahead(items: Iterator[T]) -> Iterator[T]:
    """The same items, each made while the one before is used; at most two are held.

    What the items' iterator raises is raised here. Leaving the loop early ends the thread.
    """
    made: queue.Queue[tuple[bool, T | BaseException | None]] = queue.Queue(maxsize=1)
    left = threading.Event()

    def put(entry: tuple[bool, T | BaseException | None]) -> bool:
        while not left.is_set():
            try:
                made.put(entry, timeout=0.1)
                return True
            except queue.Full:
                continue
        return False

    def run() -> None:
        try:
            for item in items:
                if not put((True, item)):
                    return
            put((False, None))
        except BaseException as error:  # handed over to the thread that waits
            put((False, error))

    thread = threading.Thread(target=run, name="framing", daemon=True)
    thread.start()
    try:
        while True:
            more, item = made.get()
            if not more:
                if isinstance(item, BaseException):
                    raise item
                return
            yield item  # type: ignore[misc]  # an item where more is true
    finally:
        left.set()
        thread.join()
