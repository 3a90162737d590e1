"""``queuecast check``: each mistake is found at its line, and a good script passes."""

from __future__ import annotations

import json
import string
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.answers.prechecks.precheck import Finding, Precheck, precheck
from queuecast.answers.prechecks.quota import parse_quota
from queuecast.render.precheck import parsable, precheck_lines
from queuecast.store.lake import Lake

GOOD = """\
#!/bin/bash
#SBATCH --partition=gpu
#SBATCH --gres=gpu:a100:4
#SBATCH --cpus-per-task=8
#SBATCH --time=01:00:00
torchrun --standalone --nproc_per_node=4 train.py
"""


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    return make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows())


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "train.py").write_text("")
    return tmp_path


def script(*options: str, body: str = "torchrun --nproc_per_node=4 train.py", gres: str | None = "gpu:a100:4", time: str = "60") -> str:
    lines = ["#!/bin/bash", "#SBATCH -p gpu", *([f"#SBATCH --gres={gres}"] if gres else []), f"#SBATCH -t {time}"]
    return "\n".join([*lines, *(f"#SBATCH {o}" for o in options), body]) + "\n"


def look(text: str, lake: Lake | None, folder: Path | None, **more: Any) -> Precheck:
    return precheck(text, at=NOW, lake=lake, cluster="toy" if lake else None, user="alice", folder=folder, **more)


def codes(answer: Precheck) -> dict[str, Finding]:
    return {f.code: f for f in answer.findings if f.severity != "note"}


def test_a_good_script_passes(lake: Lake, folder: Path) -> None:
    answer = look(GOOD, lake, folder)
    assert codes(answer) == {}
    assert answer.status(strict=True) == 0
    assert answer.request is not None
    assert (answer.request.account, answer.request.qos) == ("vision", "normal")


@pytest.mark.parametrize(
    ("options", "gres", "code", "line"),
    [
        (["-p none"], "gpu:a100:4", "InvalidPartition", 5),
        (["-q none"], "gpu:a100:4", "InvalidQOS", 5),
        (["-A none"], "gpu:a100:4", "InvalidAccount", 5),
        (["-A bio"], "gpu:a100:4", "InvalidAccount", 5),
        ([], "gpu:a10:4", "gpu-type", 3),
        ([], "gpu:a100_1g.5gb:1", "gpu-type", 3),
        ([], "gpu:a100:8", "BadConstraints", 3),
        (["-c 65"], "gpu:a100:4", "BadConstraints", 5),
        (["-t 3-0"], "gpu:a100:4", "PartitionTimeLimit", 5),
        (["-t abc"], "gpu:a100:4", "option", 5),
        (["--mem=10G", "--mem-per-cpu=1G"], "gpu:a100:4", "memory-twice", 6),
        (["--mem=10"], "gpu:a100:4", "memory-unit", 5),
        (["--gpus=2"], "gpu:a100:4", "gpus-twice", 5),
        (["--frobnicate=2"], "gpu:a100:4", "script", 5),
        (["--output=$HOME/x"], "gpu:a100:4", "not-expanded", 5),
        (["--output=logs/%j.out"], "gpu:a100:4", "no-output-folder", 5),
        (["--error=%x/%j.err"], "gpu:a100:4", "no-output-folder", 5),
        (["--chdir=nowhere"], "gpu:a100:4", "no-folder", 5),
        (["--signal=B:USR1@60"], "gpu:a100:4", "no-trap", 5),
        (["-N2", "-n1"], "gpu:a100:4", "fewer-tasks-than-nodes", 6),
        (["-N2", "-n8", "--ntasks-per-node=2"], "gpu:a100:4", "tasks-disagree", 7),
        (["-N2", "-G3"], None, "uneven-gpus", 5),
        (["-N2", "-G1"], None, "fewer-gpus-than-nodes", 5),
    ],
)
def test_options(lake: Lake, folder: Path, options: list[str], gres: str | None, code: str, line: int) -> None:
    found = codes(look(script(*options, gres=gres), lake, folder))
    assert code in found, found
    assert found[code].line == line
    assert found[code].fix


