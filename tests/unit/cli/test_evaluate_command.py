"""``queuecast evaluate`` on the toy lake: figures, forms, the report and the error of a lake that is too young."""

from __future__ import annotations

import json
from datetime import timedelta
from pathlib import Path

import numpy as np
import pytest
from tests.unit.models.made_cases import made
from tests.unit.synthetic import NOW, job_rows, known_at, table

from queuecast.answers.evaluate import evaluate_lake, slurm_waits
from queuecast.cli import evaluate as command
from queuecast.cli.evaluate import evaluate
from queuecast.errors import NoDataError, UsageError
from queuecast.features.cases import Cases
from queuecast.features.lakecases import FEATURES
from queuecast.models import evaluation, stacked
from queuecast.models.waits import KNOTS_S, Waits
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
    assert sum(value["all", "queuecast", f"pit_{i:02d}"] for i in range(1, 11)) == pytest.approx(1.0)
    assert value["all", "queuecast", "winkler_80_s"] > value["all", "queuecast", "width_80_s"] > 0
    ours = {name: v for (s, m, name), v in value.items() if (s, m) == ("all", "queuecast")}
    cases = [v for name, v in ours.items() if name.startswith("reliability_4h_") and name.endswith("_cases")]
    assert 1 < len(cases) <= 15
    assert sum(cases) <= value["all", "queuecast", "cases"]
    slices = {s.split("=")[0] for s, _m, _n in value if "=" in s}
    assert slices == {"partition", "gpus", "size", "user_jobs", "month"}, "an hour has fewer than 100 of so few answers"
    assert all(v >= 100 for (s, _m, name), v in value.items() if "=" in s and name == "cases")
    assert {s for s, _m, _n in value if s.startswith("user_jobs")} <= {"user_jobs=10-99", "user_jobs=100+"}
    assert value["month=2026-05", "queuecast", "coverage_80"] == pytest.approx(ours["coverage_80"]), "all of them"


def test_parsable_is_the_same_in_fields(lake: Path, capsys: pytest.CaptureFixture[str]) -> None:
    head, *rows = run(lake, capsys, parsable=True).splitlines()
    assert head == "trace|slice|model|measure|value|low|high"
    assert rows
    assert all(row.count("|") == 6 and "nan" not in row.split("|")[4:] for row in rows)


def test_the_table_and_the_report_keep_hostile_names_harmless(lake: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    out = run(lake, capsys, report=tmp_path / "report")
    assert "80 % intervals held" in out
    assert "GPU jobs" in out
    assert "ECE 24 h" in out
    assert "skill 1 h" in out
    assert "gave an estimate" not in out
    html = (tmp_path / "report" / "report.html").read_text()
    assert "<b>gpu</b>" not in html
    assert "&lt;b&gt;gpu&lt;/b&gt;" in html
    assert "better than the partition&#x27;s past" in html
    for group in ("earlier jobs of the user", "hour of the day (UTC)", "GPUs asked for", "month"):
        assert f"What held, by {group}" in html
    assert ">partition=" not in html


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


def test_until_is_as_if_it_were_then(lake: Path, tmp_path: Path) -> None:
    """The same figures as on a lake that holds no more than was known then."""
    then = NOW - timedelta(days=3)
    cut = Lake.open(tmp_path / "lake", create=True)
    rows = known_at(job_rows(900), then)
    for row in rows:
        row["partition"] = "<b>gpu</b>" if row["partition"] == "gpu" else row["partition"]
    with cut.transaction("toy") as tx:
        tx.append("jobs", table("jobs", rows))
    since = then - timedelta(days=4)
    whole = evaluate_lake(Lake.open(lake), "toy", NOW, since=since, until=then, refits=1, draws=5).figures
    known = evaluate_lake(cut, "toy", then, days=4.0, refits=1, draws=5).figures
    late = evaluate_lake(Lake.open(lake), "toy", NOW, since=since, refits=1, draws=5).figures
    count = {f["slice"]: f["value"] for f in late if f["measure"] == "cases" and f["model"] == "queuecast"}
    assert count["all"] > next(f["value"] for f in known if f["measure"] == "cases")  # type: ignore[operator]
    assert len(whole) == len(known)
    for mine, other in zip(whole, known, strict=True):
        assert mine["slice"] == other["slice"]
        assert (mine["model"], mine["measure"]) == (other["model"], other["measure"])
        assert mine["value"] == pytest.approx(other["value"], nan_ok=True), mine


def test_times_that_exclude_each_other_are_refused(lake: Path) -> None:
    with pytest.raises(UsageError, match="say the same"):
        evaluate(days=3.0, since="3d", lake=str(lake))
    for since, until in (("2026-05-20", "2026-05-10"), ("2030-01-01", None), ("2026-05-10", "2026-05-10")):
        with pytest.raises(UsageError, match="before --until"):
            evaluate(since=since, until=until, lake=str(lake))
    with pytest.raises(UsageError, match="not a time"):
        evaluate(since="yesterday", lake=str(lake))


def test_beside_slurm_ours_is_told_for_the_same_answers(
    lake: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    assert command.BESIDE_SLURM == evaluation.BESIDE_SLURM

    def told(cases: Cases) -> Waits:
        """Every second job, and always a day."""
        cdf = np.tile((KNOTS_S >= 86400.0).astype(np.float64), (len(cases), 1))
        cdf[::2] = np.nan
        return Waits(cdf, KNOTS_S)

    monkeypatch.setattr("queuecast.answers.evaluate.slurm_waits", told)
    out = run(lake, capsys, as_json=True)
    value = {(f["slice"], f["model"], f["measure"]): f["value"] for f in map(json.loads, out.splitlines())}
    both = ("slurm", evaluation.BESIDE_SLURM)
    assert value["all", both[0], "cases"] == value["all", both[1], "cases"] < value["all", "queuecast", "cases"]
    assert 0.5 < value["all", both[1], "closer_than_slurm"] <= 1
    assert value["all", both[1], "medae_s"] < value["all", both[0], "medae_s"]
    text = run(lake, capsys, report=tmp_path / "report")
    assert "where Slurm gave an estimate, queuecast was off by" in text
    assert "… where Slurm told one" in text
    assert "where Slurm gave an estimate, queuecast was off by" in (tmp_path / "report" / "report.html").read_text()


def test_slurms_word_is_sure_of_one_moment_and_unknown_without_one() -> None:
    cases = made(3)
    values = np.full((3, len(FEATURES)), np.nan, np.float32)
    values[:2, [f.name for f in FEATURES].index("estimate_remaining_s")] = (3600.0, -5.0)
    told = slurm_waits(type(cases)(**{**vars(cases), "values": values, "features": FEATURES}))
    assert told.quantile(0.5)[0] == pytest.approx(3600.0, rel=0.2)
    assert told.quantile(0.5)[1] == 0.0
    assert np.isnan(told.cdf[2]).all()
