"""Corrected copies of failed jobs, and the attempts they belong to."""