@pytest.mark.parametrize(
    ("body", "code", "severity"),
    [
        ("torchrun --nproc_per_node=8 train.py", "processes", "error"),
        ("torchrun --nproc-per-node 2 train.py", "processes", "warning"),
        ("python -m torch.distributed.run --nproc_per_node=8 train.py", "processes", "error"),
        ("torchrun --nproc_per_node=4 --nnodes=2 train.py", "nnodes", "error"),
        ("accelerate launch --num_processes 8 train.py", "processes", "error"),
        ("accelerate launch --num_processes=4 --num_machines=2 train.py", "nnodes", "error"),
        ("deepspeed --num_gpus 2 train.py", "processes", "warning"),
        ("python train.py", "one-process", "warning"),
        ("srun python train.py", "one-process", "warning"),
        ("srun -n 8 python train.py", "srun-tasks", "warning"),
        ("srun --container-image=nvcr.io#nvidia/pytorch:24.01-py3 python train.py", "one-process", "warning"),
        ("srun -N 2 python train.py", "srun-nodes", "error"),
        ("export CUDA_VISIBLE_DEVICES=0,1\ntorchrun --nproc_per_node=4 train.py", "cuda-visible-devices", "warning"),
        ("CUDA_VISIBLE_DEVICES=0,1,2,3,4,5 torchrun --nproc_per_node=4 train.py", "cuda-visible-devices", "error"),
        ("torchrun --nproc_per_node=4 missing.py", "no-program", "error"),
        ("torchrun --nproc_per_node=4 \\\n  missing.py", "no-program", "error"),
        ("python3 missing.py", "no-program", "error"),
        ("./missing.sh", "no-program", "error"),
        ("srun ./missing.sh", "no-program", "error"),
        ("venv/bin/python train.py --x /root", "one-process", "warning"),
        ("./venv/bin/python train.py", "no-program", "error"),
        ("source missing/bin/activate", "no-file", "error"),
        ("cd missing", "no-folder", "error"),
        ("apptainer exec --nv missing.sif python train.py", "no-image", "error"),
        ("srun --container-image=./missing.sqsh python train.py", "no-image", "error"),
    ],
)
def test_commands(lake: Lake, folder: Path, body: str, code: str, severity: str) -> None:
    found = codes(look(script(body=body), lake, folder))
    assert code in found, found
    assert found[code].severity == severity
    where = found[code].line
    assert where is not None
    assert where >= 5


@pytest.mark.parametrize(
    "body",
    [
        "torchrun --nproc_per_node=$SLURM_GPUS_ON_NODE --nnodes=$SLURM_NNODES train.py",
        "N=4\ntorchrun --nproc_per_node=${N} train.py",
        "torchrun --nproc_per_node=gpu train.py",
        "accelerate launch --num_processes=4 train.py",
        "cat <<EOF\ncd missing\npython missing.py\nEOF\ntorchrun --nproc_per_node=4 train.py",
        "# python missing.py\ntorchrun --nproc_per_node=4 train.py",
        "for i in 0 1 2 3; do CUDA_VISIBLE_DEVICES=$i python train.py & done\nwait",
        "python train.py --prepare\ntorchrun --nproc_per_node=4 train.py",
        "torchrun --nproc_per_node=4 train.py --tag a#b  # don't run: python missing.py",
        "mkdir -p out && cd out\ntorchrun --nproc_per_node=4 $SLURM_SUBMIT_DIR/train.py",
        "torchrun --nproc_per_node=4 train.py --out /tmp/not/there > log.txt 2>&1",
        "python -c 'import torch; print(torch.cuda.device_count())'\ntorchrun --nproc_per_node=4 train.py",
    ],
)
def test_commands_that_are_fine(lake: Lake, folder: Path, body: str) -> None:
    assert codes(look(script(body=body), lake, folder)) == {}


def test_tasks_that_were_asked_for_bind_srun(folder: Path) -> None:
    found = codes(look(script("-n4", body="srun -n 8 python train.py"), None, folder))
    assert found["srun-tasks"].severity == "error"


