"""``queuecast suggest``: from a task to a request."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from queuecast.cli.common import (
    AtOption,
    ClusterOption,
    JsonOption,
    LakeOption,
    ParsableOption,
    UserOption,
    context,
    print_json,
    print_lines,
    width,
)
from queuecast.errors import UsageError
from queuecast.i18n import _

if TYPE_CHECKING:
    from queuecast.hardware.modelshapes import Shape
    from queuecast.hardware.taskmemory import Task

_S = typer.Option

ModeName = Literal["full", "lora", "inference"]
PrecisionName = Literal["bf16", "fp16", "fp32", "int8", "int4"]
ShardingName = Literal["auto", "none", "zero2", "zero3", "fsdp", "tp"]
AgainName = Literal["auto", "on", "off"]


def suggest(
    model: Annotated[str | None, _S("--model", metavar="SIZE", help="7b, 1.3B, 350m, 8x7b, or parts: --layers, --hidden, --heads.")] = None,
    mode: Annotated[ModeName, _S("--mode")] = "full",
    precision: Annotated[PrecisionName, _S("--precision", help="int8 and int4: inference, or LoRA on quantised weights.")] = "bf16",
    batch: Annotated[int, _S("--batch", metavar="N", help="Sequences per optimiser step over all GPUs; inference: at once.")] = 8,
    seq: Annotated[int, _S("--seq", metavar="TOKENS", help="Tokens per sequence; inference: prompt and answer.")] = 4096,
    hours: Annotated[float | None, _S("--hours", metavar="H", help="Run time on the GPUs of --on.")] = None,
    on: Annotated[str | None, _S("--on", metavar="TYPE:N", help="What --hours are for: a100:8 (default: the first option).")] = None,
    sharding: Annotated[ShardingName, _S("--sharding", help="tp: tensor parallel within a node.")] = "auto",
    checkpointing: Annotated[AgainName, _S("--checkpointing", help="Of activations.")] = "auto",
    no_flash: Annotated[bool, _S("--no-flash", help="Attention scores are kept (no FlashAttention).")] = False,
    lora_rank: Annotated[int, _S("--lora-rank", metavar="R")] = 16,
    layers: Annotated[int | None, _S("--layers")] = None,
    hidden: Annotated[int | None, _S("--hidden")] = None,
    heads: Annotated[int | None, _S("--heads")] = None,
    kv_heads: Annotated[int | None, _S("--kv-heads")] = None,
    ffn: Annotated[int | None, _S("--ffn", help="Width of the MLP.")] = None,
    vocab: Annotated[int | None, _S("--vocab")] = None,
    params: Annotated[str | None, _S("--params", metavar="SIZE", help="All parameters, where the shape does not tell (mixtures).")] = None,
    active: Annotated[str | None, _S("--active", metavar="SIZE", help="Parameters used per token (mixtures).")] = None,
    partition: Annotated[str | None, _S("-p", "--partition")] = None,
    account: Annotated[str | None, _S("-A", "--account")] = None,
    qos: Annotated[str | None, _S("-q", "--qos")] = None,
    time: Annotated[str | None, _S("-t", "--time", help="Time limit (default: the longest expected run and a tenth).")] = None,
    show_all: Annotated[bool, _S("--all", help="Every option, not only five.")] = False,
    user: UserOption = None,
    at: AtOption = None,
    as_json: JsonOption = False,
    parsable: ParsableOption = False,
    cluster: ClusterOption = None,
    lake: LakeOption = None,
) -> None:
    """Which GPUs hold this task, how many, and when would it start and finish on each?"""
    from queuecast.answers.forecast import Forecaster
    from queuecast.answers.suggest import suggest as answer_to
    from queuecast.answers.suggestion import Question
    from queuecast.config import load_hardware
    from queuecast.hardware.modelshapes import Parts, find_shape

    shape = find_shape(model, Parts(layers, hidden, heads, kv_heads, ffn, vocab, params, active))
    task = _task(shape, mode, precision, batch, seq, lora_rank, not no_flash)
    if hours is not None and not (0 < hours <= 24 * 365 and math.isfinite(hours)):
        raise UsageError(_("--hours {hours:g} is no run time").format(hours=hours), _("give hours above zero, for example --hours 20"))
    ctx = context(lake, cluster)
    forecaster = Forecaster(ctx.lake(), ctx.cluster)
    viewer = ctx.viewer(user)
    question = Question(
        task,
        batch,
        hours,
        on,
        "zero3" if sharding == "fsdp" else sharding,
        checkpointing,
        tuple(p for p in (partition or "").split(",") if p),
        account,
        qos,
        time,
    )
    answer = answer_to(forecaster, question, ctx.at(at, forecaster.lake, forecaster.cluster), viewer, load_hardware())
    if as_json:
        print_json(answer.as_json())
    elif parsable:
        from queuecast.render.suggest import parsable as rows

        print(rows(answer))
    else:
        from queuecast.render.suggest import suggest_lines

        print_lines(suggest_lines(answer, ctx.zone, width(), show_all=show_all))


def _task(shape: Shape, mode: ModeName, precision: PrecisionName, batch: int, seq: int, rank: int, flash: bool) -> Task:
    """Raises ``UsageError`` for counts and combinations that make no sense."""
    from queuecast.hardware.taskmemory import Task

    for name, value, most in (("--batch", batch, 10**6), ("--seq", seq, 10**8), ("--lora-rank", rank, 10**5)):
        if not 1 <= value <= most:
            raise UsageError(_("{name} {value} is out of range").format(name=name, value=value), _("give a whole number from 1 up"))
    if precision in ("int8", "int4") and mode == "full":
        raise UsageError(
            _("weights of {precision} cannot be trained in full").format(precision=precision),
            _("ask for --mode lora (QLoRA), or --precision bf16"),
        )
    return Task(shape, mode, precision, seq=seq, flash=flash, lora_rank=rank)
