"""The corrected copy by cause of failure: the flags that change, the limits kept, what is refused, and what every copy holds."""

from __future__ import annotations

import json
import os
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.unit.answers.retry_lake import GIB, SUBMIT, Row, job, make
from tests.unit.answers.test_checkpoints import save
from tests.unit.synthetic import NOW

from queuecast.answers.retries.answer import RetryAnswer
from queuecast.answers.retries.retry import effective, retry
from queuecast.answers.viewer import Viewer
from queuecast.errors import NoDataError, NotPermitted, UsageError
from queuecast.slurmtext.rewrite import HEADER_BEGIN, split_script
from queuecast.slurmtext.script import parse_script

ALICE = Viewer("alice", sees_all=False)
SCRIPT = "#!/bin/bash\n#SBATCH -p cpu --mem=4G -c 4\n#SBATCH -t 2:00:00\n# mine\nmodule load x\nsrun ./a.out $1\n"


def asked(tmp_path: Path, row: Row, script: str = SCRIPT, *, more: list[Row] | None = None, lake: dict[str, Any] | None = None,
          **words: Any) -> RetryAnswer:  # fmt: skip
    made = make(tmp_path / "lake", [row, *(more or [])], **(lake or {}))
    return retry(made, "toy", words.pop("job", str(row["array_job_id"] if row.get("array_job_id") else row["job_id"])), NOW, ALICE,
                 script_text=script, **words)  # fmt: skip


def options(answer: RetryAnswer) -> dict[str, str]:
    assert answer.script is not None, answer.blocked
    assert split_script(answer.script).body[-4:] == split_script(SCRIPT).body[-4:] or not answer.script.endswith("$1\n")
    return parse_script(answer.script).options


def changed(answer: RetryAnswer) -> dict[str, str | None]:
    return {c.option: c.after for c in answer.changes}


# ---------------------------------------------------------------- memory


