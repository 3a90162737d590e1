"""Job states, node states and exit codes."""

from __future__ import annotations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext.states import (
    ENDED_STATES,
    FAILED_STATES,
    INFRASTRUCTURE_STATES,
    MEMORY_STATES,
    PENDING_STATES,
    RUNNING_STATES,
    UNUSABLE_FLAGS,
    JobState,
    NodeState,
    parse_exit,
    parse_node_state,
    parse_node_states,
    parse_state,
    parse_states,
)


def shown(flag: str) -> JobState:
    return JobState(flag, flags=frozenset({flag}))


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("CANCELLED by 1000", JobState("CANCELLED", 1000), id="D01-by-user"),
    pytest.param("CANCELLED by 0", JobState("CANCELLED", 0), id="D01-by-root"),
    pytest.param("CANCELLED", JobState("CANCELLED"), id="D01-not-told"),
    pytest.param("CANCELLED+", JobState("CANCELLED", truncated=True), id="D01-cut"),
    pytest.param("OUT_OF_ME+", JobState("OUT_OF_MEMORY", truncated=True), id="D04-cut"),
    pytest.param("OUT_OF_MEMORY", JobState("OUT_OF_MEMORY"), id="D04"),
    pytest.param("CONFIGURI+", JobState("CONFIGURING", flags=frozenset({"CONFIGURING"}), truncated=True), id="G08-cut"),
    pytest.param("NODE_FAIL", JobState("NODE_FAIL"), id="D20"),
    pytest.param("DEADLINE", JobState("DEADLINE"), id="D22-deadline"),
    pytest.param("BOOT_FAIL", JobState("BOOT_FAIL"), id="D22-boot-fail"),
    pytest.param("REVOKED", shown("REVOKED"), id="D22-H02-revoked"),
    pytest.param("EXPEDITING", shown("EXPEDITING"), id="25.11-expediting"),
    pytest.param("COMPLETING", shown("COMPLETING"), id="D07-flag-in-place-of-the-base"),
    pytest.param("SPECIAL_EXIT", shown("SPECIAL_EXIT"), id="special-exit"),
    pytest.param("STAGE_OUT", shown("STAGE_OUT"), id="stage-out"),
    pytest.param("REQUEUED", shown("REQUEUED"), id="C10-requeued"),
    pytest.param("running", JobState("RUNNING"), id="squeue-helpstate-case"),
    pytest.param(" PENDING ", JobState("PENDING"), id="padded"),
    pytest.param("CANCELLED by alice", JobState("CANCELLED"), id="by-name"),
])
def test_state(text: str, expected: JobState) -> None:
    assert parse_state(text) == expected


@pytest.mark.parametrize(("code", "state"), [
    ("PD", "PENDING"), ("R", "RUNNING"), ("S", "SUSPENDED"), ("CD", "COMPLETED"), ("CA", "CANCELLED"), ("F", "FAILED"),
    ("TO", "TIMEOUT"), ("NF", "NODE_FAIL"), ("PR", "PREEMPTED"), ("BF", "BOOT_FAIL"), ("DL", "DEADLINE"),
    ("OOM", "OUT_OF_MEMORY"),
    ("CG", "COMPLETING"), ("CF", "CONFIGURING"), ("RS", "RESIZING"), ("RQ", "REQUEUED"), ("RF", "REQUEUE_FED"),
    ("RH", "REQUEUE_HOLD"), ("RD", "RESV_DEL_HOLD"), ("RV", "REVOKED"), ("SI", "SIGNALING"), ("SE", "SPECIAL_EXIT"),
    ("SO", "STAGE_OUT"), ("ST", "STOPPED"),
])
def test_short_codes(code: str, state: str) -> None:
    assert parse_state(code) == parse_state(state)
    assert parse_state(code).base == state


@pytest.mark.parametrize("text", ["", "8000M", "RE+", "R+", "+", "XX", "(Priority)", "CANCELLED by", "0:0", "Unknown"])
def test_state_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_state(text)


