"""The form for a task: a model and what is done with it, kept in the link, and read from there as a question."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import cast, get_args

import streamlit as st

from queuecast.answers.suggestion import Question
from queuecast.errors import UsageError
from queuecast.hardware.modelshapes import SHAPES, Parts, find_shape
from queuecast.hardware.taskfit import Again, Choice
from queuecast.hardware.taskmemory import Mode, Precision, Task
from queuecast.i18n import N_, _

MODES = {"full": N_("full training"), "lora": N_("LoRA"), "inference": N_("inference")}
SHARDINGS = {
    "auto": N_("what fits"),
    "none": N_("none (DDP)"),
    "zero2": N_("ZeRO-2"),
    "zero3": N_("ZeRO-3, FSDP"),
    "tp": N_("tensor parallel"),
}
AGAIN = {"auto": N_("if needed"), "on": N_("always"), "off": N_("never")}
MOST = {"batch": 10**6, "seq": 10**8, "lora_rank": 10**5, "layers": 10**4, "hidden": 10**7, "heads": 10**5, "kv_heads": 10**5,
        "ffn": 10**7, "vocab": 10**7}  # fmt: skip
"""The largest whole numbers that are taken; the least is 1."""

USUAL = {"batch": 8, "seq": 4096, "lora_rank": 16}
SHAPE = ("layers", "hidden", "heads", "kv_heads", "ffn", "vocab")
WORDS = ("on", "params", "active", "time")
OWN = ("model", "mode", "precision", "hours", "sharding", "checkpointing", "scores", *MOST, "on", "params", "active")
"""The parameters of the link that a task alone has."""

SHARED = ("partition", "account", "qos", "time")
"""Those that it has in common with a request."""

LONGEST_H = 24 * 365.0


def asked_task() -> dict[str, str]:
    """The task in the link; empty if the link asks for something else."""
    link = {k: v for k in (*OWN, *SHARED) if (v := st.query_params.get(k, ""))}
    return link if {"model", "precision", "layers"} & set(link) and not st.query_params.get("job") else {}


def to_task(link: Mapping[str, str]) -> Question:
    """The question that a link's parameters describe. Raises ``UsageError``."""
    numbers = {k: _whole(link, k, most) for k, most in MOST.items()}
    parts = Parts(**{k: numbers[k] for k in SHAPE}, params=link.get("params"), active=link.get("active"))
    shape = find_shape(link.get("model"), parts)
    mode, precision = cast(Mode, _one(link, "mode", get_args(Mode))), cast(Precision, _one(link, "precision", get_args(Precision), "bf16"))
    if precision in ("int8", "int4") and mode == "full":
        raise UsageError(
            _("weights of {precision} cannot be trained in full").format(precision=precision),
            _("choose LoRA on quantised weights, or bf16"),
        )
    batch, seq, rank = (numbers[k] or usual for k, usual in USUAL.items())
    task = Task(shape, mode, precision, seq=seq, flash=not link.get("scores"), lora_rank=rank)
    return Question(
        task,
        batch,
        _hours(link.get("hours", "")),
        link.get("on") if link.get("hours") else None,
        cast(Choice, _one(link, "sharding", tuple(SHARDINGS))),
        cast(Again, _one(link, "checkpointing", tuple(AGAIN))),
        tuple(p for p in link.get("partition", "").split(",") if p),
        link.get("account"),
        link.get("qos"),
        link.get("time"),
    )


def _whole(link: Mapping[str, str], name: str, most: int) -> int | None:
    text = link.get(name)
    if text is None:
        return None
    if not text.isdecimal() or len(text) > 12 or not 1 <= int(text) <= most:
        raise UsageError(
            _("{name} cannot be {text}").format(name=name, text=text), _("give a whole number from 1 to {most}").format(most=f"{most:,}")
        )
    return int(text)


def _one(link: Mapping[str, str], name: str, known: tuple[str, ...], usual: str | None = None) -> str:
    chosen = link.get(name, usual or known[0])
    if chosen not in known:
        raise UsageError(
            _("{name} cannot be {text}").format(name=name, text=chosen), _("choose one of {names}").format(names=", ".join(known))
        )
    return chosen


def _hours(text: str) -> float | None:
    if not text:
        return None
    try:
        hours = float(text)
    except ValueError:
        hours = math.nan
    if not 0 < hours <= LONGEST_H:
        raise UsageError(_("{text} hours is no run time").format(text=text), _("give hours above zero, up to a year"))
    return hours


def fill_task(link: Mapping[str, str]) -> None:
    """Put a link's task into the form's fields; what does not fit a field is left to ``to_task`` to tell."""
    state = st.session_state
    state["task_model"] = link.get("model") or None
    for key, known, usual in (
        ("mode", tuple(MODES), "full"),
        ("precision", get_args(Precision), "bf16"),
        ("sharding", tuple(SHARDINGS), "auto"),
        ("checkpointing", tuple(AGAIN), "auto"),
    ):
        state[f"task_{key}"] = chosen if (chosen := link.get(key, usual)) in known else usual
    for key, most in MOST.items():
        text = link.get(key, "")
        state[f"task_{key}"] = min(most, max(1, int(text))) if text.isdecimal() and len(text) < 12 else USUAL.get(key)
    try:
        state["task_hours"] = _hours(link.get("hours", ""))
    except UsageError:
        state["task_hours"] = None
    for key in WORDS:
        state[f"task_{key}"] = link.get(key, "")[:40]
    state["task_scores"] = bool(link.get("scores"))
    state["task_partition"] = [p for p in link.get("partition", "").split(",") if p]
    for key in ("account", "qos"):
        state[f"task_{key}"] = link.get(key) or None


