"""Views over the tables, for SQL users: waits, and what jobs used. Each rule is the field's, with its reason."""

from __future__ import annotations

WAITS = """
CREATE VIEW waits AS
SELECT *,
       -- Slurm's "Planned": start minus eligible, never negative; unknown until the job has started
       CASE WHEN "start" IS NOT NULL THEN greatest(0, epoch("start") - epoch(coalesce(eligible, submit)))::BIGINT END AS wait_s,
       (epoch("start") - epoch(submit))::BIGINT AS submit_to_start_s
FROM jobs"""

USAGE = """
CREATE VIEW usage AS
SELECT cluster, job_id, job_id_text, submit, "user", account, partition, qos, state, "start", "end", elapsed_s,
       -- in the books, over but not booked yet, or still running (or waiting)
       CASE WHEN completeness = 3 AND "end" IS NOT NULL THEN 'settled'
            WHEN state NOT IN ('PENDING', 'RUNNING', 'SUSPENDED', 'CONFIGURING', 'COMPLETING') THEN 'ended_unsettled'
            ELSE 'running' END AS settlement,
       gpus_alloc, gpus_alloc * elapsed_s / 3600.0 AS gpu_hours,
       cpus_alloc, cpus_alloc * elapsed_s AS cpu_allocated_s, total_cpu_s,
       -- a running job's figures are not final; zero length and nothing measured have no efficiency
       CASE WHEN "end" IS NOT NULL AND cpus_alloc * elapsed_s > 0 THEN total_cpu_s / (cpus_alloc * elapsed_s) END AS cpu_efficiency,
       CASE WHEN "end" IS NULL THEN 'running'
            WHEN coalesce(cpus_alloc * elapsed_s, 0) = 0 OR total_cpu_s IS NULL THEN 'unknown'
            WHEN total_cpu_s > 1.2 * cpus_alloc * elapsed_s THEN 'implausible'
            -- CPU time of a step that was killed is counted too low
            WHEN state IN ('TIMEOUT', 'CANCELLED', 'PREEMPTED', 'NODE_FAIL', 'OUT_OF_MEMORY', 'DEADLINE') THEN 'too_low'
            ELSE 'ok' END AS cpu_quality,
       -- one task's highest peak over the steps: the job's own peak is at least that
       max_rss_bytes, mem_req_bytes, mem_alloc_bytes,
       CASE WHEN "end" IS NOT NULL THEN max_rss_bytes / nullif(coalesce(mem_alloc_bytes, mem_req_bytes), 0) END AS mem_efficiency_at_least
FROM jobs"""

ALL = (WAITS, USAGE)
NAMES = ("waits", "usage")