@pytest.mark.parametrize(("names", "expected"), [
    pytest.param(["RUNNING"], JobState("RUNNING"), id="D07-one"),
    pytest.param(["RUNNING", "COMPLETING"], JobState("RUNNING", flags=frozenset({"COMPLETING"})), id="D07-with-flag"),
    pytest.param(["COMPLETING", "FAILED"], JobState("FAILED", flags=frozenset({"COMPLETING"})), id="D07-flag-first"),
    pytest.param(["PENDING", "BRAND_NEW"], JobState("PENDING", flags=frozenset({"BRAND_NEW"})), id="later-version"),
    pytest.param(["REQUEUED", "SPECIAL_EXIT"], JobState("REQUEUED", flags=frozenset({"REQUEUED", "SPECIAL_EXIT"})),
                 id="flags-only"),
])
def test_state_lists(names: list[str], expected: JobState) -> None:
    assert parse_states(names) == expected


@pytest.mark.parametrize("names", [[], ["BRAND_NEW"], ["", "NEW"]])
def test_state_lists_reject(names: list[str]) -> None:
    with pytest.raises(ParseError):
        parse_states(names)


def test_sets_do_not_overlap_and_cover_every_state() -> None:
    assert not PENDING_STATES & RUNNING_STATES
    assert not PENDING_STATES & ENDED_STATES
    assert not RUNNING_STATES & ENDED_STATES
    assert FAILED_STATES < ENDED_STATES
    assert INFRASTRUCTURE_STATES < FAILED_STATES
    assert MEMORY_STATES <= FAILED_STATES
    for code in ("PD", "R", "S", "CD", "CA", "F", "TO", "NF", "PR", "BF", "DL", "OOM", "CG", "CF", "RS", "RQ", "RF", "RH", "RD",
                 "RV", "SI", "SE", "SO", "ST", "EXPEDITING"):
        base = parse_state(code).base
        assert base in PENDING_STATES | RUNNING_STATES | ENDED_STATES


def test_d22_deadline_and_preemption_are_not_failures_of_the_job() -> None:
    assert not {"DEADLINE", "CANCELLED", "PREEMPTED", "REVOKED"} & FAILED_STATES
    assert "BOOT_FAIL" in INFRASTRUCTURE_STATES


@pytest.mark.parametrize(("text", "expected"), [
    pytest.param("0:9", (0, 9), id="D20-signal"), pytest.param("1:0", (1, 0), id="D20-status"),
    pytest.param("0:125", (0, 125), id="D04-D20-out-of-memory"), pytest.param("143:0", (143, 0), id="D20-25.11"),
    pytest.param("0:15", (0, 15), id="D20-older"), pytest.param("-2", (None, None), id="D20-sentinel"),
    pytest.param("", (None, None), id="D20-missing"), pytest.param("0:53", (0, 53), id="bad-output-path"),
    pytest.param("0:0", (0, 0), id="success"), pytest.param("7", (7, None), id="status-alone"),
])
def test_exit(text: str, expected: tuple[int | None, int | None]) -> None:
    assert parse_exit(text) == expected


@pytest.mark.parametrize("text", ["x", "1:2:3", "1:", ":9", "COMPLETED", "-5:0"])
def test_exit_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_exit(text)


def node(base: str, *flags: str) -> NodeState:
    return NodeState(base, frozenset(flags))


