"""The question: a form, kept in the link, so that whoever opens the link asks the same."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import streamlit as st

from app.ui.shell import Frame
from app.ui.taskform import OWN, asked_task, fill_task, task_fields, task_keys, task_link
from queuecast.clock import parse_instant
from queuecast.errors import UsageError
from queuecast.i18n import N_, _
from queuecast.policy.readings import latest_reading
from queuecast.policy.request import Request, from_options
from queuecast.slurmtext.durations import format_limit

FIELDS = ("job", "partition", "gpu_type", "gpus", "nodes", "cpus", "mem", "time", "account", "qos")
"""The parameters of the link that make a question; ``at`` says when it is asked."""

REQUEST, TASK, JOB = N_("My request"), N_("My task"), N_("A job id")
MORE = "alternatives"
"""The parameter of the link that asks for what would start sooner, too."""

FIRST = datetime(2000, 1, 1, tzinfo=UTC)
MOST_GPUS, MOST_CPUS, MOST_NODES = 100_000, 10_000_000, 100_000


@dataclass(frozen=True)
class Choices:
    """What the cluster offers; empty where its configuration is not known."""

    partitions: tuple[str, ...]
    gpu_types: tuple[str, ...]
    accounts: tuple[str, ...]
    qos: tuple[str, ...]


def _read_choices(_frame: Frame, path: str, version: int, cluster: str) -> Choices:
    """Kept by path, version and cluster: Streamlit leaves out what begins with an underscore."""

    def names(table: str, column: str) -> tuple[str, ...]:
        rows = latest_reading(_frame.lake, table, cluster, _frame.now)
        return tuple(sorted({str(v) for v in rows[column].to_pylist() if v}))

    types = tuple(t for t in names("nodes", "gpu_type") if t != "mixed")
    return Choices(names("partitions", "partition"), types, names("associations", "account"), names("qos", "qos"))


_choices: Callable[[Frame, str, int, str], Choices] = st.cache_data(_read_choices, max_entries=16, show_spinner=False)


def choices(frame: Frame) -> Choices:
    """Partitions, GPU types, accounts and QOS to choose from."""
    return _choices(frame, str(frame.lake.path), frame.lake.manifest.version, frame.cluster)


def asked() -> dict[str, str]:
    """The question in the link; empty if nothing was asked yet."""
    return {k: v for k in FIELDS if (v := st.query_params.get(k, ""))}


def asked_at(frame: Frame) -> datetime:
    """The instant in the link, else the frame's own. Raises ``UsageError``."""
    text = st.query_params.get("at", "")
    if not text:
        return frame.default_at
    at = parse_instant(text, str(frame.zone))
    if not FIRST <= at <= frame.now + timedelta(minutes=5):
        raise UsageError(
            _("the moment {text} cannot be asked about").format(text=text),
            _("choose one up to now: the answer tells what was known then"),
        )
    return at


def to_request(question: Mapping[str, str], user: str | None) -> Request:
    """The request that a link's parameters describe. Raises ``UsageError``."""
    options = {k: question[k] for k in ("partition", "mem", "time", "account", "qos", "nodes") if k in question}
    gpus, kind = question.get("gpus", ""), question.get("gpu_type", "")
    if kind and not gpus:
        gpus = "1"
    if gpus:
        if not gpus.isdecimal() or int(gpus) > MOST_GPUS:
            raise UsageError(_("the number of GPUs cannot be {text}").format(text=gpus), _("give a whole number"))
        options["gpus"] = f"{kind}:{gpus}" if kind and int(gpus) else gpus
    cpus = question.get("cpus", "")
    if cpus and (not cpus.isdecimal() or int(cpus) > MOST_CPUS):
        raise UsageError(_("the number of CPUs cannot be {text}").format(text=cpus), _("give a whole number"))
    return from_options(options, user).merged(cpus=int(cpus) if cpus else None)


def ask(frame: Frame) -> None:
    """Draw the form; a press on its button rewrites the link."""
    _follow_link(frame)
    mode = st.segmented_control(
        _("Ask about"), [REQUEST, TASK, JOB], format_func=_, key="mode", required=True, label_visibility="collapsed", width="stretch"
    )
    with st.form("question", border=True):
        if mode == JOB:
            st.text_input(_("Job id"), key="job", placeholder="1234, 1234_5, 1234+1", max_chars=80)
        elif mode == TASK:
            offer = choices(frame)
            task_fields(
                _offered(offer.partitions, "task_partition"),
                offer.gpu_types,
                _offered(offer.accounts, "task_account"),
                _offered(offer.qos, "task_qos"),
            )
        else:
            _request_fields(choices(frame))
        st.datetime_input(
            _("As of ({zone})").format(zone=frame.zone),
            key="at",
            format="YYYY-MM-DD",
            step=300,
            help=_("Empty: now, or the newest data of a recording. Any past moment is answered with what was known then."),
        )
        if st.form_submit_button(_("Ask"), type="primary", width="stretch", key="ask"):
            _write_link(frame, mode)


