"""Why a job failed: its class, the evidence, whose turn it is."""
