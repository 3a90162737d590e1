"""``queuecast evaluate`` on a small invented lake: what is printed, what is written, what is said when it cannot be done."""

from __future__ import annotations

import json
import os
import sys
from datetime import timedelta
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.synthetic import NOW, job_rows, make_lake, queue_rows, table

from queuecast.answers.evaluate import SAME, at_point
from queuecast.cli.main import main
from queuecast.models import learning
from queuecast.models.boosted import fit
from queuecast.models.waits import KNOTS_S
from queuecast.store.lake import Lake

HOSTILE = "<script>alert(1)</script>\x1b[2J|gpu"
OFF_S = 1800


def rows_with_a_hostile_partition() -> list[dict[str, Any]]:
    return [dict(r, partition=HOSTILE if r["partition"] == "gpu" else r["partition"]) for r in job_rows(2400)]


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    """With six readings of Slurm's estimates a day in the last week, each half an hour too late."""
    rows = rows_with_a_hostile_partition()
    made = make_lake(tmp_path_factory.mktemp("toy") / "lake", rows)
    queue: list[dict[str, Any]] = []
    estimates: list[dict[str, Any]] = []
    for number in range(42):
        at = NOW - timedelta(days=7) + timedelta(hours=4 * number)
        waiting = [r for r in rows if r["submit"] <= at and (r["start"] or NOW) > at and r["state"] != "CANCELLED"]
        queue += queue_rows([dict(r, state="PENDING", start=None) for r in waiting], at)
        estimates += [
            {
                "cluster": "toy",
                "observed_at": at,
                "job_id": r["job_id"],
                "job_id_text": r["job_id_text"],
                "partition": r["partition"],
                "start_estimated": r["start"] + timedelta(seconds=OFF_S),
            }
            for r in waiting
            if r["start"] is not None
        ]
    with made.transaction("readings") as tx:
        tx.append("queue", table("queue", queue))
        tx.append("estimates", table("estimates", estimates))
        tx.state["seen"] = {"toy": {"jobs": NOW.isoformat()}}
    return made


@pytest.fixture(autouse=True)
def _small(monkeypatch: pytest.MonkeyPatch, lake: Lake, tmp_path: Path) -> None:
    for name in [n for n in os.environ if n.startswith("QUEUECAST_")]:
        monkeypatch.delenv(name)
    monkeypatch.setenv("QUEUECAST_LAKE", str(lake.path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("TZ", "UTC")
    monkeypatch.setattr(learning, "REFITS", 1)
    assert fit.__kwdefaults__ is not None
    monkeypatch.setitem(fit.__kwdefaults__, "rounds", 4)
    monkeypatch.setitem(fit.__kwdefaults__, "bins", 8)


def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str, str]:
    monkeypatch.setattr(sys, "argv", ["queuecast", "evaluate", *words])
    with pytest.raises(SystemExit) as done:
        main()
    out, err = capsys.readouterr()
    code = done.value.code
    return (code if isinstance(code, int) else 0 if code is None else 1), out, err


def test_the_table_has_a_sentence_on_top_and_a_line_for_gpu_jobs(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    code, out, _ = run(monkeypatch, capsys)
    assert code == 0
    lines = out.splitlines()
    assert "of the 80 % intervals held; Slurm gave an estimate for " in lines[0]
    assert "was off by 30 min in the middle, ours by " in lines[0], "Slurm's estimates here are half an hour too late"
    assert {"all jobs", "GPU jobs", "at submit", "pending"} <= set(lines)
    assert sum(line.strip().startswith("queuecast ") for line in lines) == 4
    head = next(line for line in lines if line.startswith("model"))
    for column in ("within 2x", "median error", "pinball loss", "80 % held", "skill 4 h", "ECE 4 h", "95 % held"):
        assert column in head


def test_json_lines_and_fields_agree_and_the_report_escapes_names(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    code, out, err = run(monkeypatch, capsys, "--days", "6", "--json", "--report", str(tmp_path / "report"))
    assert code == 0
    found = [json.loads(line, parse_constant=lambda word: pytest.fail(f"{word} is not JSON")) for line in out.splitlines()]
    assert all(list(f) == ["trace", "slice", "model", "measure", "value", "low", "high"] for f in found)
    assert {f["trace"] for f in found} == {"toy"}
    values = {(f["slice"], f["model"], f["measure"]): f["value"] for f in found}
    assert 0 < values["all", "queuecast", "coverage_80"] <= 1
    assert values[SAME, "slurm", "medae_s"] == pytest.approx(OFF_S, abs=61)
    assert values[SAME, "slurm", "cases"] == values[SAME, "queuecast", "cases"] > 50
    assert any(f["low"] is None for f in found)

    assert "report.html" in err
    page, text = ((tmp_path / "report" / name).read_text() for name in ("report.html", "report.md"))
    assert "&lt;script&gt;alert(1)" in page
    for written in (page, text):
        assert "<script>" not in written
        assert "\x1b" not in written

    _, out, _ = run(monkeypatch, capsys, "--days", "6", "-P")
    head, *rows = out.splitlines()
    assert head == "trace|slice|model|measure|value|low|high"
    assert len(rows) == len(found)
    for row, f in zip(rows, found, strict=True):
        cells = dict(zip(head.split("|"), row.split("|"), strict=True))
        assert cells["measure"] == f["measure"]
        assert cells["value"] == ("" if f["value"] is None else repr(f["value"]))


def test_without_matplotlib_it_says_what_to_install(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr("queuecast.render.report_plots.available", lambda: False)
    code, _, err = run(monkeypatch, capsys, "--days", "4", "--report", str(tmp_path))
    assert code == 0
    assert "pip install 'queuecast[plot]'" in err
    assert (tmp_path / "report.html").exists()
    (tmp_path / "file").write_text("")
    code, _, err = run(monkeypatch, capsys, "--days", "4", "--report", str(tmp_path / "file"))
    assert code == 1
    assert "name another folder" in err


@pytest.mark.parametrize(
    ("words", "code", "message", "hint"),
    [
        (("--until", "2026-05-03"), 1, "300 are needed to learn from", "queuecast backfill"),
        (("--until", "2020-01-01"), 1, "no job became eligible", "queuecast backfill"),
        (("--days", "0.02"), 1, "50 are needed to measure", "a longer stretch"),
        (("--since", "2026-05-10", "--until", "2026-05-09"), 2, "nothing can be asked", "the newest data"),
        (("--since", "2026-05-10", "--days", "3"), 2, "cannot be given together", "leave one"),
        (("-M", "other"), 2, "is not in this lake", "toy"),
    ],
)
def test_errors_are_one_message_that_says_what_to_do(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], words: tuple[str, ...], code: int, message: str, hint: str
) -> None:
    got, out, err = run(monkeypatch, capsys, *words)
    assert (got, out) == (code, "")
    assert message in err
    assert hint in err
    assert "Traceback" not in err


def test_a_point_is_nothing_below_and_all_above() -> None:
    told = at_point(np.array([0.0, 3600.0, np.nan]))
    assert told.cdf[0].min() == 1.0
    assert (told.cdf[1] == (KNOTS_S >= 3600)).all()
    assert told.quantile(0.5)[1] == pytest.approx(3600, rel=0.09)
    assert np.isnan(told.cdf[2]).all()


def test_nothing_heavy_is_imported_with_the_command() -> None:
    import subprocess

    code = "import sys, queuecast.cli.main; print([m for m in ('numpy', 'pyarrow', 'lightgbm', 'matplotlib') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
