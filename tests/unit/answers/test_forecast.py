"""The answer as a whole: every status, what it rests on, and nothing from the future."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from tests.unit.synthetic import NOW, T0, job_rows, known_at, make_lake, queue_rows, table

from queuecast.answers.explaining.explain import why
from queuecast.answers.forecast import Forecaster
from queuecast.answers.viewer import Viewer
from queuecast.errors import NoDataError, NotPermitted, UsageError
from queuecast.models.saving import save_model
from queuecast.models.training import train
from queuecast.policy.request import Request
from queuecast.store.lake import Lake

ASK = Request(partitions=("gpu",), gpus=4, gpu_type="a100", cpus=8, limit_s=3600, account="vision", qos="normal")


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows())


def first(state: str, **more: Any) -> dict[str, Any]:
    return next(r for r in reversed(job_rows()) if r["state"] == state and all(r[k] == v for k, v in more.items()))


def test_an_answer_carries_everything(lake: Lake) -> None:
    answer = Forecaster(lake).when(ASK, NOW)
    assert answer.status == "estimate"
    assert [i.share for i in answer.intervals] == [0.5, 0.8, 0.95]
    lows, highs = [i.low_s for i in answer.intervals], [i.high_s for i in answer.intervals]
    assert lows == sorted(lows, reverse=True)
    assert highs == sorted(highs)
    assert answer.median_s is not None
    assert lows[0] <= answer.median_s <= highs[0]
    assert [h for h, _ in answer.within] == [1, 4, 24]
    chances = [p for _, p in answer.within]
    assert chances == sorted(chances)
    assert answer.basis is not None
    assert answer.basis.count == answer.basis.started + answer.basis.waiting
    assert answer.basis.started >= 30
    assert answer.basis.waiting > 0
    assert answer.freshness.age_s == 0
    json.dumps(answer.as_json())


def test_defaults_are_told_and_unknown_names_refused(lake: Lake) -> None:
    forecaster = Forecaster(lake)
    answer = forecaster.when(Request(gpus=4, gpu_type="a100", cpus=8, user="alice"), NOW)
    assert answer.request.partitions == ("gpu",)
    assert (answer.request.limit_s, answer.request.account, answer.request.qos) == (3600, "vision", "normal")
    assert len([n for n in answer.notes if "taken" in n]) == 3
    for bad in (
        Request(partitions=("nosuch",)),
        Request(partitions=("gpu",), gpu_type="h100", gpus=1),
        Request(qos="gold"),
        Request(account="nobody"),
        Request(nodes=0),
    ):
        with pytest.raises(UsageError):
            forecaster.when(bad, NOW)


def test_a_pending_job_is_answered_from_now_on(lake: Lake) -> None:
    job = first("PENDING", partition="gpu")
    answer = Forecaster(lake).when_job(str(job["job_id"]), NOW)
    assert answer.status == "estimate"
    assert answer.waited_s == pytest.approx((NOW - job["submit"]).total_seconds())
    assert answer.reason is not None
    assert answer.reason.code == "Priority"


def test_started_ended_and_unknown_jobs(lake: Lake) -> None:
    forecaster = Forecaster(lake)
    running, ended = first("RUNNING"), first("COMPLETED")
    assert forecaster.when_job(str(running["job_id"]), NOW).status == "started"
    assert forecaster.when_job(str(ended["job_id"]), NOW).status == "ended"
    before = ended["submit"] + (ended["start"] - ended["submit"]) / 2
    assert forecaster.when_job(str(ended["job_id"]), before).status == "estimate"
    with pytest.raises(NoDataError, match="not known"):
        forecaster.when_job(str(ended["job_id"]), ended["submit"] - timedelta(seconds=1))
    with pytest.raises(UsageError, match="not a job id"):
        forecaster.when_job("my-job", NOW)


@pytest.mark.parametrize(
    ("reason", "status"),
    [
        ("JobHeldUser", "held"),
        ("launch failed requeued held", "held"),
        ("PartitionTimeLimit", "never"),
        ("QOSMaxWallDurationPerJobLimit", "never"),
        ("DependencyNeverSatisfied", "never"),
        ("Resources", "estimate"),
        ("ReqNodeNotAvail, UnavailableNodes:g[01-02]", "estimate"),
    ],
)
def test_reasons_decide_whether_a_time_is_given(tmp_path: Path, reason: str, status: str) -> None:
    rows = job_rows()
    lake = make_lake(tmp_path / "lake", rows)
    job = next(r for r in rows if r["state"] == "PENDING")
    with lake.transaction("reason") as tx:
        tx.append("queue", table("queue", queue_rows([job], NOW + timedelta(seconds=1), reason)))
    answer = Forecaster(lake).when_job(str(job["job_id"]), NOW + timedelta(seconds=2))
    assert answer.status == status
    assert bool(answer.intervals) == (status == "estimate")
    told = why(lake, "toy", str(job["job_id"]), NOW + timedelta(seconds=2))
    assert told.reason_text == reason
    assert [s.snapshots for s in told.history] == [1, 1]


def test_not_eligible_yet_is_counted_from_then_on(tmp_path: Path) -> None:
    rows = job_rows()
    job = next(r for r in rows if r["state"] == "PENDING" and r["partition"] == "gpu")
    job |= {"eligible": None, "reason": "Dependency"}
    answer = Forecaster(make_lake(tmp_path / "lake", rows)).when_job(str(job["job_id"]), NOW)
    assert answer.status == "not_eligible"
    assert answer.waited_s is None
    assert answer.intervals


def test_without_history_nothing_is_invented(tmp_path: Path) -> None:
    answer = Forecaster(make_lake(tmp_path / "lake", known_at(job_rows(3), T0 + timedelta(minutes=1)))).when(ASK, NOW)
    assert answer.status == "no_history"
    assert not answer.intervals
    assert answer.median_s is None


@pytest.mark.parametrize("day", [8, 15])
def test_cut_the_lake_at_t_and_the_answer_is_the_same(tmp_path: Path, day: int) -> None:
    rows, at = job_rows(), T0 + timedelta(days=day, hours=5)
    full, cut = make_lake(tmp_path / "full", rows, at), make_lake(tmp_path / "cut", known_at(rows, at), at)
    with full.transaction("later") as tx:  # what the future holds must not matter
        tx.append("queue", table("queue", queue_rows(rows, NOW, "PartitionTimeLimit")))
    pending = next(r for r in known_at(rows, at) if r["state"] == "PENDING" and r["partition"] == "gpu")
    a, b = Forecaster(full), Forecaster(cut)
    assert a.when(ASK, at).as_json() == b.when(ASK, at).as_json()
    assert a.when_job(str(pending["job_id"]), at).as_json() == b.when_job(str(pending["job_id"]), at).as_json()


def test_a_trained_model_serves_the_present_and_no_replay(tmp_path: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    before = Forecaster(lake).when(ASK, NOW - timedelta(days=3)).as_json()
    save_model(lake.path / "models", train(lake, NOW))
    forecaster = Forecaster(lake)
    live = forecaster.when(ASK, NOW)
    assert live.freshness.model is not None
    assert live.honesty is not None
    assert live.honesty.corrected_by > 100
    assert live.honesty.held == pytest.approx(0.8, abs=0.12)
    assert forecaster.when(ASK, NOW - timedelta(days=3)).as_json() == before


def test_viewers_without_rights_see_their_own_jobs_only(lake: Lake) -> None:
    job = first("PENDING")
    owner, other = Viewer(job["user"], sees_all=False), Viewer("mallory", sees_all=False)
    assert Forecaster(lake).when_job(str(job["job_id"]), NOW, owner).job_id
    with pytest.raises(NotPermitted, match="not yours"):
        Forecaster(lake).when_job(str(job["job_id"]), NOW, other)
    with pytest.raises(NotPermitted):
        why(lake, "toy", str(job["job_id"]), NOW, other)
    assert Forecaster(lake).when(ASK, NOW, other).status == "estimate"


def test_several_partitions_pool_their_jobs(lake: Lake) -> None:
    both = Forecaster(lake).when(Request(partitions=("gpu", "cpu"), cpus=8, limit_s=3600, account="nlp", qos="normal"), NOW)
    assert both.status == "estimate"


def test_cluster_must_be_clear(tmp_path: Path, lake: Lake) -> None:
    with pytest.raises(UsageError, match="not in this lake"):
        Forecaster(lake, "nowhere")
    with pytest.raises(UsageError, match="empty"):
        Forecaster(Lake.open(tmp_path / "empty", create=True))
    assert Forecaster(lake, "TOY").cluster == "toy"
