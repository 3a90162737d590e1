"""Every parser either understands a text or raises ParseError: nothing else ever comes out of it."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from queuecast.errors import ParseError
from queuecast.slurmtext import durations, estimates, gres, hostlist, jobids, names, nulls, sizes, states, times, tres

PARSERS: dict[str, Callable[[str], object]] = {
    "elapsed": durations.parse_elapsed, "limit": durations.parse_limit, "limit_minutes": durations.parse_limit_minutes,
    "typed_limit": durations.parse_typed_limit, "time": times.parse_time,
    "local_time": lambda text: times.parse_time(text, "America/New_York"), "test_only": estimates.parse_test_only,
    "size": sizes.parse_size, "size_M": lambda text: sizes.parse_size(text, "M"), "req_mem": sizes.parse_req_mem,
    "tres": tres.parse_tres, "tres_usage": tres.parse_tres_usage, "tres_limits": tres.parse_tres_limits,
    "gpus_of_tres": tres.gpus_of_tres, "gres": gres.parse_gres, "gpus_of_gres": gres.gpus_of_gres, "mig": gres.mig_of_type,
    "job_id": jobids.parse_job_id, "indices": jobids.array_indices, "count_array": jobids.count_array,
    "state": states.parse_state, "states": lambda text: states.parse_states(text.split(",")), "exit": states.parse_exit,
    "node_state": states.parse_node_state, "node_states": lambda text: states.parse_node_states(text.split(",")),
    "count_hosts": hostlist.count_hosts, "expand_hostlist": hostlist.expand_hostlist,
    "clean": nulls.clean, "count": nulls.parse_count, "partition": names.parse_sinfo_partition,
    "split": names.split_outside_parentheses,
}

# text near the grammars, which random text hardly ever is
_PIECES = st.sampled_from([
    "0", "1", "12", "007", "4294967294", "18446744073709551614", "9" * 30, "²", "٣", ":", "-", "_", "[", "]", "%", "+",
    ".", ",", "=", "(", ")", "/", "...", " ", "*", "?", "K", "M", "G", "E", "n", "c", "T", "gres/gpu", "gpu",
    "a100", "IDX:", "CNT:", "S:", "mem", "cpu", "N(", "None", "(null)", "UNLIMITED", "2025-11-02T01:30:00", "CANCELLED by ",
    "PENDING", "IDLE", "DRAIN", "node", "to start at ",
    "\n", "\x00", "\ud800",
])
_NEAR = st.lists(_PIECES, max_size=9).map("".join)


@pytest.mark.parametrize("name", sorted(PARSERS))
@settings(deadline=None, max_examples=150)
@given(text=st.one_of(st.text(max_size=40), _NEAR))
@example(text="")
@example(text="9999-12-31T23:59:59")
@example(text="0001-01-01T00:00:00")
@example(text="9" * 5000)
@example(text="1-" + "9" * 400)
@example(text="n[1-999999999][1-999999999]")
@example(text="[" * 1000)
def test_parses_or_raises_parse_error(name: str, text: str) -> None:
    cause = "none"
    try:
        PARSERS[name](text)
    except ParseError as error:
        cause = error.cause
    assert 0 < len(cause) < 60
    assert not any(char.isdigit() for char in cause)  # constant, so that rejects can be counted by it
