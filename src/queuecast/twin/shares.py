"""The tree of associations with shares, usage and fair share, as sshare printed it last."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any

import numpy as np

from queuecast.policy.recent import last_snapshot
from queuecast.policy.tables import Policy
from queuecast.twin.arrays import Flags, Floats, Ints

if TYPE_CHECKING:
    from queuecast.store.lake import Lake

COLUMNS = ("account", "user", "partition", "depth", "raw_shares", "norm_shares", "raw_usage", "effective_usage", "fairshare")


@dataclass(frozen=True)
class Tree:
    """Associations, parents before children. ``shares`` nan: the parent's. ``known``: it was read and hangs together."""

    names: dict[tuple[str, str], int]
    parent: Ints
    shares: Floats
    is_user: Flags
    usage: Floats
    fair: Floats
    known: bool

    def row(self, user: str | None, account: str | None) -> int:
        """The user's association in the account, -1 if there is none."""
        return self.names.get(((account or "").casefold(), (user or "").casefold()), -1)


EMPTY = Tree({}, np.zeros(0, np.int64), np.zeros(0), np.zeros(0, bool), np.zeros(0), np.zeros(0), False)


def tree_at(lake: Lake, cluster: str, at: datetime, policy: Policy) -> tuple[Tree, datetime | None]:
    """The tree of the last reading at ``at`` and its moment."""
    rows, moment = last_snapshot(lake, "shares", cluster, at, COLUMNS)
    table: list[dict[str, Any]] = [r for r in rows.to_pylist() if not r["partition"]]
    return (make_tree(table, policy) if table else EMPTY), moment


def make_tree(rows: list[dict[str, Any]], policy: Policy | None = None) -> Tree:
    """A tree from rows of the table ``shares``. Parents by the associations where they tell, else by usage and shares."""
    accounts = {r["account"].casefold(): r for r in rows if not r["user"]}
    told = {a.account.casefold(): a.parent.casefold() for a in policy.associations if a.user is None and a.parent} if policy else {}
    above = {name: told.get(name) for name in accounts}
    missing = [n for n in accounts if n != "root" and above[n] not in accounts]
    if missing:
        above |= _guess(accounts, missing)
    known = all(above[n] in accounts for n in accounts if n != "root") and "root" in accounts
    order = sorted(accounts, key=lambda n: (accounts[n]["depth"] or 0, n))
    names: dict[tuple[str, str], int] = {(n, ""): i for i, n in enumerate(order)}
    users = [r for r in rows if r["user"]]
    for r in users:
        names[(r["account"].casefold(), r["user"].casefold())] = len(names)
    all_rows = [accounts[n] for n in order] + users
    parent = [-1 if n == "root" else names.get((above[n] or "root", ""), -1) for n in order]
    parent += [names.get((r["account"].casefold(), ""), -1) for r in users]
    return Tree(
        names,
        np.array(parent, np.int64),
        np.array([np.nan if r["raw_shares"] is None else float(r["raw_shares"]) for r in all_rows]),
        np.array([bool(r["user"]) for r in all_rows]),
        np.array([float(r["raw_usage"] or 0) for r in all_rows]),
        np.array([float(r["fairshare"] or 0) for r in all_rows]),
        known,
    )


def _guess(accounts: dict[str, dict[str, Any]], missing: list[str]) -> dict[str, str | None]:
    """Parents from numbers: usage / EffectvUsage is the parent's usage, and siblings share raw / norm shares."""
    out: dict[str, str | None] = {}
    family: dict[tuple[int, int], str] = {}
    later = []
    for name in missing:
        row = accounts[name]
        over = [n for n, r in accounts.items() if (r["depth"] or 0) == (row["depth"] or 0) - 1]
        if len(over) == 1:
            out[name] = over[0]
            continue
        usage, part = row["raw_usage"] or 0, row["effective_usage"] or 0.0
        if usage > 0 and part > 0:
            best = min(over, key=lambda n: abs((accounts[n]["raw_usage"] or 0) - usage / part), default=None)
            if best is not None and abs((accounts[best]["raw_usage"] or 0) - usage / part) <= 0.01 * usage / part + 10:
                out[name] = best
                if row["norm_shares"]:
                    family[(row["depth"], round((row["raw_shares"] or 0) / row["norm_shares"]))] = best
                continue
        later.append(name)
    for name in later:
        row = accounts[name]
        key = (row["depth"], round((row["raw_shares"] or 0) / row["norm_shares"])) if row["norm_shares"] else None
        out[name] = family.get(key) if key else None
    return out
