"""The part of the page that works from a task to requests."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import pytest
from app.ui.question import request_link, to_request
from app.ui.taskform import MOST, OWN, SHARED, to_task
from hypothesis import given
from hypothesis import strategies as st
from madelake import HOSTILE
from streamlit.testing.v1 import AppTest
from test_wait_page import REQUEST, texts

from queuecast.errors import QueuecastError, UsageError
from queuecast.policy.request import Request

Opener = Callable[..., AppTest]
TASK = {"model": "7b", "mode": "full", "precision": "bf16", "batch": "8", "seq": "4096", "hours": "20", "on": "a100:8"}


def link_of(app: AppTest) -> dict[str, str]:
    return {k: v[0] if isinstance(v, list) else v for k, v in dict(app.query_params).items()}


def test_a_link_reproduces_the_task(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, **TASK)
    assert app.selectbox(key="task_model").value == "7b"
    assert app.number_input(key="task_hours").value == 20.0
    assert app.text_input(key="task_on").value == "a100:8"
    said = texts(app)
    assert "Llama 2 7B" in said
    assert "Memory: 123 GiB before it is split" in said
    assert "× a100 in gpu would do" in said
    assert "The choice is yours." in said
    assert "Each GPU:" in said
    assert "half wait at most" in said
    assert any(c.value.startswith("sbatch -p gpu -N 1 --gres=gpu:a100:") for c in app.code)
    assert "v100: has no fast bf16" in said
    assert "20 h are for 8 x a100." in said


def test_the_form_writes_the_link(open_app: Opener, campus: Path) -> None:
    app = open_app(campus)
    app.segmented_control(key="mode").set_value("My task").run()
    app.selectbox(key="task_model").set_value("13b")
    app.segmented_control(key="task_mode").set_value("lora")
    app.selectbox(key="task_precision").set_value("int4")
    app.number_input(key="task_batch").set_value(16)
    app.number_input(key="task_lora_rank").set_value(64)
    app.multiselect(key="task_partition").set_value(["gpu"])
    app.button(key="ask").click().run()
    link = link_of(app)
    assert link == {
        "model": "13b",
        "mode": "lora",
        "precision": "int4",
        "batch": "16",
        "seq": "4096",
        "lora_rank": "64",
        "partition": "gpu",
    }
    first = texts(app)
    assert "Llama 2 13B" in first
    assert texts(open_app(campus, **link)) == first


def test_use_this_request_asks_for_it_and_keeps_the_task(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, **TASK, at="2026-06-10T11:00Z")
    flags = next(c.value for c in app.code if c.value.startswith("sbatch"))
    number = next(b.key for b in app.button if b.key and b.key.startswith("use"))
    app.button(key=number).click().run()
    assert not app.exception
    link = link_of(app)
    assert not set(link) & {"model", "precision", "seq"}
    assert link["at"] == "2026-06-10T11:00Z"
    assert f"--gres=gpu:{link['gpu_type']}:{link['gpus']}" in flags
    assert f"--mem={link['mem']}" in flags
    assert f"-t {link['time']}" in flags
    assert app.number_input(key="gpus").value == int(link["gpus"])
    assert "like this start" in texts(app)
    app.segmented_control(key="mode").set_value("My task").run()
    assert app.selectbox(key="task_model").value == "7b"
    assert app.number_input(key="task_hours").value == 20.0


def test_a_task_without_hours_has_no_end(open_app: Opener, campus: Path) -> None:
    said = texts(open_app(campus, model="1.3b", precision="bf16"))
    assert "Tell the hours" in said
    assert "ends about" not in said
    assert "it starts soonest" in said.replace("It starts", "it starts")


def test_what_nothing_holds_is_told_with_what_would_change_it(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, model="405b", mode="full", precision="bf16", batch="1")
    said = texts(app)
    assert "No GPUs of this cluster can be offered" in said
    assert "does not fit" in said
    assert "→" in said
    assert not app.code


def test_no_history_offers_without_a_wait(open_app: Opener, two_clusters: Path) -> None:
    said = texts(open_app(two_clusters, cluster="annex", **TASK))
    assert "What to do: read the nodes first" in said


@pytest.mark.parametrize(
    ("link", "said"),
    [
        ({"precision": "bf16"}, "No model is named"),
        ({"model": "9b"}, "is not known"),
        ({"model": "7b", "mode": "dream"}, "Mode cannot be dream"),
        ({"model": "7b", "batch": "0"}, "Batch cannot be 0"),
        ({"model": "7b", "batch": "٣" * 13}, "Batch cannot be"),
        ({"model": "7b", "seq": "-4"}, "Seq cannot be -4"),
        ({"model": "7b", "hours": "nan"}, "Nan hours is no run time"),
        ({"model": "7b", "hours": "soon"}, "Soon hours is no run time"),
        ({"model": "7b", "hours": "20", "on": "many"}, "--on many is not a GPU type"),
        ({"model": "7b", "precision": "int4"}, "cannot be trained in full"),
        ({"model": "7b", "partition": "nope"}, "There is no partition nope"),
        ({"model": "7b", "time": "soon"}, "is not a time limit"),
    ],
)
def test_a_mistake_is_told_with_what_to_do(open_app: Opener, campus: Path, link: dict[str, str], said: str) -> None:
    app = open_app(campus, **link)
    assert said in "\n".join(t.value for t in app.text)
    assert "What to do:" in texts(app)
    assert app.button(key="ask") is not None
    assert app.segmented_control(key="mode").value == "My task"


def test_hostile_text_is_never_markdown(open_app: Opener, campus: Path) -> None:
    for link in ({"model": HOSTILE}, {"account": HOSTILE}, {"partition": HOSTILE}, {"on": HOSTILE}, {"qos": HOSTILE}, {"params": HOSTILE}):
        app = open_app(campus, **{**TASK, **link})
        marked = "\n".join(str(e.value) for kind in (app.markdown, app.caption, app.error, app.info, app.warning) for e in kind)
        assert "<script" not in marked
        assert "](javascript" not in marked
        assert not any(m.allow_html for m in app.markdown)


def test_a_hostile_name_of_a_shape_is_escaped(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, model=HOSTILE, layers="12", hidden="768", heads="12")
    marked = "\n".join(str(e.value) for kind in (app.markdown, app.caption) for e in kind)
    assert r"\<script\>" in marked, "it is shown"
    assert "<script" not in marked.replace(r"\<", "")
    assert "](javascript" not in marked


def test_the_job_and_the_request_go_on_as_before(open_app: Opener, campus: Path) -> None:
    app = open_app(campus, **REQUEST)
    assert app.segmented_control(key="mode").value == "My request"
    app = open_app(campus, **TASK, job="9006")
    assert app.segmented_control(key="mode").value == "A job id"
    assert "Job 9006" in texts(app)


@given(st.dictionaries(st.sampled_from((*OWN, *SHARED)), st.one_of(st.text(max_size=12), st.integers(-3, 10**9).map(str)), max_size=8))
def test_any_link_is_a_task_or_a_mistake_told(link: dict[str, str]) -> None:
    try:
        question = to_task({"model": "7b", **{k: v for k, v in link.items() if v}})
    except QueuecastError:
        return
    assert 1 <= question.batch <= MOST["batch"]
    assert question.hours is None or 0 < question.hours <= 8760


requests = st.builds(
    Request,
    partitions=st.just(("gpu",)),
    gpus=st.integers(1, 4096),
    gpu_type=st.sampled_from(["a100", None]),
    nodes=st.integers(1, 64),
    cpus=st.integers(64, 4096),
    limit_s=st.integers(1, 10**5).map(lambda minutes: 60 * minutes),
)


@given(requests, st.integers(1, 2**20))
def test_a_request_survives_its_link(request: Request, mem_mib: int) -> None:
    asked = Request(**{**vars(request), "mem_bytes": mem_mib * 2**20 * request.nodes})
    try:
        link = dict(parse_qsl(urlencode(request_link(asked, "lab", None))))
        back = to_request(link, None)
    except UsageError as error:
        pytest.fail(error.message)
    for name in ("partitions", "gpus", "gpu_type", "nodes", "cpus", "mem_bytes", "limit_s"):
        assert getattr(back, name) == getattr(asked, name), name
    assert back.account == "lab"
