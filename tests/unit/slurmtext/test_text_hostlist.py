"""Host lists."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.hostlist import MAX_HOSTS, count_hosts, expand_hostlist, fold_hosts


@pytest.mark.parametrize(("text", "hosts"), [
    pytest.param("d09n04s[01-02],d09n05s02", ("d09n04s01", "d09n04s02", "d09n05s02"), id="H14-list"),
    pytest.param("n[001-003,010]-ib", ("n001-ib", "n002-ib", "n003-ib", "n010-ib"), id="H14-padding-and-suffix"),
    pytest.param("r[1-2]n[1-2]", ("r1n1", "r1n2", "r2n1", "r2n2"), id="H14-product"),
    pytest.param("gpu[01-04]", ("gpu01", "gpu02", "gpu03", "gpu04"), id="F13-four-nodes"),
    pytest.param("gpu[01-03],cpu7", ("gpu01", "gpu02", "gpu03", "cpu7"), id="D10-list"),
    pytest.param("gpu[01-02]", ("gpu01", "gpu02"), id="D19-running"),
    pytest.param("n[8-11]", ("n8", "n9", "n10", "n11"), id="no-padding"),
    pytest.param("n[098-101]", ("n098", "n099", "n100", "n101"), id="padding-runs-out"),
    pytest.param("a100-01", ("a100-01",), id="one"),
    pytest.param("a100-[01-02,04]", ("a100-01", "a100-02", "a100-04"), id="real-dash-before-bracket"),
    pytest.param("node.example.org", ("node.example.org",), id="full-name"),
])
def test_expand(text: str, hosts: tuple[str, ...]) -> None:
    assert expand_hostlist(text) == hosts
    assert count_hosts(text) == len(hosts)


@pytest.mark.parametrize("text", [
    pytest.param("None assigned", id="H14-D02-none-assigned"), pytest.param("(null)", id="H14-F13-null"),
    pytest.param("", id="H14-blank"), pytest.param("N/A", id="not-available"), pytest.param(" ", id="blanks"),
])
def test_no_nodes(text: str) -> None:
    assert expand_hostlist(text) is None
    assert count_hosts(text) is None


@pytest.mark.parametrize("text", [
    pytest.param("(Priority)", id="D19-reason"), "(ReqNodeNotAvail, UnavailableNodes:gpu[01-03])",
    "n[1-2", "n1-2]", "n[2-1]", "n[]", "n[1,,2]", "n[a-b]", "a,,b", ",", "n 1", "n[1-2],...", "[1-2]", "n[[1]]", "-n1",
])
def test_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        expand_hostlist(text)
    with pytest.raises(ParseError):
        count_hosts(text)


def test_a_list_too_long_is_counted_but_not_built() -> None:
    text = "r[1-100000]n[1-100000]"
    assert count_hosts(text) == 10**10
    with pytest.raises(ParseError) as caught:
        expand_hostlist(text)
    assert caught.value.cause == "host list too long"
    assert MAX_HOSTS < 10**10


def test_fold() -> None:
    assert fold_hosts(["gpu02", "gpu01", "gpu03", "cpu7", "login", "gpu10"]) == "login,cpu7,gpu[01-03,10]"
    assert fold_hosts([]) == ""


_NAMES = st.from_regex(r"[a-z][a-z0-9]{0,4}(-[a-z]{0,2})?[0-9]{0,4}", fullmatch=True)


@settings(deadline=None, max_examples=200)
@given(st.sets(_NAMES, min_size=1, max_size=30))
def test_round_trip(hosts: set[str]) -> None:
    expanded = expand_hostlist(fold_hosts(hosts))
    assert expanded is not None
    assert len(expanded) == len(hosts)
    assert set(expanded) == hosts


@settings(deadline=None)
@given(st.integers(0, 500), st.integers(0, 300), st.integers(1, 5))
def test_range_of_any_width(first: int, length: int, width: int) -> None:
    low = f"{first:0{width}d}"
    hosts = expand_hostlist(f"n[{low}-{first + length}]")
    assert hosts is not None
    assert len(hosts) == length + 1
    assert hosts[0] == f"n{low}"
    assert [int(h[1:]) for h in hosts] == list(range(first, first + length + 1))
