"""The page of a job that has ended: why, the copy, the attempts, its use."""

from __future__ import annotations

import os
import pwd
from collections.abc import Callable
from pathlib import Path

import pytest
from app.ui.retryview import file_name, shown
from app.ui.useview import used_of
from madelake import NEWEST
from madeuse import CRASHED, DEAD, OOM, TIMED_OUT, WELL, _ended, _table, build_use_lake, charts_rows
from streamlit.testing.v1 import AppTest
from test_wait_page import texts

from queuecast.store.lake import Lake

Opener = Callable[..., AppTest]
LOGGED = 30_000


@pytest.fixture(scope="module")
def failing(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A lake with failures; one job's log and script lie on this machine and belong to whoever runs the tests."""
    folder = tmp_path_factory.mktemp("ended")
    log, script = folder / "out.log", folder / "job.sh"
    log.write_text("start\n<script>alert(1)</script>\nModuleNotFoundError: No module named 'torch'\n")
    script.write_text("#!/bin/bash\n#SBATCH --mem=8G\npython train.py\n")
    lake = build_use_lake(folder / "lake")
    me = pwd.getpwuid(os.getuid()).pw_name
    row = _ended(LOGGED, "mine", me, "lab", NEWEST, 0.1, mem=8, state="FAILED", code=1) | {"uid": os.getuid(), "work_dir": str(folder)}
    files = {"cluster": "campus", "job_id": LOGGED, "job_submit": row["submit"], "command": str(script), "work_dir": str(folder),
             "std_out": str(log), "observed_at": NEWEST}  # fmt: skip
    with lake.transaction("test") as tx:
        tx.append("jobs", _table("jobs", [row]))
        tx.append("job_files", _table("job_files", [files]))
    return lake.path


def test_why_it_failed_with_what_to_do(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "job", job=str(OOM))
    said = texts(app)
    assert "Out of main memory" in said
    assert "whose turn it is\\: yours" in said.replace("\u2060", "")
    assert "What it rests on" in said
    assert "What to do" in said
    assert "queuecast failed 21000" in said.replace("\u2060", "")
    assert [s.value for s in app.subheader][-1] == "What happened so far"


def test_one_of_a_nodes_failures(open_app: Opener, failing: Path) -> None:
    said = texts(open_app(failing, "job", job=str(DEAD[0])))
    assert "A node failed" in said
    assert "6 of 6 jobs died" in said
    assert "administrators" in said


def test_a_job_that_ended_well_shows_its_use(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "job", job=str(WELL))
    said = {r["name"]: r["text"] for r in charts_rows(app)[0]}
    assert said["memory"] == "memory: 10 GiB of 64 GiB"
    assert said["GPUs ever used"] == "GPUs ever used: 1 of 4"
    app.segmented_control(key="job_well_about").set_value("why").run()
    assert "It ended well" in texts(app)


def test_the_section_is_kept_in_the_link(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "job", job=str(TIMED_OUT), about="copy")
    assert app.segmented_control(key="job_about").value == "copy"
    assert "A corrected copy" in texts(app)
    changes = next(d.value for d in app.dataframe if "option" in d.value.columns)
    assert changes["option"].tolist() == ["--time"]
    assert any("+ #SBATCH --time=" in c.value or "+#SBATCH --time=" in c.value for c in app.code)
    assert any("python fit.py" in c.value for c in app.code)
    app.segmented_control(key="job_about").set_value("attempts").run()
    assert "No other attempt is known" in texts(app)
    app.segmented_control(key="job_about").set_value("why").run()
    assert "about" not in app.query_params


def test_a_script_that_is_not_to_be_had(open_app: Opener, failing: Path) -> None:
    app = open_app(failing, "job", job=str(OOM), about="copy")
    assert "no longer to be had" in texts(app)
    assert [s.value for s in app.subheader][-1] == "What happened so far"


def test_files_are_opened_only_for_their_owner(open_app: Opener, failing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """F: whoever opens the page must not see what only the app may read."""
    closed = texts(open_app(failing, "job", job=str(LOGGED)))
    assert "ModuleNotFoundError" not in closed
    assert "Files of jobs are not opened here" in closed
    assert "python train.py" not in texts(open_app(failing, "job", job=str(LOGGED), about="copy"))
    me = pwd.getpwuid(os.getuid()).pw_name
    mine = open_app(failing, "job", job=str(LOGGED), user=me)
    assert "Something it needs was not there" in texts(mine)
    assert any("ModuleNotFoundError" in c.value for c in mine.code)
    assert not any("<script" in m.value for m in mine.markdown)
    assert not any(m.allow_html for m in mine.markdown)
    monkeypatch.delenv("QUEUECAST_USER")
    monkeypatch.setenv("QUEUECAST_FILES", "all")
    assert "ModuleNotFoundError" in texts(open_app(failing, "job", job=str(LOGGED)))


def test_another_ones_job_stays_closed(open_app: Opener, failing: Path) -> None:
    for about in ("why", "copy", "attempts", "use"):
        assert "not yours" in texts(open_app(failing, "job", job=str(OOM), about=about, sees="own", user="ines"))


def test_hostile_names_are_not_markup(open_app: Opener, failing: Path) -> None:
    for about in ("why", "copy", "attempts", "use"):
        app = open_app(failing, "job", job=str(CRASHED + 1), about=about)
        assert not any(m.allow_html for m in app.markdown)
        assert not any("<script" in m.value.replace("\\<script", "") for m in app.markdown)


def test_unknown_use_is_said_to_be_unknown() -> None:
    row = dict.fromkeys(
        ("elapsed_s", "limit_s", "cpu_share", "cpus_alloc", "mem_peak_bytes", "mem_alloc_bytes", "gpu_type", "gpu_util_mean", "gpus_seen",
         "gpus_used", "gpu_mem_peak_bytes", "gpu_mem_total_bytes")
    )  # fmt: skip
    found = used_of({**row, "gpus_alloc": 2})
    assert all(u.share is None for u in found)
    assert found[2].text == "unknown of an unknown amount"


def test_names_of_files_and_bytes_that_are_no_text() -> None:
    assert file_name("12_[1-3]/../x") == "retry-12__1-3_____x.sh"
    assert shown("a\udcff") == "a\ufffd"


def test_the_lake_is_whole(failing: Path) -> None:
    assert Lake.open(failing).clusters == ["campus"]
