"""What no live command may ever do, over all kinds and releases."""

from __future__ import annotations

import pytest

from queuecast.collect.commands import LIVE_KINDS, WINDOWED_KINDS, command_for
from queuecast.collect.fields import Chosen, Version, choose_sacct, choose_sprio, choose_squeue, parse_helpformat

from .test_commands import START, chosen
from .test_fields import HELP

VERSIONS = [None, *(Version(*release) for release in HELP), Version(20, 2), Version(26, 5)]


def command(kind: str, version: Version | None) -> tuple[str, ...]:
    columns = chosen(version or Version(22, 5)) | {"squeue": choose_squeue(version), "sprio": choose_sprio(version)}
    return command_for(kind, columns, version, cluster="campus", start=START if kind in WINDOWED_KINDS else None)


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("kind", LIVE_KINDS)
def test_D08_nothing_is_filtered_by_state(kind: str, version: Version | None) -> None:
    """A filter of sacct means "was so within the window", one of squeue hides jobs: states are read, not asked for."""
    words = command(kind, version)
    if words[0] != "scontrol":  # its -d is for details
        assert not {"-s", "-t", "-i", "-p", "-R", "-r", "-d", "--dead", "--responding", "--list-reasons"} & set(words)
    for word in words:
        assert not word.lower().startswith(("--state", "states=", "state="))


@pytest.mark.parametrize("version", VERSIONS, ids=str)
@pytest.mark.parametrize("kind", LIVE_KINDS)
def test_G07_no_format_builds_json(kind: str, version: Version | None) -> None:
    """A name with a quote or backslash would break it: formats hold fields and the delimiter, nothing else."""
    for word in command(kind, version):
        assert not set(word) & set("{}[]\"'\\")
        assert not word.startswith(("--json", "--yaml"))


@pytest.mark.parametrize("release", HELP, ids=str)
def test_B31_every_column_asked_for_is_offered(release: tuple[int, int, int]) -> None:
    """AllocGRES and ReqGRES, Reserved and Planned, SLUID: one name that a release lacks makes sacct print nothing at all."""
    version, offer = Version(*release), parse_helpformat(HELP[release])
    sacct = choose_sacct(offer, version)
    asked = command_for("sacct", {"sacct": sacct}, version, start=START)[-1].split(",")
    assert set(asked) <= set(offer)
    assert ({"AllocGRES", "ReqGRES"} <= set(asked)) == (version < Version(20, 11))
    assert ("Reserved" in asked, "Planned" in asked) == (version < Version(23, 2), version >= Version(23, 2))
    assert ("SLUID" in asked) == ("SLUID" in offer)


def test_B31_what_a_command_refuses_is_left_out_and_said() -> None:
    assert Chosen(("JobID", "SLUID")).without(("SLUID",)) == Chosen(("JobID",), ("SLUID",))