def task_link() -> dict[str, str]:
    """What the form's fields say, as parameters of a link; the usual is left out but for what makes it a task."""
    state = st.session_state
    plain = ("model", "mode", "precision", "batch", "seq", *SHAPE, *WORDS, "account", "qos")
    link = {k: str(state[f"task_{k}"] or "").strip() for k in plain}
    link |= {k: v for k in ("sharding", "checkpointing") if (v := state[f"task_{k}"] or "auto") != "auto"}
    if state["task_mode"] == "lora" and state["task_lora_rank"] not in (None, USUAL["lora_rank"]):
        link["lora_rank"] = str(state["task_lora_rank"])
    if state["task_hours"]:
        link["hours"] = f"{state['task_hours']:g}"
    if state["task_scores"]:
        link["scores"] = "kept"
    link["partition"] = ",".join(state["task_partition"])
    link["precision"] = link["precision"] or "bf16"
    return {k: v for k, v in link.items() if v}


def task_keys() -> tuple[str, ...]:
    """The fields' places in the session."""
    return tuple(f"task_{k}" for k in (*OWN, *SHARED))


def task_fields(partitions: list[str], gpu_types: tuple[str, ...], accounts: list[str], qos: list[str]) -> None:
    """Draw the fields; they stand within a form."""
    names = [s.name for s in SHAPES]
    typed = st.session_state.get("task_model")
    if typed and typed not in names:
        names.append(typed)
    st.selectbox(
        _("Model size"),
        names,
        key="task_model",
        index=None,
        accept_new_options=True,
        placeholder="7b, 1.3b, 8x7b",
        help=_("One whose shape is known; of any other tell layers, width and heads below."),
    )
    st.segmented_control(_("What for"), list(MODES), format_func=lambda v: _(MODES[v]), key="task_mode", required=True, width="stretch")
    left, right = st.columns(2)
    left.selectbox(
        _("Precision"), list(get_args(Precision)), key="task_precision", help=_("int8 and int4: inference, or LoRA on quantised weights.")
    )
    right.number_input(
        _("Batch"), 1, MOST["batch"], key="task_batch", step=1, help=_("Sequences per optimiser step over all GPUs; inference: at once.")
    )
    left.number_input(_("Tokens"), 1, MOST["seq"], key="task_seq", step=1, help=_("Of each sequence; inference: prompt and answer."))
    right.number_input(
        _("Hours"),
        0.0,
        LONGEST_H,
        value=None,
        key="task_hours",
        step=1.0,
        format="%g",
        help=_("Run time on the GPUs named next. Empty: not known."),
    )
    example = f"{gpu_types[0] if gpu_types else 'a100'}:8"
    st.text_input(
        _("Hours are for"),
        key="task_on",
        placeholder=example,
        max_chars=40,
        help=_("GPU type and number that the hours were measured on. Empty: the smallest choice of the type this cluster has most of."),
    )
    with st.expander(_("Partition, account, time limit"), key="task_where"):
        st.multiselect(
            _("Partition"), partitions, key="task_partition", accept_new_options=True, select_all=False, placeholder=_("all with GPUs")
        )
        left, right = st.columns(2)
        left.selectbox(_("Account"), accounts, key="task_account", index=None, accept_new_options=True, placeholder=_("default"))
        right.selectbox(_("QOS"), qos, key="task_qos", index=None, accept_new_options=True, placeholder=_("default"))
        st.text_input(
            _("Time limit"), key="task_time", placeholder="1-00:00:00", max_chars=40, help=_("Empty: the longest expected run and a tenth.")
        )
    with st.expander(_("Sharding, checkpointing, LoRA rank"), key="task_how"):
        st.selectbox(_("Sharding"), list(SHARDINGS), format_func=lambda v: _(SHARDINGS[v]), key="task_sharding")
        left, right = st.columns(2)
        left.selectbox(_("Activation checkpointing"), list(AGAIN), format_func=lambda v: _(AGAIN[v]), key="task_checkpointing")
        right.number_input(_("LoRA rank"), 1, MOST["lora_rank"], key="task_lora_rank", step=1)
        st.checkbox(_("Attention without FlashAttention"), key="task_scores")
    with st.expander(_("Another model's shape"), key="task_shape"):
        st.caption(_("From the model's config.json: hidden_size, num_hidden_layers and so on. What is told here replaces the size's."))
        left, right = st.columns(2)
        labels = (_("Layers"), _("Width"), _("Heads"), _("Key-value heads"), _("Width of the MLP"), _("Vocabulary"))
        for place, key, label in zip((left, right) * 3, SHAPE, labels, strict=True):
            place.number_input(label, 1, MOST[key], value=None, key=f"task_{key}", step=1)
        left.text_input(_("All parameters"), key="task_params", placeholder="46.7b", max_chars=40, help=_("Of a mixture of experts."))
        right.text_input(_("Used per token"), key="task_active", placeholder="12.9b", max_chars=40)