def test_memory_grows_by_half(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY", max_rss_bytes=3 * GIB))
    assert (answer.failure_class, answer.ready, changed(answer)) == ("oom_host", True, {"mem": "6G"})
    made = options(answer)
    assert made == {"partition": "cpu", "mem": "6G", "cpus-per-task": "4", "time": "2:00:00", "job-name": "train", "chdir": "/nowhere",
                    "comment": "queuecast:parent=toy/7"}  # fmt: skip
    assert "- #SBATCH -p cpu --mem=4G -c 4" in answer.diff
    assert json.loads(json.dumps(answer.as_json()))["changes"][0]["before"] == "4G"


@pytest.mark.parametrize(
    ("line", "whole", "option", "expected"),
    [("--mem-per-cpu=1G", 4 * GIB, "mem-per-cpu", "1536M"), ("--mem=100M", 100 << 20, "mem", "160M"), ("", 4 * GIB, "mem", "6G")],
)
def test_the_form_of_the_request_is_kept(tmp_path: Path, line: str, whole: int, option: str, expected: str) -> None:
    script = SCRIPT.replace("--mem=4G", line)
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY", mem_req_bytes=whole, mem_alloc_bytes=whole), script)
    assert changed(answer) == {option: expected}
    assert len({"mem", "mem-per-cpu", "mem-per-gpu"} & options(answer).keys()) == 1


def test_a_peak_above_the_request_counts(tmp_path: Path) -> None:
    step: Row = {"job_id": 7, "job_submit": SUBMIT, "step": "batch", "tasks": 1, "nodes": 1, "completeness": 3}
    steps = [{**step, "max_rss_bytes": 8 * GIB, "state": "OUT_OF_MEMORY"}]
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY"), lake={"steps": steps})
    assert changed(answer) == {"mem": "10G"}


def test_memory_is_kept_within_the_nodes(tmp_path: Path) -> None:
    script = SCRIPT.replace("4G", "24G")
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY", mem_req_bytes=24 * GIB, mem_alloc_bytes=24 * GIB), script)
    assert changed(answer) == {"mem": "32G"}
    assert any("36G would be surer" in n for n in answer.notes)


def test_another_partition_where_the_nodes_have_no_more(tmp_path: Path) -> None:
    script = SCRIPT.replace("4G", "32G")
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY", mem_req_bytes=32 * GIB, mem_alloc_bytes=32 * GIB), script)
    assert changed(answer) == {"partition": "big", "mem": "48G"} or changed(answer) == {"partition": "gpu", "mem": "48G"}
    assert not [f for f in answer.findings if f.severity == "error"]


def test_the_largest_node_is_the_end(tmp_path: Path) -> None:
    row = job(7, "OUT_OF_MEMORY", partition="big", mem_req_bytes=256 * GIB, mem_alloc_bytes=256 * GIB)
    answer = asked(tmp_path, row, SCRIPT.replace("cpu --mem=4G", "big --mem=256G"))
    assert (answer.script, answer.changes) == (None, ())
    assert answer.blocked
    assert "No node" in answer.blocked
    assert asked(tmp_path / "b", row, SCRIPT.replace("cpu --mem=4G", "big --mem=256G"), force=True).script is not None


@pytest.mark.parametrize("state", ["OUT_OF_MEMORY", "TIMEOUT"])
def test_unknown_nodes_and_limits_stop_nothing(tmp_path: Path, state: str) -> None:
    answer = asked(tmp_path, job(7, state), lake={"nodes": [], "partitions": [], "qos": [], "associations": []})
    assert answer.ready
    assert answer.changes


def test_what_other_jobs_of_the_kind_used_counts(tmp_path: Path) -> None:
    def earlier(number: int, state: str, peak: int, asked_for: int) -> Row:
        begin = SUBMIT - timedelta(hours=60 - number)
        when = {"submit": begin, "start": begin, "end": begin + timedelta(hours=2)}
        return job(
            number, state, name=f"train-{number}", mem_req_bytes=asked_for, mem_alloc_bytes=asked_for, max_rss_bytes=peak, **when
        )  # fmt: skip

    others = [earlier(n, "COMPLETED", 12 * GIB, 16 * GIB) for n in range(20, 30)]
    steps: list[Row] = [
        {"job_id": r["job_id"], "job_submit": r["submit"], "step": "batch", "tasks": 1, "nodes": 1, "state": r["state"], "completeness": 3,
         "start": r["start"], "end": r["end"], "elapsed_s": 7200, "max_rss_bytes": r["max_rss_bytes"]}
        for r in others
    ]  # fmt: skip
    answer = asked(tmp_path, job(7, "OUT_OF_MEMORY", name="train-7", max_rss_bytes=4 * GIB), more=others, lake={"steps": steps})
    (change,) = answer.changes
    assert change.option == "mem"
    assert int((change.after or "").removesuffix("G")) >= 12
    assert "jobs of its kind" in change.why
    others_time = [job(n, "COMPLETED", name=f"train-{n}", elapsed_s=8000, limit_s=8400, submit=SUBMIT - timedelta(hours=60 - n),
                       start=SUBMIT - timedelta(hours=60 - n), end=SUBMIT - timedelta(hours=60 - n) + timedelta(seconds=8000))
                   for n in range(20, 30)]  # fmt: skip
    longer = asked(tmp_path / "b", job(7, "TIMEOUT", limit_s=3600, elapsed_s=3600, end=SUBMIT + timedelta(minutes=61)), more=others_time)
    (change,) = longer.changes
    assert (change.after or "") > "02:13:20"


# ---------------------------------------------------------------- time


def test_a_limit_is_doubled_within_the_partition(tmp_path: Path) -> None:
    assert changed(asked(tmp_path, job(7, "TIMEOUT", limit_s=3600))) == {"time": "02:00:00"}
    answer = asked(tmp_path / "b", job(7, "TIMEOUT"))
    assert changed(answer) == {"time": "02:30:00"}
    assert any("04:00:00 would be surer" in n for n in answer.notes)


def test_another_partition_for_a_longer_limit(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "TIMEOUT", limit_s=9000))
    assert changed(answer)["time"] == "05:00:00"
    assert changed(answer)["partition"] in ("big", "gpu")


