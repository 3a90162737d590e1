"""Honest queue-wait intervals for Slurm, from the cluster's own history."""

__version__ = "0.1.0"
