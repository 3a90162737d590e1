"""The archive: bytes come back as they went in, whole or not at all."""

from __future__ import annotations

import io
from dataclasses import replace
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from queuecast.collect.archive import (
    ArchiveSource,
    archived,
    as_archived,
    cluster_of,
    open_raw,
    read_capture,
    read_header,
    write_capture,
)
from queuecast.collect.source import KINDS, Capture
from queuecast.errors import LakeDamaged, LakeTooNew

AT = datetime(2026, 6, 1, 12, 0, 0, 250_000, tzinfo=UTC)


def capture(data: bytes = b"JobID\n1\n", kind: str = "sacct", at: datetime = AT, cluster: str | None = "campus") -> Capture:
    return Capture(kind, at, cluster, "UTC", ("sacct", "--delimiter=\x1f"), "22.05.8", lambda: io.BytesIO(data), "said \\xff", 0)


def content(path: Path) -> bytes:
    with open_raw(path) as stream:
        return stream.read()


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)
@given(
    st.binary(max_size=300),
    st.sampled_from(KINDS),
    st.text(min_size=1, max_size=20) | st.none(),
    st.lists(st.text(max_size=8), max_size=4),
    st.text(max_size=20),
    st.datetimes(datetime(2000, 1, 1), datetime(2090, 1, 1)),
)
def test_round_trip(
    tmp_path: Path, data: bytes, kind: str, cluster: str | None, command: list[str], stderr: str, at: datetime
) -> None:
    one = Capture(
        kind,
        at.replace(tzinfo=timezone(timedelta(hours=-5))),
        cluster,
        "America/New_York",
        tuple(command),
        None,
        lambda: io.BytesIO(data),
        stderr,
        3,
        True,
        ("A", "B"),
    )
    path = write_capture(tmp_path, one)
    again = read_capture(path, tmp_path)
    assert content(path) == data
    with again.raw() as stream:
        assert stream.read() == data
    assert replace(again, raw=one.raw, source_file="") == one
    assert path.resolve().is_relative_to(tmp_path.resolve())
    assert len(path.relative_to(tmp_path).parts) == 3
    assert cluster_of(path) == cluster


def test_place_and_name(tmp_path: Path) -> None:
    path = write_capture(tmp_path, capture())
    assert str(path.relative_to(tmp_path)) == "campus/2026-06/20260601T120000Z-sacct.zst"
    assert read_capture(path, tmp_path).source_file == "campus/2026-06/20260601T120000Z-sacct.zst"


@pytest.mark.parametrize("cluster", ["..", "../../etc", "/etc", ".", "a/b", "%unknown"])
def test_a_cluster_cannot_name_another_folder(tmp_path: Path, cluster: str) -> None:
    path = write_capture(tmp_path / "archive", capture(cluster=cluster))
    assert path.relative_to(tmp_path / "archive").parts[0] not in (".", "..", "%unknown")
    assert cluster_of(path) == cluster


def test_same_capture_twice_is_one_file(tmp_path: Path) -> None:
    assert write_capture(tmp_path, capture()) == write_capture(tmp_path, capture())
    other = write_capture(tmp_path, capture(b"JobID\n2\n"))
    assert other.name == "20260601T120000Z-sacct-2.zst"
    assert content(other) == b"JobID\n2\n"
    assert len(list(tmp_path.rglob("*.zst"))) == 2


def test_order_of_time(tmp_path: Path) -> None:
    made = [
        write_capture(tmp_path, capture(kind=kind, at=AT + timedelta(minutes=m), cluster=c, data=f"{m}{kind}{c}".encode()))
        for m, kind, c in ((60 * 24 * 40, "sacct", "a"), (0, "squeue", "b"), (0, "nodes", "a"), (5, "sacct", None))
    ]
    assert list(archived(tmp_path)) == [made[2], made[1], made[3], made[0]]
    assert list(archived(tmp_path, since=AT + timedelta(minutes=5), kinds=("sacct",))) == [made[3], made[0]]
    assert list(archived(tmp_path, cluster="a")) == [made[2], made[0]]
    assert [c.kind for c in ArchiveSource(tmp_path).captures() if isinstance(c, Capture)] == ["nodes", "squeue", "sacct", "sacct"]


def test_tenth_file_of_a_second_comes_after_the_second(tmp_path: Path) -> None:
    paths = [write_capture(tmp_path, capture(data=str(n).encode())) for n in range(11)]
    assert list(archived(tmp_path)) == paths


class Breaks(io.BytesIO):
    def read(self, size: int | None = -1, /) -> bytes:
        raise OSError("disk full")


def test_failed_write_leaves_nothing(tmp_path: Path) -> None:
    def broken() -> BinaryIO:
        return Breaks()

    with pytest.raises(OSError, match="disk full"):
        write_capture(tmp_path, replace(capture(), raw=broken))
    assert not [p for p in tmp_path.rglob("*") if p.is_file()]


def test_unfinished_files_are_not_listed(tmp_path: Path) -> None:
    path = write_capture(tmp_path, capture())
    path.with_name(f".{path.name}.1.tmp").write_bytes(b"x")
    (path.parent / "notes.txt").write_text("x")
    assert list(archived(tmp_path)) == [path]


@pytest.mark.parametrize("damage", ["cut", "empty", "noise", "other file", "header"])
def test_damage_is_told(tmp_path: Path, damage: str) -> None:
    path = write_capture(tmp_path, capture(bytes(range(256)) * 2000))
    whole = path.read_bytes()
    if damage == "other file" or damage == "header":
        with pa.CompressedOutputStream(str(path), "zstd") as out:
            out.write(b'{"queuecast_archive": 1, "kind": "nonsense"}\n' if damage == "header" else b"JobID\n1\n")
    else:
        path.write_bytes({"cut": whole[:-9], "empty": b"", "noise": b"x" * 50}[damage])
    with pytest.raises(LakeDamaged, match=r"20260601T120000Z-sacct\.zst"), read_capture(path).raw() as stream:
        stream.read()


def test_later_format_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x.zst"
    with pa.CompressedOutputStream(str(path), "zstd") as out:
        out.write(b'{"queuecast_archive": 99}\n')
    with pytest.raises(LakeTooNew, match="99"):
        read_header(path)


def test_live_capture_reads_from_the_archive_afterwards(tmp_path: Path) -> None:
    one = capture()
    path = write_capture(tmp_path, one)
    moved = as_archived(replace(one, raw=Breaks), path, tmp_path)
    with moved.raw() as stream:
        assert stream.read() == b"JobID\n1\n"
    assert moved.source_file.endswith("-sacct.zst")


def test_captures_need_aware_times_and_known_kinds() -> None:
    with pytest.raises(ValueError, match="aware"):
        capture(at=datetime(2026, 6, 1))
    with pytest.raises(ValueError, match="kind"):
        capture(kind="nosuch")