@pytest.mark.parametrize(("text", "expected"), [
    ("idle", node("IDLE")), ("mix", node("MIXED")), ("alloc", node("ALLOCATED")), ("allocated", node("ALLOCATED")),
    ("mixed$", node("MIXED", "MAINT")), ("mixed-", node("MIXED", "PLANNED")), ("idle*", node("IDLE", "NOT_RESPONDING")),
    ("down*", node("DOWN", "NOT_RESPONDING")), ("completing*", node("MIXED", "COMPLETING", "NOT_RESPONDING")),
    ("planned", node("IDLE", "PLANNED")), ("plnd", node("IDLE", "PLANNED")), ("maint", node("IDLE", "MAINT")),
    ("resv", node("IDLE", "RESERVED")), ("reserved", node("IDLE", "RESERVED")), ("fail", node("IDLE", "FAIL")),
    ("drained", node("IDLE", "DRAIN")), ("drain", node("IDLE", "DRAIN")), ("draining", node("MIXED", "DRAIN")),
    ("drng", node("MIXED", "DRAIN")), ("drng@", node("MIXED", "DRAIN", "REBOOT_REQUESTED")),
    ("idle~", node("IDLE", "POWERED_DOWN")), ("idle#", node("IDLE", "POWERING_UP")), ("idle!", node("IDLE", "POWER_DOWN")),
    ("idle%", node("IDLE", "POWERING_DOWN")), ("down^", node("DOWN", "REBOOT_ISSUED")),
    ("alloc+", node("ALLOCATED", "COMPLETING")),
    ("futr", node("FUTURE")), ("unk*", node("UNKNOWN", "NOT_RESPONDING")), ("inval", node("UNKNOWN", "INVALID_REG")),
    ("pow_dn", node("IDLE", "POWERED_DOWN")), ("blocked", node("IDLE", "BLOCKED")), ("boot", node("IDLE", "REBOOT_ISSUED")),
    pytest.param("IDLE+DRAIN", node("IDLE", "DRAIN"), id="D07-scontrol-drain"),
    pytest.param("MIXED+COMPLETING+MAINTENANCE+RESERVED", node("MIXED", "COMPLETING", "MAINT", "RESERVED"),
                 id="real-three-flags"),
    pytest.param("DOWN+NOT_RESPONDING", node("DOWN", "NOT_RESPONDING"), id="real-down"),
    pytest.param("IDLE+CLOUD+POWERED_DOWN", node("IDLE", "CLOUD", "POWERED_DOWN"), id="cloud"),
    pytest.param("DOWN*+DRAIN", node("DOWN", "NOT_RESPONDING", "DRAIN"), id="suffix-and-flag"),
    pytest.param("MIXED+SOME_LATER_FLAG", node("MIXED", "SOME_LATER_FLAG"), id="later-version"),
    pytest.param(" IDLE ", node("IDLE"), id="padded"),
])
def test_node_state(text: str, expected: NodeState) -> None:
    assert parse_node_state(text) == expected


def test_d07_node_lists() -> None:
    assert parse_node_states(["IDLE", "DRAIN"]) == node("IDLE", "DRAIN")
    assert parse_node_states(["DRAIN", "MIXED"]) == node("MIXED", "DRAIN")
    assert parse_node_states(["MIXED"]) == node("MIXED")
    assert node("IDLE", "DRAIN").flags & UNUSABLE_FLAGS


@pytest.mark.parametrize("text", ["", "*", "+", "busy", "IDLE+dr ain", "idle&", "0/64/0/64", "IDLE++DRAIN"])
def test_node_state_rejects(text: str) -> None:
    with pytest.raises(ParseError):
        parse_node_state(text)


_BASE = st.sampled_from(["IDLE", "MIXED", "ALLOCATED", "DOWN", "FUTURE"])
_FLAG = st.sampled_from(["DRAIN", "MAINT", "PLANNED", "RESERVED", "COMPLETING", "NOT_RESPONDING", "CLOUD", "POWERED_DOWN"])


@settings(deadline=None)
@given(_BASE, st.sets(_FLAG))
def test_node_round_trip(base: str, flags: set[str]) -> None:
    assert parse_node_state("+".join([base, *sorted(flags)])) == NodeState(base, frozenset(flags))


@settings(deadline=None)
@given(st.sampled_from(sorted(FAILED_STATES | {"COMPLETED", "DEADLINE", "PREEMPTED", "COMPLETING"})), st.integers(3, 12))
def test_a_cut_state_is_the_right_one_or_refused(name: str, width: int) -> None:
    if width >= len(name):
        return
    try:
        state = parse_state(name[:width] + "+")
    except ParseError:
        assert width < 8, "eight characters tell every state apart"
        return
    assert state.base == name
    assert state.truncated