def test_another_qos_for_a_longer_limit(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "TIMEOUT", limit_s=3600, qos="short"), SCRIPT.replace("-c 4", "-q short"))
    assert changed(answer) == {"qos": "scav", "time": "02:00:00"}


def test_no_longer_limit_is_allowed(tmp_path: Path) -> None:
    only = [{"account": "vision", "user": None}, {"account": "vision", "user": "alice", "qos": "short", "default_qos": "short"}]
    row = job(7, "TIMEOUT", limit_s=3600, qos="short")
    answer = asked(tmp_path, row, SCRIPT.replace("-c 4", "-q short"), lake={"associations": only})
    assert answer.script is None
    assert answer.blocked
    assert "01:00:00" in answer.blocked
    assert any("queuecast template" in m for m in answer.mend)


def test_it_goes_on_from_a_checkpoint_with_the_same_limit(tmp_path: Path) -> None:
    work = tmp_path / "work dir"
    save(work / "saved", 40)
    script = SCRIPT.replace("# mine", "# queuecast: checkpoint=saved") + 'echo "$QUEUECAST_RESUME"\n'
    answer = asked(tmp_path, job(7, "TIMEOUT", work_dir=str(work)), script)
    assert changed(answer) == {}
    assert answer.script is not None
    assert f"export QUEUECAST_RESUME='{work}/saved/step40'\n" in answer.script
    assert any("at step 40" in n for n in answer.notes)
    # the copy of the copy has one such line
    again = asked(tmp_path / "b", job(8, "TIMEOUT", work_dir=str(work)), answer.script)
    assert again.script is not None
    assert again.script.count("QUEUECAST_RESUME=") == 1


def test_where_checkpoints_lie_may_be_a_variable(tmp_path: Path) -> None:
    save(tmp_path / "w" / "7", 3)
    script = SCRIPT.replace("# mine", "export QUEUECAST_CHECKPOINT_DIR=$SLURM_SUBMIT_DIR/$SLURM_JOB_ID")
    answer = asked(tmp_path, job(7, "TIMEOUT", work_dir=str(tmp_path / "w")), script)
    assert answer.checkpoint is not None
    assert answer.checkpoint.found is not None
    assert any("does not mention QUEUECAST_RESUME" in w for w in answer.warnings)
    unknown = asked(tmp_path / "b", job(7, "TIMEOUT"), script.replace("$SLURM_JOB_ID", "$(date)"))
    assert any("--checkpoint DIR" in n for n in unknown.notes)
    python = "#!/usr/bin/env python3\n#SBATCH -t 2:00:00\nprint('QUEUECAST_RESUME')\n"
    other = asked(tmp_path / "c", job(7, "TIMEOUT"), python, checkpoint=tmp_path / "w" / "7")
    assert other.script is not None
    assert parse_script(other.script).options["export"] == f"ALL,QUEUECAST_RESUME={tmp_path}/w/7/step3"
    assert other.script.endswith("print('QUEUECAST_RESUME')\n")


# ---------------------------------------------------------------- placing


def test_the_node_that_failed_is_left_out(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "NODE_FAIL"), SCRIPT.replace("-c 4", "-x n2"))
    assert changed(answer) == {"exclude": "n[1-2]"}
    events = [{"node": "n3", "start": SUBMIT + timedelta(minutes=120), "state": "DOWN", "reason": "Not responding"}]
    wide = asked(tmp_path / "b", job(7, "NODE_FAIL", node_list="n[1-3]", nodes_alloc=3, nodes_req=1), lake={"events": events})
    assert changed(wide) == {"exclude": "n3"}


