"""Batch scripts and submission flags."""

from __future__ import annotations

import shlex

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.slurmtext.script import parse_options, parse_script

HEAD = "#!/bin/bash\n"


def options(body: str) -> dict[str, str]:
    return parse_script(HEAD + body).options


def test_a_common_script() -> None:
    request = parse_script("""#!/bin/bash -l

# resources
#SBATCH --job-name="train resnet"   # a comment
#SBATCH -p gpu,long
#SBATCH --gres=gpu:a100:2
#SBATCH --time 1-12:00:00
#SBATCH -c8
#SBATCH --exclusive

module load cuda
#SBATCH --mem=900G
srun python train.py
""")
    assert request.options == {"job-name": "train resnet", "partition": "gpu,long", "gres": "gpu:a100:2", "time": "1-12:00:00",
                               "cpus-per-task": "8", "exclusive": ""}
    assert request.lines == {"job-name": 4, "partition": 5, "gres": 6, "time": 7, "cpus-per-task": 8, "exclusive": 9}
    assert request.problems == ["line 12: #SBATCH after the first command is ignored"]


@pytest.mark.parametrize(("line", "expected"), [
    ("--time=30", {"time": "30"}), ("--time 30", {"time": "30"}), ("-t 30", {"time": "30"}), ("-t30", {"time": "30"}),
    ("-p gpu", {"partition": "gpu"}), ("-pgpu", {"partition": "gpu"}), ("-Hp gpu", {"hold": "", "partition": "gpu"}),
    ("--mem=4G --nodes=2", {"mem": "4G", "nodes": "2"}), ("-J 'a b'", {"job-name": "a b"}), ('-J "a # b"', {"job-name": "a # b"}),
    (r"-J a\ b", {"job-name": "a b"}), ("-J a#b", {"job-name": "a#b"}), ("-N 2 # two", {"nodes": "2"}),
    ("--comment=", {"comment": ""}), ("--exclusive=user", {"exclusive": "user"}),
    ("-d afterok:1:2", {"dependency": "afterok:1:2"}),
    ("--array=0-11%2", {"array": "0-11%2"}), ("-a 1-5", {"array": "1-5"}), ("-G a100:2", {"gpus": "a100:2"}),
    ("--gpus-per-node=v100:2", {"gpus-per-node": "v100:2"}), ("--gpus-per-task=1", {"gpus-per-task": "1"}),
    ("--mem-per-cpu=2G", {"mem-per-cpu": "2G"}), ("--mem-per-gpu 8G", {"mem-per-gpu": "8G"}), ("-n4", {"ntasks": "4"}),
    ("-A vision -q high -C 'a100&ib'", {"account": "vision", "qos": "high", "constraint": "a100&ib"}),
    ("-L ansys:2 --reservation=course -w n[1-2] -x n3 -b now+1hour",
     {"licenses": "ansys:2", "reservation": "course", "nodelist": "n[1-2]", "exclude": "n3", "begin": "now+1hour"}),
    ("--wrap='sleep 5; exit'", {"wrap": "sleep 5; exit"}), ("--tasks-per-node=4", {"ntasks-per-node": "4"}),
    ("\t--time=5\t", {"time": "5"}),
    ("--nice", {"nice": ""}), ("--no-requeue", {"no-requeue": ""}),
])
def test_one_line(line: str, expected: dict[str, str]) -> None:
    request = parse_script(f"{HEAD}#SBATCH {line}\n")
    assert request.options == expected
    assert request.problems == []
    assert set(request.lines.values()) == {2}


@pytest.mark.parametrize("line", ["##SBATCH --time=5", "# SBATCH --time=5", " #SBATCH --time=5", "#SBATCHER --time=5",
                                  "#sbatch --time=5", "#PBS -l walltime=5", "#SBATCH", "#SBATCH # --time=5"])
def test_lines_that_are_no_options(line: str) -> None:
    request = parse_script(f"{HEAD}{line}\n")
    assert request.options == {}
    assert request.problems == []


def test_later_lines_override() -> None:
    request = parse_script(f"{HEAD}#SBATCH --time=5\n#SBATCH -t 10\n")
    assert request.options == {"time": "10"}
    assert request.lines == {"time": 3}


def test_magic_without_a_blank() -> None:
    assert options("#SBATCH--time=5\n") == {"time": "5"}


