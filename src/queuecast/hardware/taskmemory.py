"""Memory that a task needs on each GPU, in bytes, part by part. Every part is a published formula or a stated allowance.

- Model states: 16 bytes per trained parameter in mixed precision with Adam (2 weights, 2 gradients, 4 + 4 + 4 master weights and
  moments), and what sharding over N GPUs leaves of it: Rajbhandari et al. 2020, ZeRO, section 3 and figure 1.
- Activations: Korthikanti et al. 2022, Reducing Activation Recomputation in Large Transformer Models, equations 1, 2 and 4 and
  section 4.3; split here into its terms, so that gated MLPs, grouped key-value heads and experts can be told apart.
- LoRA: rank x (inputs + outputs) trained parameters per adapted matrix: Hu et al. 2021, section 4.1.
- KV cache: 2 x layers x key-value width x tokens x bytes: Kwon et al. 2023 (vLLM), section 3; Pope et al. 2022, section 3.3.
- Attention without a stored score matrix: Dao et al. 2022, FlashAttention.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from queuecast.hardware.modelshapes import Shape

Mode = Literal["full", "lora", "inference"]
Precision = Literal["bf16", "fp16", "fp32", "int8", "int4"]
Sharding = Literal["none", "zero2", "zero3", "tp"]
"""none: each GPU holds all (DDP). zero2: gradients and optimiser states are split. zero3: weights, too (FSDP's full sharding).
tp: tensor parallel with sequence parallel: every matrix and activation is split; within one node only."""

BYTES: dict[Precision, float] = {"bf16": 2.0, "fp16": 2.0, "fp32": 4.0, "int8": 1.0, "int4": 0.5}
GIB = 2**30

CONTEXT_BYTES = 1.5 * GIB
"""Allowance per GPU: CUDA or HIP context, libraries' workspaces, buffers of the communication library. Not measured here."""

USABLE = 0.94
"""Share of the nominal memory that is counted on: ECC and the driver keep up to 6 % (an L40S or A40 of 48 GB shows 45 GiB)."""

FRAGMENTATION = 0.05
"""Allowance for what the framework's allocator cannot use, of the parts that come and go (activations, logits)."""

PREFILL_TOKENS = 8192
"""Inference engines read a prompt in chunks of at most that many tokens (assumption)."""


@dataclass(frozen=True)
class Task:
    """What is to be run. ``micro_batch``: sequences that one data-parallel rank works on at once. ``seq``: tokens of each; for
    inference all tokens kept of it, prompt and answer. ``checkpointing``: activations are computed again instead of kept, but for each
    layer's input. ``flash``: attention scores are not kept. ``lora_rank``: of adapters on all matrices of each layer."""

    shape: Shape
    mode: Mode
    precision: Precision
    micro_batch: int = 1
    seq: int = 4096
    checkpointing: bool = False
    flash: bool = True
    lora_rank: int = 16

    def with_(self, *, micro_batch: int, checkpointing: bool) -> Task:
        """The same with another way to run it."""
        return replace(self, micro_batch=micro_batch, checkpointing=checkpointing)


@dataclass(frozen=True)
class Memory:
    """Bytes on one GPU; ``total`` is their sum."""

    weights: float
    gradients: float
    optimiser: float
    activations: float
    logits: float
    kv_cache: float
    gathered: float
    overhead: float

    @property
    def total(self) -> float:
        """All parts."""
        return sum(self.parts().values())

    def parts(self) -> dict[str, float]:
        """By name, in the order of the fields."""
        return {
            "weights": self.weights,
            "gradients": self.gradients,
            "optimiser": self.optimiser,
            "activations": self.activations,
            "logits": self.logits,
            "kv_cache": self.kv_cache,
            "gathered": self.gathered,
            "overhead": self.overhead,
        }


def lora_params(shape: Shape, rank: int) -> int:
    """Trained parameters with adapters on Q, K, V, output and the MLP's matrices: rank x (inputs + outputs) each."""
    h, kv, f = shape.hidden, shape.kv_width, shape.ffn
    attention = 2 * (h + h) + 2 * (h + kv)
    mlp = shape.experts * (3 if shape.gated else 2) * (h + f)
    return shape.layers * rank * (attention + mlp)


def layer_activation(shape: Shape, tokens: float, seq: int, width: float, *, flash: bool) -> float:
    """Bytes kept of one layer for the backward pass; ``width`` is bytes per value (2 for bf16).

    For a plain GPT layer in 16 bit this is s b h (34 + 5 a s / h) with the scores, and 34 s b h without (Korthikanti et al., equations
    1 and 4): norms 4h; attention 11h (input 2, Q and K 4, V 2, output's input 2, mask 1); MLP 19h (input 2, the wide part 8 + 8, mask 1).
    Models with gated MLPs use no dropout, so no masks; their wide part is kept four times (both projections, the activation, the product).
    """
    h, kv, f = shape.hidden, shape.kv_width, shape.ffn
    mask = 0.0 if shape.gated else float(h)  # one byte per value, whatever the precision
    norms = 2 * h * width
    attention = (3 * h + 2 * kv) * width + mask
    mlp = (h + shape.active * f * (4 if shape.gated else 2)) * width + mask
    scores = 0.0 if flash else shape.heads * seq * (2 * width + 1)  # softmax and its dropout, with a mask of one byte
    return tokens * (norms + attention + mlp + scores)


def activation_bytes(task: Task) -> float:
    """Activations of one data-parallel rank, without sharding: all layers, or with checkpointing each layer's input
    (2 s b h L, Korthikanti et al., section 5) and one layer computed again."""
    width = max(2.0, BYTES[task.precision])
    tokens = float(task.micro_batch * task.seq)
    layer = layer_activation(task.shape, tokens, task.seq, width, flash=task.flash)
    if task.mode == "inference":
        return layer * min(1.0, PREFILL_TOKENS / tokens) if task.flash else layer
    if task.checkpointing:
        kept = tokens * task.shape.hidden * width
        return min(task.shape.layers * layer, task.shape.layers * kept + layer)
    return task.shape.layers * layer


def logits_bytes(task: Task) -> float:
    """Output of the vocabulary in fp32 (4 s b v, Korthikanti et al., section 4.3) and, in training, its gradient beside it. Inference
    needs the last token of each sequence only. Frameworks that compute the loss in chunks need less."""
    if task.mode == "inference":
        return 4.0 * task.micro_batch * task.shape.vocab
    return 8.0 * task.micro_batch * task.seq * task.shape.vocab


def kv_cache_bytes(shape: Shape, sequences: int, tokens: int, width: float) -> float:
    """Keys and values of every layer and token: 2 x layers x kv width x tokens x bytes."""
    return 2.0 * shape.layers * shape.kv_width * sequences * tokens * width


def memory(task: Task, gpus: int = 1, sharding: Sharding = "none") -> Memory:
    """What each of ``gpus`` holds. Raises ``ValueError`` for counts below one.

    ``micro_batch`` counts per data-parallel rank: each GPU, or with tensor parallelism all of them together.
    """
    if gpus < 1 or task.micro_batch < 1 or task.seq < 1:
        raise ValueError("counts start at one")
    n = float(gpus)
    shape = task.shape
    width = BYTES[task.precision]
    trained = {"full": shape.params, "lora": lora_params(shape, task.lora_rank), "inference": 0}[task.mode]
    frozen = 0 if task.mode == "full" else shape.params
    # trained weights in 8 or 4 bit do not exist: adapters are kept in 16
    weights = frozen * width + trained * max(2.0, width)
    gradients = trained * max(2.0, width)
    optimiser = trained * (8.0 if task.precision == "fp32" else 12.0)
    activations, logits = activation_bytes(task), logits_bytes(task)
    kv = kv_cache_bytes(shape, task.micro_batch, task.seq, max(2.0, width)) if task.mode == "inference" else 0.0
    gathered = 0.0
    if sharding in ("zero2", "zero3"):
        gradients, optimiser = gradients / n, optimiser / n
    if sharding == "zero3":
        # two units at a time are whole again: the one in use, and the next
        unit = max(shape.layer_params, shape.embedding_params) * width
        gathered = min(2.0 * unit, weights * (1 - 1 / n))
        weights = weights / n
    if sharding == "tp":
        weights, gradients, optimiser, kv = weights / n, gradients / n, optimiser / n, kv / n
        activations, logits = activations / n, logits / n
    overhead = CONTEXT_BYTES + FRAGMENTATION * (activations + logits)
    return Memory(weights, gradients, optimiser, activations, logits, kv, gathered, overhead)
