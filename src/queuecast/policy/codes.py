"""Slurm's reason code for a limit, by whose limit it is, what kind, and which resource broke it.

Spellings are not regular; the table follows ``enum job_state_reason`` and ``job_reason_codes.shtml``.
"""

from __future__ import annotations

from typing import Final

_RESOURCES: Final = ("cpu", "mem", "node", "gres", "license", "bb", "energy", "billing", "unknown")

_FAMILIES: Final[dict[tuple[str, str], str]] = {
    ("assoc", "grp_tres"): (
        "AssocGrpCpuLimit AssocGrpMemLimit AssocGrpNodeLimit AssocGrpGRES AssocGrpLicense AssocGrpBB AssocGrpEnergy "
        "AssocGrpBilling AssocGrpUnknown"
    ),
    ("assoc", "grp_tres_mins"): (
        "AssocGrpCPUMinutesLimit AssocGrpMemMinutes AssocGrpNodeMinutes AssocGrpGRESMinutes AssocGrpLicenseMinutes "
        "AssocGrpBBMinutes AssocGrpEnergyMinutes AssocGrpBillingMinutes AssocGrpUnknownMinutes"
    ),
    ("assoc", "grp_tres_run_mins"): (
        "AssocGrpCPURunMinutesLimit AssocGrpMemRunMinutes AssocGrpNodeRunMinutes AssocGrpGRESRunMinutes "
        "AssocGrpLicenseRunMinutes AssocGrpBBRunMinutes AssocGrpEnergyRunMinutes AssocGrpBillingRunMinutes AssocGrpUnknownRunMinutes"
    ),
    ("assoc", "max_tres_per_job"): (
        "AssocMaxCpuPerJobLimit AssocMaxMemPerJob AssocMaxNodePerJobLimit AssocMaxGRESPerJob AssocMaxLicensePerJob "
        "AssocMaxBBPerJob AssocMaxEnergyPerJob AssocMaxBillingPerJob AssocMaxUnknownPerJob"
    ),
    ("assoc", "max_tres_per_node"): (
        "AssocMaxCpuPerNode AssocMaxMemPerNode AssocMaxUnknownPerNode AssocMaxGRESPerNode AssocMaxUnknownPerNode "
        "AssocMaxBBPerNode AssocMaxEnergyPerNode AssocMaxBillingPerNode AssocMaxUnknownPerNode"
    ),
    ("assoc", "max_tres_mins_per_job"): (
        "AssocMaxCpuMinutesPerJobLimit AssocMaxMemMinutesPerJob AssocMaxNodeMinutesPerJob AssocMaxGRESMinutesPerJob "
        "AssocMaxLicenseMinutesPerJob AssocMaxBBMinutesPerJob AssocMaxEnergyMinutesPerJob AssocMaxBillingMinutesPerJob "
        "AssocMaxUnknownMinutesPerJob"
    ),
    ("qos", "grp_tres"): (
        "QOSGrpCpuLimit QOSGrpMemLimit QOSGrpNodeLimit QOSGrpGRES QOSGrpLicense QOSGrpBB QOSGrpEnergy QOSGrpBilling QOSGrpUnknown"
    ),
    ("qos", "grp_tres_mins"): (
        "QOSGrpCPUMinutesLimit QOSGrpMemoryMinutes QOSGrpNodeMinutes QOSGrpGRESMinutes QOSGrpLicenseMinutes QOSGrpBBMinutes "
        "QOSGrpEnergyMinutes QOSGrpBillingMinutes QOSGrpUnknownMinutes"
    ),
    ("qos", "grp_tres_run_mins"): (
        "QOSGrpCPURunMinutesLimit QOSGrpMemoryRunMinutes QOSGrpNodeRunMinutes QOSGrpGRESRunMinutes QOSGrpLicenseRunMinutes "
        "QOSGrpBBRunMinutes QOSGrpEnergyRunMinutes QOSGrpBillingRunMinutes QOSGrpUnknownRunMinutes"
    ),
    ("qos", "max_tres_per_job"): (
        "QOSMaxCpuPerJobLimit QOSMaxMemoryPerJob QOSMaxNodePerJobLimit QOSMaxGRESPerJob QOSMaxLicensePerJob QOSMaxBBPerJob "
        "QOSMaxEnergyPerJob QOSMaxBillingPerJob QOSMaxUnknownPerJob"
    ),
    ("qos", "max_tres_per_node"): (
        "QOSMaxCpuPerNode QOSMaxMemoryPerNode QOSMaxUnknownPerNode QOSMaxGRESPerNode QOSMaxUnknownPerNode QOSMaxBBPerNode "
        "QOSMaxEnergyPerNode QOSMaxBillingPerNode QOSMaxUnknownPerNode"
    ),
    ("qos", "max_tres_mins_per_job"): (
        "QOSMaxCpuMinutesPerJobLimit QOSMaxMemoryMinutesPerJob QOSMaxNodeMinutesPerJob QOSMaxGRESMinutesPerJob "
        "QOSMaxLicenseMinutesPerJob AssocMaxBBMinutesPerJob QOSMaxEnergyMinutesPerJob QOSMaxBillingMinutesPerJob "
        "QOSMaxUnknownMinutesPerJob"
    ),
    ("qos", "max_tres_per_user"): (
        "QOSMaxCpuPerUserLimit QOSMaxMemoryPerUser QOSMaxNodePerUserLimit QOSMaxGRESPerUser QOSMaxLicensePerUser QOSMaxBBPerUser "
        "QOSMaxEnergyPerUser QOSMaxBillingPerUser QOSMaxUnknownPerUser"
    ),
    ("qos", "max_tres_per_account"): (
        "MaxCpuPerAccount MaxMemoryPerAccount MaxNodePerAccount MaxGRESPerAccount MaxLicensePerAccount MaxBBPerAccount "
        "MaxEnergyPerAccount MaxBillingPerAccount MaxUnknownPerAccount"
    ),
    ("qos", "min_tres_per_job"): (
        "QOSMinCpuNotSatisfied QOSMinMemory QOSMinNode QOSMinGRES QOSMinLicense QOSMinBB QOSMinEnergy QOSMinBilling QOSMinUnknown"
    ),
}

