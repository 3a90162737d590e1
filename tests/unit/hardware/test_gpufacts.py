"""Type names of the field, and the configuration's word over the table's."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.hardware.gpufacts import gpu_fact, normal
from queuecast.hardware.gputable import ROWS


@pytest.mark.parametrize(
    ("name", "model", "gib"),
    [
        ("a100_80g", "A100", 80),
        ("a100", "A100", 40),
        ("nvidia_a100-sxm4-80gb", "A100 SXM", 80),
        ("NVIDIA_A100-PCIE-40GB", "A100 PCIe", 40),
        ("a100-40gb-sxm4", "A100 SXM", 40),
        ("v100", "V100", 16),
        ("tesla_v100-sxm2-32gb", "V100 SXM", 32),
        ("V100S", "V100S", 32),
        ("p100", "P100", 12),
        ("t4", "T4", 16),
        ("a10", "A10", 24),
        ("a30", "A30", 24),
        ("a40", "A40", 48),
        ("l4", "L4", 24),
        ("l40", "L40", 48),
        ("nvidia_l40s", "L40S", 48),
        ("h100", "H100", 80),
        ("nvidia_h100_80gb_hbm3", "H100 SXM", 80),
        ("h100_nvl", "H100 NVL", 94),
        ("h100-pcie", "H100 PCIe", 80),
        ("h200", "H200", 141),
        ("h20", "H20", 96),
        ("a800", "A800", 40),
        ("h800", "H800", 80),
        ("geforce_rtx_3090", "RTX 3090", 24),
        ("rtx4090", "RTX 4090", 24),
        ("rtx_6000_ada", "RTX 6000 Ada", 48),
        ("quadro_rtx_6000", "Quadro RTX 6000", 24),
        ("rtx_a6000", "RTX A6000", 48),
        ("amd_instinct_mi210", "MI210", 64),
        ("mi250x", "MI250X", 64),
        ("mi300x", "MI300X", 192),
        ("ascend910b", "Ascend 910B", 32),
        ("1g.10gb", "MIG", 10),
        ("a100_3g.40gb", "A100 MIG 3g", 40),
        ("nvidia_a100_1g.5gb", "A100 MIG 1g", 5),
    ],
)
def test_names_of_the_field(name: str, model: str, gib: float) -> None:
    fact = gpu_fact(name)
    assert fact is not None
    assert (fact.model, fact.memory_gib) == (model, gib)
    assert fact.type == name.casefold()


@pytest.mark.parametrize("name", ["", "gpu", "titan", "a1000", "xa100", "a100x", "v1000", "gb", "80gb", "rtx"])
def test_other_names_are_not_guessed(name: str) -> None:
    assert gpu_fact(name) is None


def test_two_sizes_take_the_smaller_and_say_so() -> None:
    fact = gpu_fact("v100")
    assert fact is not None
    assert any("16 or 32" in note and "[gpus.v100]" in note for note in fact.notes)
    named = gpu_fact("v100_32gb")
    assert named is not None
    assert not any("16 or 32" in note for note in named.notes)


def test_the_site_knows_better() -> None:
    told = {"A100": {"memory_gib": 80, "nvlink": True}, "warp9": {"memory_gib": 100, "fp16_tflops": 500.0}, "odd": {"nvlink": True}}
    fact = gpu_fact("a100", told)
    assert fact is not None
    assert (fact.memory_gib, fact.link) == (80, "nvlink")
    assert not any("40 or 80" in note for note in fact.notes)
    new = gpu_fact("warp9", told)
    assert new is not None
    assert (new.memory_gib, new.tflops("fp16"), new.tflops("bf16")) == (100, 500, None)
    assert gpu_fact("odd", told) is None  # without its memory nothing can be judged


def test_no_bf16_before_ampere() -> None:
    for name, has in (("v100", False), ("t4", False), ("p100", False), ("a100", True), ("rtx3090", True), ("mi210", True)):
        fact = gpu_fact(name)
        assert fact is not None
        assert fact.has_bf16 is has


def test_a_slice_is_a_part() -> None:
    part, whole = gpu_fact("a100_1g.10gb"), gpu_fact("a100_80gb")
    assert part is not None
    assert whole is not None
    assert part.slice
    assert part.tflops("bf16") == pytest.approx(312 / 7)
    assert part.bandwidth_gbs == pytest.approx(whole.bandwidth_gbs / 8 if whole.bandwidth_gbs else None)


def test_the_table_is_sound() -> None:
    names = [n for row in ROWS for n in row.names]
    assert len(names) == len(set(names))
    for row in ROWS:
        assert list(row.memory_gib) == sorted(row.memory_gib)
        assert len(row.bandwidth) in (1, len(row.memory_gib))
        assert row.fp16 >= row.fp32 or row.fp16 > 0
        fact = gpu_fact(row.names[0])
        assert fact is not None
        assert fact.model == row.model


@given(st.text(max_size=40))
def test_any_text_is_a_type_or_none(text: str) -> None:
    gpu_fact(text)
    assert normal(normal(text)) == normal(text)