def test_no_node_is_left_out_where_too_few_would_stay(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "NODE_FAIL", nodes_req=3))
    assert changed(answer) == {}
    assert any("too few nodes" in n for n in answer.notes)


def test_a_preempted_job_is_put_back_or_takes_a_qos_that_is_spared(tmp_path: Path) -> None:
    row = job(7, "PREEMPTED", qos="scav")
    assert changed(asked(tmp_path, row, SCRIPT.replace("-c 4", "-q scav --no-requeue"))) == {"no-requeue": None, "requeue": ""}
    answer = asked(tmp_path / "b", row, SCRIPT.replace("-c 4", "-q scav --requeue"))
    assert changed(answer) == {"qos": "normal"}


def test_a_gpu_with_more_memory(tmp_path: Path) -> None:
    row = job(7, "FAILED", partition="gpu", gpus_req=2, gpus_alloc=2, gpu_type_req="v100", gpu_type_alloc="v100", node_list="g1")
    script = SCRIPT.replace("-p cpu", "-p gpu --gres=gpu:v100:2,tmp:5")
    answer = asked(tmp_path, row, script, cause="oom_gpu")
    assert changed(answer) == {"gres": "gpu:a100:2,tmp:5"}
    untold = asked(tmp_path / "u", row, SCRIPT.replace("-p cpu", "-p gpu"), cause="oom_gpu")
    assert changed(untold) == {"gres": "gpu:a100:2"}
    top = job(7, "FAILED", partition="gpu", gpus_req=2, gpus_alloc=2, gpu_type_req="a100", gpu_type_alloc="a100", node_list="g2")
    none = asked(tmp_path / "b", top, script.replace("v100", "a100"), cause="oom_gpu")
    assert none.script is None
    assert any("batch" in m for m in none.mend)


def test_dependencies(tmp_path: Path) -> None:
    script = SCRIPT.replace("-c 4", "-d afterok:5:6,singleton")
    met = asked(tmp_path, job(7, "TIMEOUT", limit_s=3600), script)
    assert changed(met)["dependency"] is None
    row = job(7, "CANCELLED", start=None, node_list=None, elapsed_s=0, nodes_alloc=None, reason="DependencyNeverSatisfied")
    first = [job(5, "COMPLETED"), job(6, "FAILED", submit=SUBMIT - timedelta(hours=3), end=SUBMIT - timedelta(hours=2))]
    lost = asked(tmp_path / "b", row, script, more=first)
    assert lost.script is None
    assert lost.blocked
    assert "6" in lost.blocked
    follower = job(9, "COMPLETED", comment="queuecast:parent=toy/6")
    assert changed(asked(tmp_path / "c", row, script, more=[*first, follower])) == {"dependency": "afterok:9,singleton"}


# ---------------------------------------------------------------- what no flag mends


def test_what_no_flag_mends_is_refused_with_a_list(tmp_path: Path) -> None:
    for number, row in enumerate((job(7), job(7, exit_code=127), job(7, "COMPLETED"))):
        answer = asked(tmp_path / str(number), row)
        assert answer.script is None
        assert answer.mend
        forced = asked(tmp_path / f"f{number}", row, force=True)
        assert forced.script is not None
        assert "# NOT READY: " in forced.script
        assert "#   [ ] " in forced.script
        assert changed(forced) == {}


def test_only_the_failed_tasks_of_an_array(tmp_path: Path) -> None:
    def task(number: int, state: str, **more: Any) -> Row:
        return job(100 + number, state, array_job_id=100, array_task=number, job_id_text=f"100_{number}", array_throttle=2, **more)

    tasks = [task(n, "COMPLETED" if n % 3 else "OUT_OF_MEMORY") for n in range(10)]
    script = SCRIPT.replace("-c 4", "-a 0-9%2") + "echo $SLURM_ARRAY_TASK_COUNT\n"
    answer = asked(tmp_path, tasks[0], script, more=tasks[1:])
    assert changed(answer) == {"mem": "6G", "array": "0,3,6,9%2"}
    assert answer.tasks == (0, 3, 6, 9)
    assert any("SLURM_ARRAY_TASK_COUNT" in n for n in answer.notes)
    assert options(answer)["comment"] == "queuecast:parent=toy/100"
    # causes that no flag mends are left out, and told
    mixed = [*tasks[:9], task(9, "FAILED")]
    some = asked(tmp_path / "b", mixed[0], script, more=mixed[1:])
    assert some.tasks == (0, 3, 6)
    assert any("1 tasks are left out" in n for n in some.notes)
    one = asked(tmp_path / "c", mixed[0], script, more=mixed[1:], job="100_6")
    assert (one.job, changed(one)["array"]) == ("100_6", "6%2")