def test_dos_line_ends_and_byte_order_mark_are_read_and_told() -> None:
    request = parse_script("\ufeff#!/bin/bash\r\n#SBATCH --time=5\r\n#SBATCH -p gpu\r\n")
    assert request.options == {"time": "5", "partition": "gpu"}
    assert request.lines == {"time": 2, "partition": 3}
    assert len(request.problems) == 2
    assert "byte order mark" in request.problems[0]
    assert "DOS" in request.problems[1]


@pytest.mark.parametrize(("line", "problem", "expected"), [
    ("--tim=5 -p gpu", "unknown option --tim", {"partition": "gpu"}),
    ("--frobnicate 7 -p gpu", "unknown option --frobnicate", {"partition": "gpu"}),
    ("-Z -p gpu", "unknown option -Z", {"partition": "gpu"}),
    ("--time", "--time needs a value", {}),
    ("-p", "-p needs a value", {}),
    ("--hold=yes", "--hold takes no value", {"hold": ""}),
    ("run.sh --time=5", "'run.sh' is not an option", {}),
    ('-J "open', "a quote is not closed", {"job-name": "open"}),
])
def test_problems_carry_the_line(line: str, problem: str, expected: dict[str, str]) -> None:
    request = parse_script(f"{HEAD}#SBATCH {line}\n")
    assert request.options == expected
    assert len(request.problems) == 1
    assert request.problems[0].startswith("line 2: ")
    assert problem in request.problems[0]


def test_no_interpreter_line_is_told() -> None:
    assert parse_script("#SBATCH --time=5\n").options == {"time": "5"}
    assert "#!" in parse_script("#SBATCH --time=5\n").problems[0]
    assert parse_script("").options == {}


def test_heterogeneous_script() -> None:
    request = parse_script(f"{HEAD}#SBATCH -p cpu -n1\n#SBATCH hetjob\n#SBATCH -p gpu -G 4\n")
    assert request.options == {"partition": "cpu", "ntasks": "1"}
    assert [c.options for c in request.components] == [{"partition": "gpu", "gpus": "4"}]
    assert request.components[0].lines == {"partition": 4, "gpus": 4}


def test_flags_of_a_submission() -> None:
    request = parse_options(["-p", "gpu", "--gres=gpu:2", "-t1:00:00", "-N", "2", "run.sh", "--epochs=5"])
    assert request.options == {"partition": "gpu", "gres": "gpu:2", "time": "1:00:00", "nodes": "2"}
    assert request.rest == ["run.sh", "--epochs=5"]
    assert request.lines == {}
    assert request.problems == []


def test_flags_of_a_heterogeneous_submission() -> None:
    request = parse_options(["-p", "cpu", ":", "-p", "gpu", "-G4", "--", "run.sh"])
    assert request.options == {"partition": "cpu"}
    assert [c.options for c in request.components] == [{"partition": "gpu", "gpus": "4"}]
    assert request.rest == ["run.sh"]


def test_an_unknown_flag_does_not_swallow_the_script() -> None:
    request = parse_options(["--new-flag", "run.sh"])
    assert request.problems == ["unknown option --new-flag"]
    assert request.rest == ["run.sh"]


_CHARACTERS = st.characters(blacklist_categories=("Cs", "Cc", "Zl", "Zp", "Zs"))
_VALUE = st.text(_CHARACTERS, min_size=1, max_size=20).map(lambda t: t.replace("-", "_"))
_LONG = st.sampled_from(["partition", "time", "job-name", "mem", "gres", "account", "comment", "constraint"])


@settings(deadline=None)
@given(st.dictionaries(_LONG, _VALUE, min_size=1))
def test_quoted_values_come_back(wanted: dict[str, str]) -> None:
    lines = "".join(f"#SBATCH --{name}={shlex.quote(value)}\n" for name, value in wanted.items())
    assert options(lines) == wanted
    assert parse_options([word for name, value in wanted.items() for word in (f"--{name}", value)]).options == wanted


@settings(deadline=None)
@given(st.text(max_size=200))
def test_any_text_is_read(text: str) -> None:
    for script in (text, HEAD + "#SBATCH " + text):
        found = parse_script(script)
        assert set(found.lines) == set(found.options)


@settings(deadline=None)
@given(st.lists(st.text(max_size=12), max_size=8))
def test_any_flags_are_read(words: list[str]) -> None:
    request = parse_options(words)
    assert len(request.rest) <= len(words)
