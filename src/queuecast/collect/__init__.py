"""Getting Slurm's text: from the live cluster, from recorded files, from the archive."""
