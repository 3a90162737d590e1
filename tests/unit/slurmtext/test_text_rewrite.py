"""Changed copies of scripts: the options asked for and no others, the commands as they were, one header."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.slurmtext.rewrite import EXCLUDING, HEADER_BEGIN, SETUP_BEGIN, comment, diff_lines, is_shell, rewrite, split_script
from queuecast.slurmtext.script import parse_script

SCRIPT = """#!/bin/bash
# my training
#SBATCH -J train --mem=4G   # 4G is enough
#SBATCH -N 2 -p gpu

#SBATCH --time 1:00:00
module load cuda
#SBATCH --mem=900G
srun ./a.out
"""

NAMES = (
    "mem", "mem-per-cpu", "time", "partition", "job-name", "comment", "exclude", "array", "requeue", "no-requeue", "exclusive",
    "dependency", "output", "nodes", "gres", "hold",
)
FLAGS = ("requeue", "no-requeue", "hold")
VALUES = st.text(st.characters(exclude_categories=("Cc", "Cs", "Zl", "Zp", "Cf", "Co", "Cn")), max_size=20).filter(str.isprintable)


def emitted(name: str, value: str, style: int) -> str:
    short = {"mem": None, "time": "t", "partition": "p", "job-name": "J", "nodes": "N", "array": "a"}.get(name)
    quoted = '"' + value.replace("\\", "\\\\").replace('"', '\\"') + '"'
    if name in FLAGS or (name == "exclusive" and not value):
        return f"--{name}"
    if style == 1 and short:
        return f"-{short} {quoted}"
    if style == 2 and short and value:
        return f"-{short}{quoted}"
    return f"--{name}={quoted}" if style != 3 or name == "exclusive" else f"--{name} {quoted}"


@st.composite
def scripts(draw: st.DrawFn) -> str:
    lines = ["#!/bin/bash"]
    for _ in range(draw(st.integers(0, 6))):
        kind = draw(st.integers(0, 4))
        if kind == 0:
            lines.append("# " + draw(VALUES))
        elif kind == 1:
            lines.append("")
        else:
            words = []
            for _ in range(draw(st.integers(1, 3))):
                name = draw(st.sampled_from(NAMES))
                words.append(emitted(name, "" if name in FLAGS else draw(VALUES), draw(st.integers(0, 3))))
            tail = draw(st.sampled_from(["", "  # why", " --container-image=a.sqsh", " --nvidia-x y"]))
            lines.append("#SBATCH " + " ".join(words) + tail)
    body = draw(st.lists(st.sampled_from(["srun x", "#SBATCH --mem=1", "", "echo $1", HEADER_BEGIN, SETUP_BEGIN, "# end"]), max_size=4))
    return "\n".join([*lines, "true", *body]) + draw(st.sampled_from(["", "\n"]))


@st.composite
def changes(draw: st.DrawFn) -> dict[str, str | None]:
    names = draw(st.lists(st.sampled_from(NAMES), max_size=4, unique=True))
    out = {n: draw(st.one_of(st.none(), st.just("") if n in FLAGS else VALUES)) for n in names}
    for group in EXCLUDING:  # a request for two that exclude each other is none
        for extra in [n for n in out if n in group and out[n] is not None][1:]:
            del out[extra]
    return out


def expected(text: str, wanted: dict[str, str | None]) -> dict[str, str]:
    options = dict(parse_script(text).options)
    for name, value in wanted.items():
        for group in EXCLUDING:
            if name in group and value is not None:
                for other in group - {name}:
                    options.pop(other, None)
    for name, value in wanted.items():
        if value is None:
            options.pop(name, None)
        else:
            options[name] = value
    return options


@settings(max_examples=400)
@given(scripts(), changes(), st.lists(st.text(max_size=30), max_size=3), st.sampled_from([[], ["export QUEUECAST_RESUME='/a b'"]]))
def test_exactly_the_options_asked_for_and_the_same_commands(
    text: str, wanted: dict[str, str | None], header: list[str], setup: list[str]
) -> None:
    made = rewrite(text, wanted, header=header, setup=setup)
    assert parse_script(made).options == expected(text, wanted)
    assert split_script(made).body == split_script(text).body
    assert made.endswith("\n".join(split_script(text).body))
    # again: nothing more happens
    assert rewrite(made, wanted, header=header, setup=setup) == made
    assert made.split("\n").count(HEADER_BEGIN) <= text.split("\n").count(HEADER_BEGIN) + bool(header)


@settings(max_examples=200)
@given(scripts())
def test_nothing_asked_for_changes_nothing(text: str) -> None:
    assert rewrite(text, {}) == text


@given(st.text())
def test_any_text_is_read(text: str) -> None:
    made = rewrite(text, {"mem": "2G"}, header=["x"])
    if text.startswith("#!"):
        assert parse_script(made).options["mem"] == "2G"
    parts = split_script(text)
    if not parts.header and not parts.setup:
        assert "\n".join([*parts.head, *parts.body]) == text


@given(st.text())
def test_a_comment_is_one_comment_line(text: str) -> None:
    line = comment(text)
    assert line.isprintable()
    assert line.startswith("# ") or line == "#"
    assert parse_script(f"#!/bin/sh\n{line}\n#SBATCH -t 5\n").options == {"time": "5"}


def test_a_line_with_several_options_keeps_the_others() -> None:
    made = rewrite(SCRIPT, {"mem": "8G", "partition": "long", "exclude": "gpu07"}, header=["why"])
    assert made == (
        "#!/bin/bash\n# >>> queuecast retry\n# why\n# <<< queuecast retry\n# my training\n"
        "#SBATCH -J train --mem=8G  # 4G is enough\n#SBATCH -N 2 --partition=long\n\n#SBATCH --time 1:00:00\n#SBATCH --exclude=gpu07\n"
        "module load cuda\n#SBATCH --mem=900G\nsrun ./a.out\n"
    )
    assert diff_lines(SCRIPT, made) == [
        "- #SBATCH -J train --mem=4G   # 4G is enough", "+ #SBATCH -J train --mem=8G  # 4G is enough", "- #SBATCH -N 2 -p gpu",
        "+ #SBATCH -N 2 --partition=long", "+ #SBATCH --exclude=gpu07",
    ]


def test_an_option_is_taken_out_with_its_line() -> None:
    assert "dependency" not in rewrite("#!/bin/sh\n#SBATCH -d afterok:5\n#SBATCH -t 5\ntrue\n", {"dependency": None})
    assert parse_script(rewrite("#!/bin/sh\n#SBATCH -Hd afterok:5 -t 5\ntrue\n", {"dependency": None})).options == {"hold": "", "time": "5"}


def test_memory_per_cpu_takes_memory_out() -> None:
    made = rewrite("#!/bin/sh\n#SBATCH --mem=4G\ntrue\n", {"mem-per-cpu": "2G"})
    assert parse_script(made).options == {"mem-per-cpu": "2G"}


def test_only_the_first_component_of_a_heterogeneous_job() -> None:
    text = "#!/bin/sh\n#SBATCH --mem=1G\n#SBATCH hetjob\n#SBATCH --mem=2G\ntrue\n"
    read = parse_script(rewrite(text, {"mem": "4G", "time": "5"}))
    assert read.options == {"mem": "4G", "time": "5"}
    assert read.components[0].options == {"mem": "2G"}


def test_earlier_copies_leave_nothing_behind() -> None:
    once = rewrite(SCRIPT, {"mem": "6G"}, header=["first"], setup=["export QUEUECAST_RESUME=/a"])
    twice = rewrite(once, {"mem": "8G"}, header=["second"], setup=["export QUEUECAST_RESUME=/b"])
    assert (twice.count(HEADER_BEGIN), twice.count(SETUP_BEGIN), "first" in twice, "=/a" in twice) == (1, 1, False, False)
    assert rewrite(twice, {"mem": "4G"}) == rewrite(SCRIPT, {"mem": "4G"})


def test_marks_around_a_persons_own_lines_are_left() -> None:
    text = f"#!/bin/sh\n{HEADER_BEGIN}\n#SBATCH -t 5\n# <<< queuecast retry\n{SETUP_BEGIN}\nrm -r data\n# <<< queuecast setup\ntrue\n"
    assert rewrite(text, {}) == text


@pytest.mark.parametrize("value", ["two\nlines", "esc\x1b[31m", "nul\0", "tab\t"])
def test_a_value_that_no_line_can_hold_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="job-name"):
        rewrite(SCRIPT, {"job-name": value})


@pytest.mark.parametrize(
    ("first", "shell"),
    [
        ("#!/bin/bash", True), ("#!/bin/bash -l", True), ("#!/usr/bin/env bash", True), ("#!/usr/bin/env -S bash -e", True),
        ("#!/bin/sh", True), ("#!/usr/bin/env python3", False), ("#!/usr/bin/python3", False), ("#!/bin/csh", False),
        ("#!/usr/bin/fish", False), ("", False), ("#!", False),
    ],
)
def test_which_interpreters_are_shells(first: str, shell: bool) -> None:
    assert is_shell(first + "\ntrue\n") is shell
