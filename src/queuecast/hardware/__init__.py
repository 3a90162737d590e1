"""What GPUs can hold and do, and what a training or inference task needs. Pure calculators: no lake, no Slurm."""
