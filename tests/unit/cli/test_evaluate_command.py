"""``queuecast evaluate`` on the toy lake: figures, forms, the report and the error of a lake that is too young."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.made_cases import made
from tests.unit.synthetic import NOW, job_rows, table

from queuecast.answers.evaluate import evaluate_lake, slurm_waits
from queuecast.cli.evaluate import evaluate
from queuecast.errors import NoDataError, UsageError
from queuecast.features.lakecases import FEATURES
from queuecast.models import stacked
from queuecast.store.lake import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("evaluate") / "lake"
    store = Lake.open(path, create=True)
    rows = job_rows(900)
    for row in rows:
        row["partition"] = "<b>gpu</b>" if row["partition"] == "gpu" else row["partition"]
    with store.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
    return path


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacked.fit, "__kwdefaults__", {**stacked.fit.__kwdefaults__, "rounds": 4, "bins": 6})
    monkeypatch.setattr("queuecast.clock.now", lambda: NOW)


def run(
    lake: Path, capsys: pytest.CaptureFixture[str], *, as_json: bool = False, parsable: bool = False, report: Path | None = None
) -> str:
    evaluate(days=5.0, refits=1, lake=str(lake), as_json=as_json, parsable=parsable, report=report)
    return capsys.readouterr().out


def test_json_has_every_model_and_a_line_of_its_own_for_gpu_jobs(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    figures = [json.loads(line) for line in run(lake, capsys, as_json=True).splitlines()]
    assert all(set(f) == {"trace", "slice", "model", "measure", "value", "low", "high"} for f in figures)
    value = {(f["slice"], f["model"], f["measure"]): f["value"] for f in figures}
    for model in ("queuecast", "like jobs", "last similar job", "partition climatology", "qbets"):
        assert 0 <= value["all", model, "within_2x"] <= 1, model
    assert value["gpu", "queuecast", "cases"] < value["all", "queuecast", "cases"]
    assert value["all", "partition climatology", "brier_skill_4h"] == pytest.approx(0.0)
    assert ("all", "slurm", "cases") not in value, "no estimate was recorded"


def test_parsable_is_the_same_in_fields(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = run(lake, capsys, parsable=True).splitlines()
    assert head == "trace|slice|model|measure|value|low|high"
    assert rows
    assert all(row.count("|") == 6 and "nan" not in row.split("|")[4:] for row in rows)


def test_the_table_and_the_report_keep_hostile_names_harmless(lake: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = run(lake, capsys, report=tmp_path / "report")
    assert "80 % intervals held" in out
    assert "GPU jobs" in out
    html = (tmp_path / "report" / "report.html").read_text()
    assert "<b>gpu</b>" not in html
    assert "&lt;b&gt;gpu&lt;/b&gt;" in html


def test_a_young_lake_is_told_what_to_do(tmp_path: Path) -> None:
    store = Lake.open(tmp_path / "lake", create=True)
    with store.transaction("toy") as tx:
        tx.append("jobs", table("jobs", job_rows(60)))
    with pytest.raises(NoDataError, match="too few started jobs"):
        evaluate_lake(store, "toy", NOW + timedelta(minutes=1))


def test_days_and_refits_must_be_above_zero(lake: Path) -> None:
    for days, refits in ((0.0, 1), (3.0, 0), (float("nan"), 1)):
        with pytest.raises(UsageError, match="above zero"):
            evaluate(days=days, refits=refits, lake=str(lake))


def test_slurms_word_is_sure_of_one_moment_and_unknown_without_one() -> None:
    cases = made(3)
    values = np.full((3, len(FEATURES)), np.nan, np.float32)
    values[:2, [f.name for f in FEATURES].index("estimate_remaining_s")] = (3600.0, -5.0)
    told = slurm_waits(type(cases)(**{**vars(cases), "values": values, "features": FEATURES}))
    assert told.quantile(0.5)[0] == pytest.approx(3600.0, rel=0.2)
    assert told.quantile(0.5)[1] == 0.0
    assert np.isnan(told.cdf[2]).all()