# ---------------------------------------------------------------- the command line, comments, copies of copies


def test_the_command_line_goes_before_the_script(tmp_path: Path) -> None:
    line = "sbatch --parsable -t 60 --mem-per-cpu=1G -J my run --comment=a b job.sh one two"
    row = job(7, "NODE_FAIL", submit_line=line, name="my run", comment="a b", limit_s=3600)
    answer = asked(tmp_path, row)
    made = options(answer)
    assert {k: made[k] for k in ("time", "mem-per-cpu", "job-name", "comment")} == {
        "time": "60", "mem-per-cpu": "1G", "job-name": "my run", "comment": "a b;queuecast:parent=toy/7",
    }  # fmt: skip
    assert "mem" not in made
    assert "parsable" not in made
    assert answer.arguments == ("one", "two")
    assert answer.script is not None
    assert '[ "$#" -gt 0 ] || set -- one two\n' in answer.script
    assert answer.script.endswith("module load x\nsrun ./a.out $1\n")


def test_a_copy_of_a_copy_keeps_the_arguments(tmp_path: Path) -> None:
    once = asked(tmp_path, job(7, "NODE_FAIL", submit_line="sbatch job.sh one"))
    assert once.script is not None
    twice = asked(tmp_path / "b", job(8, "NODE_FAIL", submit_line="sbatch retry.sh"), once.script)
    thrice = asked(tmp_path / "c", job(8, "NODE_FAIL", submit_line="sbatch retry.sh two"), once.script)
    assert twice.script is not None
    assert thrice.script is not None
    assert (twice.script.count("set -- one"), thrice.script.count("set -- one"), thrice.script.count("set -- two")) == (1, 0, 1)


def test_what_only_accounting_knows_is_told_and_kept(tmp_path: Path) -> None:
    answer = asked(tmp_path, job(7, "NODE_FAIL", partition="big", node_list="b1"), SCRIPT.replace("-p cpu ", ""))
    assert options(answer)["partition"] == "big"
    assert any("neither in the script nor on the command line" in n for n in answer.notes)
    other = asked(tmp_path / "b", job(7, "NODE_FAIL", partition="big", node_list="b1"))
    assert any("It ran with --partition=big" in n for n in other.notes)
    row = job(7, "NODE_FAIL", gpus_req=2, mem_req_bytes=8 * GIB, limit_s=600)
    told = " ".join(asked(tmp_path / "c", row).notes)
    assert all(w in told for w in ("time limit was 00:10:00", "memory was 8G", "number of GPUs was 2"))


def test_a_copy_of_a_copy_has_one_header_one_parent_and_the_line_of_descent(tmp_path: Path) -> None:
    once = asked(tmp_path, job(7, "OUT_OF_MEMORY", comment="mine"))
    assert once.script is not None
    row = job(8, "OUT_OF_MEMORY", mem_req_bytes=6 * GIB, mem_alloc_bytes=6 * GIB, comment="mine;queuecast:parent=toy/7")
    twice = asked(tmp_path / "b", row, once.script)
    assert twice.script is not None
    made = parse_script(twice.script).options
    assert (made["mem"], made["comment"]) == ("9G", "mine;queuecast:parent=toy/8")
    assert (twice.script.count(HEADER_BEGIN), twice.script.count("\n#SBATCH --comment")) == (1, 1)
    assert "# lineage: toy/7 oom_host --mem=6G\n# lineage: toy/8 oom_host --mem=9G\n" in twice.script
    # the same job again gives the same copy
    assert asked(tmp_path / "c", row, twice.script.replace("--mem=9G", "--mem=6G")).script is not None
    assert asked(tmp_path / "d", job(7, "OUT_OF_MEMORY", comment="mine")).script == once.script