def test_several_nodes_need_a_launcher(lake: Lake, folder: Path) -> None:
    text = script("-N2", body="torchrun --nproc_per_node=4 --nnodes=2 train.py")
    assert "one-node-only" in codes(look(text, None, folder))
    started = script("-N2", "--ntasks-per-node=1", body="srun torchrun --nproc_per_node=4 --nnodes=2 train.py")
    assert codes(look(started, None, folder)) == {}
    twice = script("-N2", "--ntasks-per-node=4", body="srun torchrun --nproc_per_node=4 --nnodes=2 train.py")
    assert "torchrun-per-task" in codes(look(twice, None, folder))


def test_signals(folder: Path) -> None:
    body = "trap 'touch x' USR1\ntorchrun --nproc_per_node=4 train.py"
    late = codes(look(script("--signal=B:USR1@60", body=body), None, folder))
    assert "trap-too-late" in late
    fine = script("--signal=B:USR1@60", body=body + " &\nwait $!")
    assert codes(look(fine, None, folder)) == {}
    assert "signal-not-to-script" in codes(look(script("--signal=USR1@60", body=body + " &\nwait"), None, folder))
    assert "signal-at-once" in codes(look(script("--signal=B:USR1@6000", body=body + " &\nwait"), None, folder))
    assert "no-checkpoint" in codes(look(script(time="1-0"), None, folder))
    assert codes(look(script(time="1-0", body="torchrun --nproc_per_node=4 train.py --resume"), None, folder)) == {}
    requeue = script("--no-requeue", body="scontrol requeue $SLURM_JOB_ID")
    assert "no-requeue" in codes(look(requeue, None, folder))


def test_modules(folder: Path) -> None:
    (folder / "modules" / "cuda").mkdir(parents=True)
    (folder / "modules" / "cuda" / "12.4.lua").write_text("")
    env = {"MODULEPATH": str(folder / "modules")}
    body = "module load cuda/99\ntorchrun --nproc_per_node=4 train.py"
    found = codes(look(script(body=body), None, folder, env=env))
    assert "cuda/12.4" in found["no-module"].fix
    assert codes(look(script(body=body.replace("99", "12.4")), None, folder, env=env)) == {}
    assert any("MODULEPATH" in text for text in look(script(body=body), None, folder).unchecked)


QUOTA = """\
Disk quotas for user alice (uid 1000):
     Filesystem  blocks   quota   limit   grace   files   quota   limit   grace
   nas:/home      98000* 100000  110000       0     120       0       0       0
   nas:/work       1000       0       0       0   90000   80000   80000   5days
"""