def _request_fields(offer: Choices) -> None:
    st.multiselect(
        _("Partition"),
        _offered(offer.partitions, "partition"),
        key="partition",
        accept_new_options=True,
        select_all=False,
        placeholder=_("the default one"),
    )
    left, right = st.columns(2)
    left.selectbox(
        _("GPU type"),
        _offered(offer.gpu_types, "gpu_type"),
        key="gpu_type",
        index=None,
        accept_new_options=True,
        placeholder=_("any"),
    )
    right.number_input(_("GPUs, whole job"), 0, MOST_GPUS, key="gpus", step=1)
    st.text_input(
        _("Time limit"),
        key="time",
        placeholder="1-00:00:00",
        max_chars=40,
        help=_("As for sbatch -t: minutes, HH:MM:SS or D-HH:MM:SS. Empty: the partition's default."),
    )
    with st.expander(_("Nodes, CPUs, memory, account, QOS"), key="more"):
        left, right = st.columns(2)
        left.number_input(_("Nodes"), 1, MOST_NODES, key="nodes", step=1)
        right.number_input(_("CPUs, whole job"), 1, MOST_CPUS, key="cpus", step=1)
        left.text_input(_("Memory per node"), key="mem", placeholder="64G", max_chars=20)
        right.selectbox(
            _("QOS"), _offered(offer.qos, "qos"), key="qos", index=None, accept_new_options=True, placeholder=_("default")
        )
        st.selectbox(
            _("Account"),
            _offered(offer.accounts, "account"),
            key="account",
            index=None,
            accept_new_options=True,
            placeholder=_("default"),
        )


def _offered(known: tuple[str, ...], key: str) -> list[str]:
    """What is known, and what the link names although it is not: the answer then says that it does not exist."""
    chosen = st.session_state.get(key) or []
    return list(dict.fromkeys([*known, *([chosen] if isinstance(chosen, str) else chosen)]))


def _follow_link(frame: Frame) -> None:
    """Fill the form from the link when the link is not what the form wrote (first visit, back button, a link clicked)."""
    link = {k: v for k in (*FIELDS, *OWN, "at") if (v := st.query_params.get(k, ""))}
    state = st.session_state
    if state.get("followed") == link and "mode" in state:
        for kind, keys in ((JOB, ("job",)), (TASK, task_keys()), (REQUEST, FIELDS[1:])):
            for key in keys:
                if key in state and kind != state["mode"]:
                    state[key] = state[key]  # else what is not drawn now is forgotten
        return
    state["followed"] = link
    task = asked_task()
    state["mode"] = JOB if link.get("job") else TASK if task else REQUEST
    fill_task(task)
    _fill_request({} if task else link)
    state["at"] = None
    if link.get("at"):
        with contextlib.suppress(UsageError):  # asked_at tells
            value = parse_instant(link["at"], str(frame.zone))
            state["at"] = value.astimezone(frame.zone).replace(tzinfo=None, second=0, microsecond=0)


def _fill_request(link: Mapping[str, str]) -> None:
    state = st.session_state
    state["partition"] = [p for p in link.get("partition", "").split(",") if p]
    for key in ("gpu_type", "account", "qos"):
        state[key] = link.get(key) or None
    for key in ("time", "mem", "job"):
        state[key] = link.get(key, "")[: 20 if key == "mem" else 40 if key == "time" else 80]
    for key, least, most in (("gpus", 0, MOST_GPUS), ("nodes", 1, MOST_NODES), ("cpus", 1, MOST_CPUS)):
        text = link.get(key, "")
        state[key] = min(most, max(least, int(text))) if text.isdecimal() and len(text) < 12 else least


def _write_link(frame: Frame, mode: str | None) -> None:
    state = st.session_state
    if mode == JOB:
        link = {"job": state["job"].strip()}
    elif mode == TASK:
        link = task_link()
    else:
        link = {
            "partition": ",".join(state["partition"]),
            "gpu_type": state["gpu_type"] or "",
            "time": state["time"].strip(),
            "gpus": str(state["gpus"]),
            "mem": state["mem"].strip(),
            "account": state["account"] or "",
            "qos": state["qos"] or "",
            "nodes": str(state["nodes"]) if state["nodes"] > 1 else "",
            "cpus": str(state["cpus"]) if state["cpus"] > 1 else "",
        }
    if state["at"] is not None:
        link["at"] = iso_utc(state["at"].replace(tzinfo=frame.zone))
    _go({k: v for k, v in link.items() if v})


def _go(link: dict[str, str]) -> None:
    kept = {k: v for k in ("cluster", "lang") if (v := st.query_params.get(k, ""))}
    st.session_state["followed"] = link
    st.query_params.from_dict({**kept, **link})


def use(link: Mapping[str, str]) -> None:
    """Ask about this request at the same moment; for a button's ``on_click``. The task stays in its own fields."""
    link = {k: v for k, v in link.items() if k in FIELDS and v}
    _fill_request(link)
    st.session_state["mode"] = REQUEST
    if at := st.query_params.get("at", ""):
        link["at"] = at
    _go(link)


def request_link(request: Request, account: str | None, qos: str | None) -> dict[str, str]:
    """A request as parameters of a link; ``account`` and ``qos`` as they were asked for, not those that Slurm would fill in."""
    each = request.mem_bytes // request.nodes if request.mem_bytes else 0
    link = {
        "partition": ",".join(request.partitions),
        "gpu_type": request.gpu_type or "",
        "gpus": str(request.gpus),
        "nodes": str(request.nodes) if request.nodes > 1 else "",
        "cpus": str(request.cpus) if request.cpus > 1 else "",
        "mem": "" if not each else f"{each >> 30}G" if each % 2**30 == 0 else f"{max(1, each >> 20)}M",
        "time": "" if request.limit_s is None or request.limit_defaulted else format_limit(request.limit_s),
        "account": account or "",
        "qos": qos or "",
    }
    return {k: v for k, v in link.items() if v}


def iso_utc(value: datetime) -> str:
    """``2026-06-10T12:00Z``: the form of ``at`` in links."""
    return f"{value.astimezone(UTC):%Y-%m-%dT%H:%MZ}"
