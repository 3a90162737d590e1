"""All components of a heterogeneous job are checked, each finding at its own line."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.unit.synthetic import NOW, job_rows, make_lake, table

from queuecast.answers.prechecks.precheck import Precheck, precheck
from queuecast.store.lake import Lake


@pytest.fixture(scope="module")
def lake(tmp_path_factory: pytest.TempPathFactory) -> Lake:
    made = make_lake(tmp_path_factory.mktemp("toy") / "lake", job_rows(60))
    with made.transaction("qos") as tx:
        tx.append("qos", table("qos", [{"cluster": "toy", "observed_at": NOW, "qos": "normal", "grp_tres": "gres/gpu=6"}]))
    return made.refresh()


def look(text: str, lake: Lake | None, **more: Any) -> Precheck:
    return precheck(text, at=NOW, lake=lake, cluster="toy" if lake else None, user="alice", **more)


def script(*second: str, first: str = "-p gpu --gres=gpu:a100:2 -t 60", word: str = "hetjob") -> str:
    return "\n".join(["#!/bin/bash", f"#SBATCH {first}", f"#SBATCH {word}", *(f"#SBATCH {o}" for o in second), "srun hostname", ""])


def found(answer: Precheck) -> dict[str, tuple[int | None, str, str]]:
    return {f.code: (f.line, f.severity, f.why) for f in answer.findings if f.severity != "note"}


@pytest.mark.parametrize("word", ["hetjob", "packjob"])
@pytest.mark.parametrize(
    ("options", "code", "line"),
    [
        (["-p cpu -t 60", "-q none"], "InvalidQOS", 5),
        (["-p none", "-t 60"], "InvalidPartition", 4),
        (["-p cpu", "-t abc"], "option", 5),
        (["-p gpu -t 60", "", "--gres=gpu:a100:8"], "BadConstraints", 6),
        (["-p gpu -t 60", "--mem=4G", "--mem-per-cpu=1G"], "memory-twice", 6),
        (["-p cpu -t 60", "-t 30-0"], "PartitionTimeLimit", 5),
        (["-p cpu -t 60", "--output=$HOME/x"], "not-expanded", 5),
    ],
)
def test_a_mistake_in_a_further_component_is_found_at_its_line(lake: Lake, word: str, options: list[str], code: str, line: int) -> None:
    answer = look(script(*options, word=word), lake)
    here, severity, why = found(answer)[code]
    assert (here, severity) == (line, "error")
    assert why.startswith("Component +1: ")
    assert answer.status() == 3


def test_the_first_component_keeps_its_own_lines(lake: Lake) -> None:
    answer = look(script("-p cpu -t 60", first="-p gpu --gres=gpu:a100:8 -t 60"), lake)
    line, _severity, why = found(answer)["BadConstraints"]
    assert line == 2
    assert not why.startswith("Component")


def test_a_good_one_passes_and_its_requests_are_told(lake: Lake) -> None:
    answer = look(script("-p cpu -t 60 -n 4"), lake)
    assert found(answer) == {}
    assert [r.partitions for r in answer.components] == [("cpu",)]
    assert (answer.components[0].cpus, answer.components[0].account) == (4, "vision")
    plain = json.loads(json.dumps(answer.as_json()))
    assert plain["request"]["gpus"] == 2
    assert plain["components"][0]["partitions"] == ["cpu"]
    assert any("--het-group" in text for text in answer.unchecked)
    assert look(script("-p cpu -t 60 -n 4"), None).components[0].cpus == 4


def test_all_components_together_count_against_a_limit(lake: Lake) -> None:
    """4 and 4 GPUs fit by themselves; the QOS allows 6 altogether, and they start at once."""
    one = "-p gpu --gres=gpu:a100:4 -t 60"
    answer = look(script(one, first=one), lake)
    line, severity, why = found(answer)["QOSGrpGRES"]
    assert (line, severity) == (None, "error")
    assert why.startswith("All components together: ")
    assert "QOSGrpGRES" not in found(look(script("-p gpu --gres=gpu:a100:2 -t 60", first=one), lake))


def test_what_waits_by_itself_and_never_starts_together_is_an_error(tmp_path: Path) -> None:
    """4 of 6 GPUs are in use: each component would wait; both never fit."""
    rows = job_rows(60)
    rows[0] |= {
        "job_id": 5,
        "user": "bob",
        "partition": "gpu",
        "gpus_req": 4,
        "submit": NOW,
        "eligible": NOW,
        "start": NOW,
        "end": None,
        "state": "RUNNING",
    }
    made = make_lake(tmp_path / "lake", rows)
    with made.transaction("qos") as tx:
        tx.append("qos", table("qos", [{"cluster": "toy", "observed_at": NOW, "qos": "normal", "grp_tres": "gres/gpu=6"}]))
    one = "-p gpu --gres=gpu:a100:4 -t 60"
    told = [(f.severity, f.why) for f in look(script(one, first=one), made.refresh()).findings if f.code == "QOSGrpGRES"]
    assert next(why for severity, why in told if severity == "error").startswith("All components together")


def test_components_of_the_command_line(lake: Lake) -> None:
    plain = "#!/bin/bash\n#SBATCH -p gpu --gres=gpu:a100:1 -t 60\nsrun hostname\n"
    answer = look(plain, lake, components=[{"partition": "cpu", "time": "60"}, {"partition": "none"}])
    assert len(answer.components) == 2
    line, _severity, why = found(answer)["InvalidPartition"]
    assert line is None
    assert why.startswith("Component +2: ")


IN_FIRST = script("-p cpu -t 60", first="-p gpu -a 1-4 -t 60")


@pytest.mark.parametrize(("text", "line"), [(script("-p cpu -t 60", "--array=1-4"), 5), (IN_FIRST, 2)])
def test_an_array_is_refused(lake: Lake, text: str, line: int) -> None:
    assert found(look(text, lake))["het-array"][:2] == (line, "error")


OPTIONS = ["-p gpu", "-p x", "--mem=1G", "-t 5", "--gres=gpu:a100:2", "hetjob", "-N2", "-q none", "--wrong"]


@given(st.lists(st.sampled_from(OPTIONS), max_size=12))
def test_each_line_is_one_that_says_what_is_told(lines: list[str]) -> None:
    text = "#!/bin/bash\n" + "".join(f"#SBATCH {o}\n" for o in lines) + "srun hostname\n"
    answer = look(text, None)
    assert len(answer.components) <= lines.count("hetjob")
    for finding in answer.findings:
        assert finding.line is None or 1 <= finding.line <= len(lines) + 2
        if finding.why.startswith("Component +") and finding.line is not None:
            number = int(finding.why.split("+")[1].split(":")[0])
            assert lines[: finding.line - 2].count("hetjob") == number


def test_without_components_nothing_changes(lake: Lake, tmp_path: Path) -> None:
    answer = look("#!/bin/bash\n#SBATCH -p gpu --gres=gpu:a100:1 -t 60\nsrun hostname\n", lake, folder=tmp_path)
    assert answer.components == ()
    assert not any("het-group" in text for text in answer.unchecked)


def test_what_a_component_takes_over_and_what_not(lake: Lake) -> None:
    """As seen on a real Slurm: account and QOS of the first, not its partition or limit; a command line without colons holds for all."""
    text = script("-n2", "-t 7", first="-p cpu -q high -t 5")
    second = look(text, lake).components[0]
    assert (second.qos, second.partitions, second.limit_s) == ("high", ("gpu",), 420)
    asked = look(text, lake, options={"partition": "cpu", "time": "9"}).components[0]
    assert (asked.partitions, asked.limit_s) == (("cpu",), 540)
    each = look(text, lake, options={"time": "9"}, components=[{"time": "11"}]).components[0]
    assert (each.partitions, each.limit_s) == (("gpu",), 660)
    assert [f.code for f in look(script("-n2 -t 7", first="-p cpu -q none -t 5"), lake).findings].count("InvalidQOS") == 1
