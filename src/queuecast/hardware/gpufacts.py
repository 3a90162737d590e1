"""What a GPU type of Slurm's GRES is: memory, throughput, interconnect, by its normalised name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, replace

from queuecast.hardware.gputable import MIG_SLICES, ROWS, Link, Row
from queuecast.i18n import _
from queuecast.slurmtext.gres import mig_of_type

_MEMORY = re.compile(r"(?<![a-z0-9])(\d{1,3})(?:gb?|gib)(?![a-z0-9])")
_VENDOR = re.compile(r"\b(nvidia|tesla|geforce|quadro|amd|instinct|huawei|gpu)\b")


_FORMS = frozenset({"P100", "V100", "H100", "H800"})  # the throughput differs, too


@dataclass(frozen=True)
class GpuFact:
    """One GPU (or MIG slice) as a job gets it.

    ``type``: as Slurm names it, case-folded. ``memory_gib``: nominal. Throughputs are public peaks, dense, in TFLOP/s; None if not
    known, or if the precision has no fast units (``has_bf16`` False). ``bandwidth_gbs``: memory bandwidth in GB/s. ``slice``: a MIG
    slice, which cannot be joined with others. ``notes``: what was assumed, as sentences.
    """

    type: str
    model: str
    memory_gib: float
    fp16_tflops: float | None
    bf16_tflops: float | None
    fp32_tflops: float | None
    bandwidth_gbs: float | None
    link: Link
    has_bf16: bool = True
    slice: bool = False
    notes: tuple[str, ...] = ()

    def tflops(self, precision: str) -> float | None:
        """Peak for ``bf16``, ``fp16`` or ``fp32``; 8 and 4 bit weights are computed with in 16 bit."""
        if precision == "fp32":
            return self.fp32_tflops
        if precision == "fp16" or not self.has_bf16:
            return self.fp16_tflops
        return self.bf16_tflops


def normal(gpu_type: str) -> str:
    """Lower case, dashes as separators, without the vendor: ``NVIDIA_A100-SXM4-80GB`` is ``a100-sxm4-80gb``."""
    plain = re.sub(r"[^a-z0-9.]+", "-", gpu_type.casefold())
    return re.sub(r"-+", "-", _VENDOR.sub("-", plain)).strip("-")


def _pattern(names: tuple[str, ...]) -> re.Pattern[str]:
    words = "|".join(re.escape(n).replace(r"\-", "-?") for n in sorted(names, key=len, reverse=True))
    return re.compile(rf"(?:^|-)(?:{words})(?=$|-)")


_PATTERNS = tuple((_pattern(row.names), row) for row in ROWS)


def _row(name: str) -> Row | None:
    """The row whose name covers most of the type's name."""
    best: tuple[int, Row] | None = None
    for pattern, row in _PATTERNS:
        for found in pattern.finditer(name):
            length = len(found[0])
            if best is None or length > best[0]:
                best = (length, row)
    if best is None:
        return None
    # sxm4-40gb may stand apart from the model, as in a100-40gb-sxm4
    for form in ("sxm", "pcie", "nvl"):
        if re.search(rf"(?:^|-){form}\d?(?:$|-)", name):
            base = best[1].model.split(" ")[0]
            wanted = {"sxm": "SXM", "pcie": "PCIe", "nvl": "NVL"}[form]
            return next((r for r in ROWS if r.model == f"{base} {wanted}"), best[1])
    return best[1]


def gpu_fact(gpu_type: str, overrides: Mapping[str, Mapping[str, float | bool]] | None = None) -> GpuFact | None:
    """Facts of a GRES type; None if the type is not known and the configuration does not tell its memory.

    ``overrides``: by type as Slurm names it, any of ``memory_gib``, ``fp16_tflops``, ``bf16_tflops``, ``fp32_tflops``,
    ``bandwidth_gbs``, ``nvlink``: the site knows better than the name.
    """
    told = {k.casefold(): v for k, v in (overrides or {}).items()}.get(gpu_type.casefold())
    fact = _known(gpu_type, told is not None and "memory_gib" in told)
    return fact if told is None else _overridden(gpu_type, fact, told)


def _known(gpu_type: str, memory_told: bool) -> GpuFact | None:
    kind = gpu_type.casefold()
    mig = mig_of_type(kind)
    row = _row(normal(mig.model if mig else kind))
    if mig is not None:
        return _mig(kind, mig.slices, mig.memory_gb, row)
    if row is None:
        return None
    notes = []
    said = [int(m) for m in _MEMORY.findall(normal(kind))]
    size = next((m for m in row.memory_gib if said and abs(m - said[-1]) <= 2), None)
    if size is None:
        size = row.memory_gib[0]
        if said:
            notes.append(
                _("{type}: no {model} with {said} GB is known; {size} GiB is taken.").format(
                    type=gpu_type, model=row.model, said=said[-1], size=size
                )
            )
        elif len(row.memory_gib) > 1 and not memory_told:
            notes.append(
                _("{type}: sold with {sizes} GiB, the name does not say; {size} GiB is taken. Set [gpus.{key}] memory_gib.").format(
                    type=gpu_type, sizes=_(" or ").join(map(str, row.memory_gib)), size=size, key=kind
                )
            )
    if row.link == "varies" and row.model in _FORMS:
        notes.append(_("{type}: SXM or PCIe is not said; the lower throughput, that of PCIe, is taken.").format(type=gpu_type))
    if row.of:
        notes.append(f"{gpu_type}: {row.of}.")
    at = row.memory_gib.index(size)
    bandwidth = row.bandwidth[at if len(row.bandwidth) > 1 else 0]
    return GpuFact(
        kind, row.model, float(size), row.fp16, row.bf16, row.fp32, bandwidth, row.link, row.bf16 is not None, notes=tuple(notes)
    )


def _mig(kind: str, slices: int, memory: int, row: Row | None) -> GpuFact:
    """A MIG slice: memory by its profile, compute by its slices, bandwidth by its share of the memory."""
    note = _("{type}: a MIG slice; slices cannot work together on one model.").format(type=kind)
    if row is None:
        return GpuFact(kind, "MIG", float(memory), None, None, None, None, "none", True, True, (note,))
    share = slices / (4 if row.model == "A30" else MIG_SLICES)
    # the GPU's own size is not told: the one with the least bandwidth for that profile is taken
    per_gib = [row.bandwidth[i if len(row.bandwidth) > 1 else 0] / size for i, size in enumerate(row.memory_gib) if size >= memory]
    bandwidth = min(per_gib, default=row.bandwidth[-1] / row.memory_gib[-1]) * min(memory, row.memory_gib[-1])
    bf16 = None if row.bf16 is None else row.bf16 * share
    return GpuFact(
        kind,
        f"{row.model} MIG {slices}g",
        float(memory),
        row.fp16 * share,
        bf16,
        row.fp32 * share,
        bandwidth,
        "none",
        bf16 is not None,
        True,
        (note,),
    )


def _overridden(gpu_type: str, fact: GpuFact | None, told: Mapping[str, float | bool]) -> GpuFact | None:
    if fact is None:
        if "memory_gib" not in told:
            return None
        fact = GpuFact(gpu_type.casefold(), gpu_type.casefold(), 0.0, None, None, None, None, "varies")
    numbers = {k: float(v) for k, v in told.items() if k != "nvlink"}
    fact = replace(fact, **numbers)  # type: ignore[arg-type]  # keys are fields, checked where the configuration is read
    if "bf16_tflops" in told:
        fact = replace(fact, has_bf16=True)
    if "nvlink" in told:
        fact = replace(fact, link="nvlink" if told["nvlink"] else "none")
    return fact