TRES_CODES: Final[dict[tuple[str, str, str], str]] = {
    (owner, limit, resource): code
    for (owner, limit), codes in _FAMILIES.items()
    for resource, code in zip(_RESOURCES, codes.split(), strict=True)
}

COUNT_CODES: Final = {
    ("assoc", "grp_jobs"): "AssocGrpJobsLimit",
    ("assoc", "grp_submit"): "AssocGrpSubmitJobsLimit",
    ("assoc", "max_jobs"): "AssocMaxJobsLimit",
    ("assoc", "max_submit"): "AssocMaxSubmitJobLimit",
    ("assoc", "max_wall_s"): "AssocMaxWallDurationPerJobLimit",
    ("qos", "grp_jobs"): "QOSGrpJobsLimit",
    ("qos", "grp_submit"): "QOSGrpSubmitJobsLimit",
    ("qos", "max_jobs_per_user"): "QOSMaxJobsPerUserLimit",
    ("qos", "max_jobs_per_account"): "MaxJobsPerAccount",
    ("qos", "max_submit_per_user"): "QOSMaxSubmitJobPerUserLimit",
    ("qos", "max_submit_per_account"): "MaxSubmitJobsPerAccount",
    ("qos", "max_wall_s"): "QOSMaxWallDurationPerJobLimit",
}


def tres_code(owner: str, limit: str, tres: str) -> str:
    """The code for a TRES (``gres/gpu:a100``) above (or below) a limit of ``qos`` or ``assoc``."""
    kind = tres.partition("/")[0].partition(":")[0]
    return TRES_CODES[owner, limit, kind if kind in _RESOURCES else "unknown"]
