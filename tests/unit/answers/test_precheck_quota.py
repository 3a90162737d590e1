"""Quotas by quota, lfs quota and mmlsquota: read right, asked where the script's files lie, and never waited for."""

from __future__ import annotations

import os
import stat
import subprocess
import time
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.answers.prechecks import quota as precheck_quota
from queuecast.answers.prechecks.quota import Mount, Quota, mount_of, own_quotas, parse_lfs, parse_mmlsquota, parse_mounts

LFS = """\
Disk quotas for usr alice (uid 1000):
     Filesystem  kbytes   quota   limit   grace   files   quota   limit   grace
     /lustre/a  30100*  30000   40100   5d20h      14       0       0       -
     /lustre/a-very-long-name-of-a-file-system
                [512]     0       2048       -      90      80     100       -
"""
GPFS = """\
mmlsquota::HEADER:version:reserved:reserved:filesystemName:quotaType:id:name:blockUsage:blockQuota:blockLimit:blockInDoubt:\
blockGrace:filesUsage:filesQuota:filesLimit:filesInDoubt:filesGrace:remarks:quota:defQuota:fid:filesetname:
mmlsquota::0:1:::fs1:USR:1000:alice:1536:1024:2048:0:none:10:0:0:0:none:e:on:off::home%3A1:
mmlsquota::0:1:::fs1:GRP:1000:lab:9999:10000:10000:0:none:10:0:0:0:none:e:on:off::root:
"""
MOUNTS = """\
/dev/sda1 / ext4 rw 0 0
mds@tcp:/a /lustre/a lustre rw 0 0
fs1 /gpfs gpfs rw 0 0
nas:/w /lustre/a/inner nfs rw 0 0
x /with\\040blank ext4 rw 0 0
"""


def test_lfs_quota() -> None:
    assert parse_lfs(LFS) == (
        Quota("/lustre/a", "space", 30100, 30000),
        Quota("/lustre/a-very-long-name-of-a-file-system", "space", 512, 2048),
        Quota("/lustre/a-very-long-name-of-a-file-system", "files", 90, 80),
    )


def test_mmlsquota() -> None:
    assert parse_mmlsquota(GPFS) == (Quota("fs1/home:1", "space", 1536, 1024),)
    assert parse_mmlsquota("mmlsquota::0:1:no header") == ()


def test_mounts_and_what_holds_a_path() -> None:
    mounts = parse_mounts(MOUNTS)
    assert mounts[-1] == Mount("/with blank", "ext4")
    wanted = {"/lustre/a/x": "lustre", "/lustre/a": "lustre", "/lustre/ab": "ext4", "/lustre/a/inner/y": "nfs", "/gpfs/../home": "ext4"}
    assert {p: m.kind for p in wanted if (m := mount_of(Path(p), mounts)) is not None} == wanted
    assert mount_of(Path("/x"), ()) is None


def command(folder: Path, name: str, body: str) -> None:
    path = folder / name
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


@pytest.fixture
def tools(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty folder as the only place of commands, and a list of mounts beside it."""
    folder = tmp_path / "bin"
    folder.mkdir()
    (tmp_path / "mounts").write_text(MOUNTS)
    monkeypatch.setenv("PATH", f"{folder}:/usr/bin:/bin")
    monkeypatch.setattr(precheck_quota, "_GPFS", str(folder))
    (tmp_path / "lfs.txt").write_text(LFS)
    (tmp_path / "gpfs.txt").write_text(GPFS)
    return tmp_path


def test_the_commands_are_asked_where_the_files_lie(tools: Path) -> None:
    for name, text in (("lfs", "lfs.txt"), ("mmlsquota", "gpfs.txt")):
        command(tools / "bin", name, f'echo "{name} $*" >> {tools}/asked; cat {tools}/{text}')
    command(tools / "bin", "quota", f'echo "quota $*" >> {tools}/asked; exit 1')
    found = own_quotas((Path("/lustre/a/work"), Path("/lustre/a/logs"), Path("/home/x")), tools / "mounts")
    assert found == parse_lfs(LFS)
    user = os.geteuid()
    assert (tools / "asked").read_text().splitlines() == ["quota -w -p", f"lfs quota -q -u {user} /lustre/a"]
    both = own_quotas((Path("/lustre/a"), Path("/gpfs/w")), tools / "mounts")
    assert both == (*parse_lfs(LFS), *parse_mmlsquota(GPFS))
    assert (tools / "asked").read_text().splitlines()[-1] == f"mmlsquota -u {user} -Y"


def test_a_command_that_hangs_is_not_waited_for(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each gets the time that is left; after the whole of it nothing more is asked."""
    given_times: list[float] = []

    def run(words: list[str], *, timeout: float, **_more: object) -> object:
        given_times.append(timeout)
        clock[0] += timeout
        raise subprocess.TimeoutExpired(words, timeout)

    clock = [time.monotonic()]
    for name in ("quota", "lfs", "mmlsquota"):
        command(tools / "bin", name, "exit 0")
    monkeypatch.setattr("subprocess.run", run)
    monkeypatch.setattr("queuecast.answers.prechecks.quota.time.monotonic", lambda: clock[0])
    assert own_quotas((Path("/lustre/a"), Path("/gpfs/w")), tools / "mounts") == ()
    assert given_times == pytest.approx([5.0, 3.0])


def test_no_commands_no_mounts(tools: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tools / "bin"))
    assert own_quotas((Path("/lustre/a"),), tools / "nowhere") == ()
    assert own_quotas((Path("/lustre/a"),), tools / "mounts") == ()


@given(st.text(alphabet="/ 0123456789*[]-\nmlsquotaHEADER:%USR", max_size=300))
def test_any_text_is_read(text: str) -> None:
    for found in (parse_lfs(text), parse_mmlsquota(text), parse_mmlsquota(GPFS.splitlines()[0] + "\n" + text)):
        assert all(q.limit > 0 and q.used >= 0 for q in found)
    parse_mounts(text)
