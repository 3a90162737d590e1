"""A replay of Slurm's scheduler from a state: what would start when. ``docs/twin.md`` tells what is modelled."""

from queuecast.twin.prepared import ready

__all__ = ["ready"]
