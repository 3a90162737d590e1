"""Memory by published formulas: known figures of the papers, and what must hold for every shape."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.hardware.gpufacts import GpuFact
from queuecast.hardware.modelshapes import Parts, Shape, find_shape
from queuecast.hardware.taskfit import lay_out, usable_bytes
from queuecast.hardware.taskmemory import (
    GIB,
    Mode,
    Precision,
    Sharding,
    Task,
    activation_bytes,
    kv_cache_bytes,
    layer_activation,
    lora_params,
    memory,
)

SEVEN = find_shape("7b", Parts())
WAYS: tuple[Sharding, ...] = ("none", "zero2", "zero3", "tp")


@st.composite
def shapes(draw: st.DrawFn) -> Shape:
    kv = draw(st.sampled_from([1, 2, 4, 8]))
    heads = kv * draw(st.sampled_from([1, 2, 4]))
    experts = draw(st.sampled_from([1, 1, 4]))
    return Shape(
        "drawn",
        draw(st.integers(1, 48)),
        heads * draw(st.sampled_from([16, 64, 128])),
        heads,
        kv,
        draw(st.integers(64, 8192)),
        draw(st.integers(100, 100_000)),
        gated=draw(st.booleans()),
        tied=draw(st.booleans()),
        experts=experts,
        active=min(2, experts),
    )


modes: st.SearchStrategy[Mode] = st.sampled_from(["full", "lora", "inference"])
precisions: st.SearchStrategy[Precision] = st.sampled_from(["bf16", "fp16", "fp32", "int8", "int4"])
tasks = st.builds(
    Task, shapes(), modes, precisions, st.integers(1, 8), st.integers(1, 8192), st.booleans(), st.booleans(), st.integers(1, 64)
)


def test_sixteen_bytes_per_parameter() -> None:
    """ZeRO, figure 1: 7.5 B parameters need 120 GB; over 64 GPUs 16.6 GB with stage 2 and 1.9 GB with stage 3."""
    shape = find_shape(None, Parts(layers=32, hidden=4096, heads=32, params="7.5b"))
    task = Task(shape, "full", "fp16", 1, 1)

    def states(gpus: int, way: Sharding) -> float:
        m = memory(task, gpus, way)
        return (m.weights + m.gradients + m.optimiser) / 1e9

    assert states(1, "none") == pytest.approx(120)
    assert states(64, "none") == pytest.approx(120)
    assert states(64, "zero2") == pytest.approx(16.6, abs=0.05)
    assert states(64, "zero3") == pytest.approx(1.9, abs=0.05)


@given(st.integers(1, 16), st.sampled_from([64, 128]), st.integers(1, 8192), st.integers(1, 8))
def test_a_plain_gpt_layer_is_the_published_formula(heads: int, size: int, seq: int, batch: int) -> None:
    """Korthikanti et al., equation 1: s b h (34 + 5 a s / h); equation 4 without the scores: 34 s b h."""
    h = heads * size
    shape = Shape("gpt", 1, h, heads, heads, 4 * h, 1000, gated=False)
    tokens = seq * batch
    assert layer_activation(shape, tokens, seq, 2.0, flash=True) == 34 * tokens * h
    assert layer_activation(shape, tokens, seq, 2.0, flash=False) == pytest.approx(tokens * h * (34 + 5 * heads * seq / h))


def test_kv_cache_of_known_models() -> None:
    """Half a MiB per token for Llama 2 7B in 16 bit; a fourth of it per layer and token with 8 of 32 key-value heads."""
    assert kv_cache_bytes(SEVEN, 1, 1, 2.0) == 2**19
    assert kv_cache_bytes(find_shape("8b", Parts()), 1, 1, 2.0) == 2**17


def test_lora_counts_rank_times_both_ends() -> None:
    """r (d + k) per matrix: Llama 2 7B at rank 16 on every matrix has 39,976,960 (as peft prints for target all-linear)."""
    assert lora_params(SEVEN, 16) == 39_976_960
    assert lora_params(SEVEN, 32) == 2 * lora_params(SEVEN, 16)


@given(tasks, st.sampled_from([1, 2, 4, 8]), st.sampled_from(WAYS))
def test_parts_add_up_and_are_never_negative(task: Task, gpus: int, way: Sharding) -> None:
    m = memory(task, gpus, way)
    assert m.total == sum(m.parts().values())
    assert all(v >= 0 for v in m.parts().values())
    assert m.overhead >= 1.5 * GIB


@given(tasks, st.sampled_from([1, 2, 4, 8]), st.sampled_from(WAYS), st.integers(1, 4096))
def test_more_work_never_needs_less(task: Task, gpus: int, way: Sharding, more: int) -> None:
    from dataclasses import replace

    base = memory(task, gpus, way).total * (1 - 1e-9)
    assert memory(replace(task, micro_batch=task.micro_batch + more), gpus, way).total >= base
    assert memory(replace(task, seq=task.seq + more), gpus, way).total >= base
    assert memory(replace(task, lora_rank=task.lora_rank + more), gpus, way).total >= base
    for part in ("layers", "ffn", "vocab"):
        larger = replace(task.shape, **{part: getattr(task.shape, part) + more})
        assert larger.params > task.shape.params
        assert memory(replace(task, shape=larger), gpus, way).total >= base


@given(tasks, st.sampled_from([2, 4, 8]))
def test_sharding_never_needs_more(task: Task, gpus: int) -> None:
    totals = [memory(task, gpus, way).total for way in ("none", "zero2", "zero3")]
    assert totals[0] >= totals[1] >= totals[2] * (1 - 1e-9)
    assert memory(task, gpus, "tp").total <= totals[0]
    for way in WAYS:
        assert memory(task, 2 * gpus, way).total <= memory(task, gpus, way).total * (1 + 1e-9)


@given(tasks)
def test_checkpointing_never_keeps_more(task: Task) -> None:
    again, kept = (activation_bytes(task.with_(micro_batch=task.micro_batch, checkpointing=c)) for c in (True, False))
    assert again <= kept


def test_counts_start_at_one() -> None:
    for bad in (Task(SEVEN, "full", "bf16", 0), Task(SEVEN, "full", "bf16", 1, 0)):
        with pytest.raises(ValueError, match="start at one"):
            memory(bad)
    with pytest.raises(ValueError, match="start at one"):
        memory(Task(SEVEN, "full", "bf16"), 0)


def gpu(gib: float, *, slice_: bool = False) -> GpuFact:
    return GpuFact("x", "X", gib, 100, 100, 10, 1000, "nvlink", slice=slice_)


@given(tasks, st.integers(1, 32), st.sampled_from([1, 2, 3, 4, 6, 8]), st.sampled_from([16.0, 40.0, 80.0]), st.booleans())
def test_a_layout_fits_and_does_the_whole_batch(task: Task, batch: int, gpus: int, gib: float, one_node: bool) -> None:
    found = lay_out(task, batch, gpu(gib), gpus, one_node=one_node)
    if found is None:
        return
    assert found.memory.total <= usable_bytes(gpu(gib))
    assert found.headroom_bytes >= 0
    ranks = 1 if found.sharding == "tp" or task.mode == "inference" else gpus
    assert found.micro_batch * found.accumulation * ranks == batch
    if found.sharding == "tp":
        assert one_node
        assert task.shape.heads % gpus == 0
    again = memory(task.with_(micro_batch=found.micro_batch, checkpointing=found.checkpointing), gpus, found.sharding)
    assert again == found.memory


@given(tasks, st.integers(1, 16), st.sampled_from([1, 2, 4]))
def test_a_larger_gpu_holds_what_a_smaller_one_does(task: Task, batch: int, gpus: int) -> None:
    if lay_out(task, batch, gpu(40), gpus) is not None:
        assert lay_out(task, batch, gpu(80), gpus) is not None


def test_choices_are_kept_and_slices_stay_alone() -> None:
    task = Task(SEVEN, "full", "bf16", seq=4096)
    assert lay_out(task, 8, gpu(80), 1) is None
    found = lay_out(task, 8, gpu(80), 8)
    assert found is not None
    assert (found.sharding, found.checkpointing) == ("zero2", False)
    forced = lay_out(task, 8, gpu(80), 8, sharding="zero3", again="on")
    assert forced is not None
    assert (forced.sharding, forced.checkpointing) == ("zero3", True)
    small = Task(find_shape("125m", Parts()), "full", "bf16", seq=512)
    assert lay_out(small, 8, gpu(20, slice_=True), 1) is not None
    assert lay_out(small, 8, gpu(20, slice_=True), 2) is None
    split = lay_out(small, 8, gpu(20), 3)  # 8 sequences do not go into 3 ranks, 12 heads do
    assert split is not None
    assert split.sharding == "tp"
    assert lay_out(small, 8, gpu(20), 5) is None
