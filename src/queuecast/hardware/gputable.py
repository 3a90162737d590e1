"""Public data-sheet facts of GPUs. Peak throughputs are dense (without sparsity), with fp32 accumulation, in TFLOP/s.

Sources: the vendors' data sheets and architecture white papers (NVIDIA P100, V100, T4, A10, A30, A40, A100, A800, L4, L40, L40S,
H100, H200, H20, B200 and the GeForce and RTX series; AMD MI210, MI250, MI250X, MI300A, MI300X). Where a name stands for several
products, the smaller memory and the lower throughput are taken. There is no public data sheet for Ascend 910B: reported figures.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Link = Literal["nvlink", "bridge", "fabric", "none", "varies"]
"""nvlink: all GPUs of a node (SXM). bridge: NVLink between pairs at most, if bridges are built in. fabric: AMD Infinity Fabric or
Ascend HCCS. none: PCIe only. varies: depends on the form factor (SXM or PCIe), which the name does not tell."""


@dataclass(frozen=True)
class Row:
    """One product. ``names``: how it is written in type names, without the vendor; a dash stands for any separator or none.
    ``memory_gib``: sizes it was sold with, smallest first. ``bf16`` None: its tensor cores have no bf16. ``bandwidth``: GB/s of memory,
    one per size or one for all. ``of``: what the row's figures count for, where that needs saying."""

    model: str
    names: tuple[str, ...]
    memory_gib: tuple[int, ...]
    fp16: float
    bf16: float | None
    fp32: float
    bandwidth: tuple[float, ...]
    link: Link
    of: str = ""


PER_DIE = "one of the card's two dies, which Slurm and ROCm count as one GPU each"
REPORTED = "reported figures: there is no public data sheet"

