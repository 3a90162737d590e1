"""Whether the kernels are compiled already: the first run ever takes a minute or more, and the user should be told."""

from __future__ import annotations


def ready() -> bool:
    """False if the next run compiles first (on this machine for the first time, or after an update).

    Compiled kernels are kept beside the package, or in the user's cache directory where that cannot be written (numba).
    Imports numba; True where there is none (nothing to compile).
    """
    from queuecast.twin.loop import run

    if getattr(run, "signatures", ()) or not hasattr(run, "signatures"):
        return True
    kept = getattr(getattr(run, "_cache", None), "_cache_file", None)
    load = getattr(kept, "_load_index", None)  # numba tells it nowhere else; without it a needless notice is all that happens
    return bool(load()) if callable(load) else False


__all__ = ["ready"]