ODD = ("x\n#SBATCH --mem=1T", "a;rm /", "$(id)", "`id`", "\x1b[2J", "'\"\\", "queuecast:parent=toy/1", "a" * 2000, "# <<< queuecast retry")
HOSTILE = st.text(max_size=40) | st.sampled_from(ODD)


@settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(name=HOSTILE, comment=HOSTILE, line=HOSTILE, argument=HOSTILE)
def test_hostile_names_change_nothing_but_themselves(
    tmp_path_factory: pytest.TempPathFactory, name: str, comment: str, line: str, argument: str
) -> None:
    name, comment, line, argument = (t.replace("\0", "").encode("utf-8", "replace").decode() for t in (name, comment, line, argument))
    row = job(7, "OUT_OF_MEMORY", name=name or None, comment=comment or None, submit_line=f"sbatch {line} job.sh {argument}")
    answer = asked(tmp_path_factory.mktemp("hostile"), row)
    assert answer.script is not None
    parts, original = split_script(answer.script), split_script(SCRIPT)
    assert parts.body == original.body
    assert all(s.startswith(('[ "$#" -gt 0 ] || set -- ', "export QUEUECAST_")) and s.isprintable() for s in parts.setup)
    read = parse_script(answer.script)
    assert "queuecast:parent=toy/7" in read.options["comment"]
    given_options = effective(parse_script(SCRIPT).options, answer.carried)
    expected = {**given_options, **{c.option: c.after for c in answer.changes}, "comment": read.options["comment"]}
    assert read.options == {k: v for k, v in expected.items() if v is not None}


# ---------------------------------------------------------------- errors and privacy


def test_errors_say_what_to_do(tmp_path: Path) -> None:
    lake = make(tmp_path / "lake", [job(7), job(8, "RUNNING", end=None, completeness=2), job(9, user="bob")])
    with pytest.raises(NoDataError):
        retry(lake, "toy", "55", NOW, ALICE)
    with pytest.raises(UsageError, match="not a job id"):
        retry(lake, "toy", "x", NOW, ALICE)
    with pytest.raises(UsageError, match="has not ended"):
        retry(lake, "toy", "8", NOW, ALICE)
    with pytest.raises(UsageError, match="has not ended"):
        retry(lake, "toy", "7", SUBMIT + timedelta(minutes=30), ALICE)
    with pytest.raises(NotPermitted):
        retry(lake, "toy", "9", NOW, ALICE)
    with pytest.raises(UsageError, match="--script FILE"):
        retry(lake, "toy", "7", NOW, ALICE)
    with pytest.raises(UsageError, match="no cause"):
        retry(lake, "toy", "7", NOW, ALICE, cause="magic")


def test_bytes_that_are_no_utf_8_stay(tmp_path: Path) -> None:
    raw = SCRIPT.encode() + b"echo f\xfcr\xff\n"
    (tmp_path / "job.sh").write_bytes(raw)
    os.utime(tmp_path / "job.sh", (SUBMIT.timestamp() - 60,) * 2)
    lake = make(tmp_path / "lake", [job(7, "OUT_OF_MEMORY", work_dir=str(tmp_path))])
    answer = retry(lake, "toy", "7", NOW, ALICE)
    assert answer.script is not None
    assert (answer.origin, answer.warnings) == ("file", ())
    assert answer.script.encode("utf-8", "surrogateescape").endswith(b"echo f\xfcr\xff\n")
    json.dumps(answer.as_json())