ROWS = (
    Row("P100", ("p100",), (12, 16), 18.7, None, 9.3, (549, 732), "varies"),
    Row("V100", ("v100",), (16, 32), 112, None, 14.0, (900,), "varies"),
    Row("V100 SXM", ("v100-sxm2", "v100-sxm3"), (16, 32), 125, None, 15.7, (900,), "nvlink"),
    Row("V100 PCIe", ("v100-pcie",), (16, 32), 112, None, 14.0, (900,), "none"),
    Row("V100S", ("v100s", "v100s-pcie"), (32,), 130, None, 16.4, (1134,), "none"),
    Row("T4", ("t4",), (16,), 65, None, 8.1, (320,), "none"),
    Row("A2", ("a2",), (16,), 18, 18, 4.5, (200,), "none"),
    Row("A10", ("a10",), (24,), 125, 125, 31.2, (600,), "none"),
    Row("A10G", ("a10g",), (24,), 70, 70, 31.2, (600,), "none"),
    Row("A16", ("a16",), (16,), 17.9, 17.9, 4.5, (200,), "none"),
    Row("A30", ("a30",), (24,), 165, 165, 10.3, (933,), "bridge"),
    Row("A40", ("a40",), (48,), 149.7, 149.7, 37.4, (696,), "bridge"),
    Row("A100", ("a100",), (40, 80), 312, 312, 19.5, (1555, 1935), "varies"),
    Row("A100 SXM", ("a100-sxm4", "a100-sxm"), (40, 80), 312, 312, 19.5, (1555, 2039), "nvlink"),
    Row("A100 PCIe", ("a100-pcie",), (40, 80), 312, 312, 19.5, (1555, 1935), "bridge"),
    Row("A800", ("a800",), (40, 80), 312, 312, 19.5, (1555, 1935), "varies"),
    Row("A800 SXM", ("a800-sxm4", "a800-sxm"), (80,), 312, 312, 19.5, (2039,), "nvlink"),
    Row("L4", ("l4",), (24,), 121, 121, 30.3, (300,), "none"),
    Row("L40", ("l40",), (48,), 181, 181, 90.5, (864,), "none"),
    Row("L40S", ("l40s",), (48,), 362, 362, 91.6, (864,), "none"),
    Row("L20", ("l20",), (48,), 119.5, 119.5, 59.8, (864,), "none"),
    Row("H100", ("h100",), (80, 94), 756, 756, 51.0, (2000, 3350), "varies"),
    Row("H100 PCIe", ("h100-pcie",), (80,), 756, 756, 51.0, (2000,), "bridge"),
    Row("H100 NVL", ("h100-nvl",), (94,), 835, 835, 60.0, (3900,), "bridge"),
    Row("H100 SXM", ("h100-sxm5", "h100-sxm", "h100-80gb-hbm3", "h100-hbm3"), (80,), 989, 989, 67.0, (3350,), "nvlink"),
    Row("H800", ("h800",), (80,), 756, 756, 51.0, (2000,), "varies"),
    Row("H800 SXM", ("h800-sxm5", "h800-sxm"), (80,), 989, 989, 67.0, (3350,), "nvlink"),
    Row("H20", ("h20",), (96, 141), 148, 148, 44.0, (4000,), "nvlink"),
    Row("H200", ("h200", "h200-sxm5", "h200-sxm"), (141,), 989, 989, 67.0, (4800,), "nvlink"),
    Row("H200 NVL", ("h200-nvl",), (141,), 835, 835, 60.0, (4800,), "bridge"),
    Row("GH200", ("gh200",), (96, 144), 989, 989, 67.0, (4000, 4900), "varies"),
    Row("B200", ("b200",), (180,), 2250, 2250, 75.0, (7700,), "nvlink"),
    Row("GTX 1080 Ti", ("gtx-1080-ti", "1080-ti"), (11,), 11.3, None, 11.3, (484,), "none"),
    Row("RTX 2080 Ti", ("rtx-2080-ti", "2080-ti"), (11,), 53.8, None, 13.4, (616,), "bridge"),
    Row("RTX 3080", ("rtx-3080", "3080"), (10, 12), 59.5, 59.5, 29.8, (760,), "none"),
    Row("RTX 3090", ("rtx-3090", "3090", "rtx-3090-ti", "3090-ti"), (24,), 71, 71, 35.6, (936,), "bridge"),
    Row("RTX 4090", ("rtx-4090", "4090"), (24,), 165.2, 165.2, 82.6, (1008,), "none"),
    Row("RTX 5090", ("rtx-5090", "5090"), (32,), 209.5, 209.5, 104.8, (1792,), "none"),
    Row("Quadro RTX 6000", ("rtx-6000",), (24,), 130.5, None, 16.3, (672,), "bridge", "taken for the Quadro; an RTX 6000 Ada has 48 GiB"),
    Row("Quadro RTX 8000", ("rtx-8000",), (48,), 130.5, None, 16.3, (672,), "bridge"),
    Row("RTX 6000 Ada", ("rtx-6000-ada", "6000-ada", "rtx-6000-ada-generation"), (48,), 364.2, 364.2, 91.1, (960,), "none"),
    Row("RTX A5000", ("rtx-a5000", "a5000"), (24,), 111, 111, 27.8, (768,), "bridge"),
    Row("RTX A6000", ("rtx-a6000", "a6000"), (48,), 154.8, 154.8, 38.7, (768,), "bridge"),
    Row("MI100", ("mi100",), (32,), 184.6, 92.3, 23.1, (1229,), "bridge"),
    Row("MI210", ("mi210",), (64,), 181, 181, 22.6, (1638,), "bridge"),
    Row("MI250", ("mi250",), (64,), 181, 181, 22.6, (1638,), "fabric", PER_DIE),
    Row("MI250X", ("mi250x",), (64,), 191.5, 191.5, 23.9, (1638,), "fabric", PER_DIE),
    Row("MI300A", ("mi300a",), (128,), 980.6, 980.6, 122.6, (5300,), "fabric", "memory shared with the CPU"),
    Row("MI300X", ("mi300x",), (192,), 1307, 1307, 163.4, (5300,), "fabric"),
    Row("Ascend 910B", ("ascend-910b", "910b", "ascend910b"), (32, 64), 280, 280, 70.0, (800, 1600), "fabric", REPORTED),
)

MIG_SLICES = 7
"""Compute slices of an A100, H100 or H200 (A30: four)."""
