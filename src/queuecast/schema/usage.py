"""Tables of what jobs used as others than Slurm's accounting measured it: GPU samples and sums by job."""

from __future__ import annotations

from queuecast.schema.columns import CLUSTER, FLAG, INT, JOB_ID, NUM, OBSERVED, TEXT, TIME, Table, column

GPU_SAMPLES = Table(
    "gpu_samples",
    "Readings of single GPUs (nvidia-smi or DCGM as CSV): what each was doing at a moment, and for which job where that is known.",
    key=("cluster", "observed_at", "node", "gpu"),
    partition_time="observed_at",
    sort=("observed_at", "node"),
    columns=(
        CLUSTER, OBSERVED,
        column("node", TEXT, "node name", null="never"),
        column("gpu", TEXT, "index within the node, or UUID, as the source tells it", null="never"),
        column("gpu_name", TEXT, "product name as printed", null="not printed"),
        column("job_id", INT, "job that held the GPU", null="not told: the reader looks for the only GPU job on the node then"),
        column("util", NUM, "share of the last period with a kernel running, 0 to 1", null="not supported (MIG), or not printed"),
        column("mem_used_bytes", INT, "GPU memory in use", "bytes", null="not printed"),
        column("mem_total_bytes", INT, "GPU memory there is", "bytes", null="not printed"),
        column("power_w", NUM, "power draw", "W", null="not printed"),
        column("source", TEXT, "nvidia-smi, dcgm or generated", null="never"),
        column("generated", FLAG, "made by a script, not measured: shown with a mark wherever it shows", null="never"),
    ),
)

JOB_USE = Table(
    "job_use",
    "What a job used as told by something else than sacct: a table with one row per job (CSV), or DCGM's job statistics.",
    key=("cluster", "job_id", "job_submit", "source"),
    partition_time="job_submit",
    sort=("job_submit", "job_id"),
    columns=(
        CLUSTER, JOB_ID,
        column("job_submit", TIME, "submit of the attempt it belongs to", "UTC", null="never"),
        column("source", TEXT, "csv, dcgm or generated", null="never"),
        column("cpu_s", NUM, "CPU time used", "s", null="not measured"),
        column("mem_peak_bytes", INT, "highest memory of the whole job at one time", "bytes", null="not measured"),
        column("gpus_seen", INT, "GPUs that were measured", "GPUs", null="not measured"),
        column("gpus_used", INT, "of these, GPUs that ever computed", "GPUs", null="not measured"),
        column("gpu_util_mean", NUM, "mean over time and over its GPUs of the share with a kernel running, 0 to 1", null="not measured"),
        column("gpu_util_peak", NUM, "highest of one GPU, 0 to 1", null="not measured"),
        column("gpu_mem_peak_bytes", INT, "highest memory of one GPU", "bytes", null="not measured"),
        column("gpu_mem_total_bytes", INT, "memory that one GPU has", "bytes", null="not measured"),
        column("energy_joules", INT, "energy", "J", null="not measured"),
        column("generated", FLAG, "made by a script, not measured: shown with a mark wherever it shows", null="never"),
        OBSERVED,
    ),
)