def test_quotas(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    read = parse_quota(QUOTA)
    assert [(q.place, q.what, q.used, q.limit) for q in read] == [
        ("nas:/home", "space", 98000, 100000),
        ("nas:/work", "files", 90000, 80000),
    ]
    monkeypatch.setattr("queuecast.answers.prechecks.paths.own_quotas", lambda *_paths: read)
    found = [(f.severity, f.why) for f in look(GOOD, None, folder).findings if f.code == "quota"]
    assert [severity for severity, _ in found] == ["error", "warning"]
    assert "98%" in found[1][1]


def test_little_space(monkeypatch: pytest.MonkeyPatch, folder: Path) -> None:
    monkeypatch.setattr("shutil.disk_usage", lambda path: type("Usage", (), {"free": 1 << 30})())
    assert codes(look(GOOD, None, folder))["little-space"].severity == "warning"


@given(st.text(alphabet="0123456789 *\nabc", max_size=200))
def test_any_text_of_quota_is_read(text: str) -> None:
    assert all(q.limit > 0 and q.used >= 0 for q in parse_quota(text))


def test_paths_that_this_machine_does_not_see_are_told_and_not_judged(lake: Lake, folder: Path) -> None:
    body = "torchrun --nproc_per_node=4 /nowhere-here/train.py --data /nowhere-here/data"
    answer = look(script("--output=/nowhere-here/logs/%j", body=body), lake, folder)
    assert codes(answer) == {}
    assert len([u for u in answer.unchecked if "/nowhere-here" in u]) == 1
    assert codes(look(script(body="python missing.py", gres="gpu:1"), lake, folder, paths=False)) == {}


def test_the_command_line_overrides_the_script_and_arguments_are_filled_in(lake: Lake, folder: Path) -> None:
    answer = look(script(body="torchrun --nproc_per_node=4 $1"), lake, folder, options={"gres": "gpu:a100:2"}, arguments=["missing.py"])
    found = codes(answer)
    assert answer.request is not None
    assert answer.request.gpus == 2
    assert {"processes", "no-program"} <= set(found)


def test_without_a_lake_the_script_alone_is_judged(folder: Path) -> None:
    answer = look(script("-p none"), None, folder)
    assert codes(answer) == {}
    assert len(answer.unchecked) == 1


def test_limit_against_like_jobs(tmp_path: Path, folder: Path) -> None:
    rows = job_rows(400)
    for number, row in enumerate(r for r in rows if r["end"] and r["start"] and r["user"] == "alice"):
        row |= {"name": "train", "state": "COMPLETED", "elapsed_s": 1800 + 60 * number % 1800, "gpus_req": 4}
    lake = make_lake(tmp_path / "lake", rows)
    short = codes(look(script("-J train", time="35"), lake, folder))
    assert short["limit-short"].line == 4
    assert "with this name" in short["limit-short"].why
    assert "limit-short" not in codes(look(script("-J train", time="60"), lake, folder))
    long = [f for f in look(script("-J train", time="20:00:00"), lake, folder).findings if f.code == "limit-long"]
    assert long[0].severity == "note"
    early = precheck(script("-J train", time="35"), at=NOW - timedelta(days=30), lake=lake, cluster="toy", user="alice", folder=folder)
    assert not [f for f in early.findings if f.code.startswith("limit")], "nothing later than the moment is used"


def test_a_limit_that_would_hold_for_ever_and_one_that_holds_now(tmp_path: Path, folder: Path) -> None:
    lake = make_lake(tmp_path / "lake", job_rows())
    with lake.transaction("more") as tx:
        seen = {"cluster": "toy", "observed_at": NOW}
        tx.append("settings", table("settings", [{**seen, "section": "config", "key": "AccountingStorageEnforce", "value": "limits"}]))
        tx.append("qos", table("qos", [{**seen, "qos": "normal"}, {**seen, "qos": "high", "grp_tres": "gres/gpu=2"}]))
    found = codes(look(script("-q high"), lake, folder))
    assert "for ever" in found["QOSGrpGRES"].why
    assert found["QOSGrpGRES"].severity == "error"
    assert found["QOSGrpGRES"].line == 3


def test_output_is_safe_and_whole(lake: Lake, folder: Path) -> None:
    answer = look(script("-p x\x1b[31m|y", "--mem=10"), lake, folder)
    lines = precheck_lines(answer, 80)
    assert not any("\x1b" in line for line in lines)
    assert all(len(line) <= 80 or " " not in line.strip() for line in lines)
    rows = parsable(answer).splitlines()
    assert len(rows) == 1 + len(answer.findings)
    assert {row.count("|") for row in rows} == {4}
    told = json.loads(json.dumps(answer.as_json()))
    assert told["errors"] == answer.count("error")


LINES = st.one_of(
    st.text(max_size=40),
    st.sampled_from(["#SBATCH ", "torchrun ", "srun ", "module load ", "cd ", "apptainer exec ", "trap ", "export ", "source "]).flatmap(
        lambda head: st.text(alphabet=string.printable, max_size=30).map(lambda tail: head + tail)
    ),
)


@settings(max_examples=150, deadline=None)
@given(st.lists(LINES, max_size=8))
def test_any_text_gets_an_answer(lake: Lake, tmp_path_factory: pytest.TempPathFactory, lines: list[str]) -> None:
    answer = look("\n".join(["#!/bin/bash", *lines]), lake, tmp_path_factory.getbasetemp())
    count = "\n".join(lines).count("\n") + 2
    assert all(f.line is None or 1 <= f.line <= count for f in answer.findings)
    assert answer.status() in (0, 3)
