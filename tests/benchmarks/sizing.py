"""How much of what is asked for and not used sizing removes on public traces, and how many jobs it would have killed.

    python -m tests.benchmarks.sizing FILE... [--json] [--risk 0.01] [--refits N] [--no-sizey]

One table per trace (Standard Workload Format) and resource that the trace tells. In order of submission: each job is sized from
jobs that had ended before it was submitted. The last 30 % are reported; margins are set on the 30 % before. Measures:
"killed", share of jobs that would have been killed though their request was enough; "removed", share of the waste as asked that
is gone, a killed job saving nothing; "after retries", the same with the killed attempt charged too (the job then runs as asked).
Waste of memory is (asked - used) x CPUs x run time, of time (asked - used), or that x CPUs. Low and high end a 95 % interval from
a bootstrap over days of submission.
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from queuecast.collect.swf import read_swf
from queuecast.features.history import Flags, Floats, Ints
from queuecast.models.bootstrap import days_of, drawn_days
from queuecast.models.sizing_kinds import Codes
from queuecast.models.sizing_past import Jobs, Past
from queuecast.models.sizing_price import AIM, NEVER, WINDOWS, price_now
from queuecast.models.sizing_replay import TICK, chances, floors, replay
from queuecast.store.files import floats
from tests.benchmarks.sizing_methods import Method, family, methods

REPORTED, MIDDLE, FROM = 0.3, 0.3, 0.2
FEWEST_WASTE = 1e-3
"""Where less than that share of what is asked is wasted there is nothing to compare."""

MARGIN = {"time": 1.25, "memory": 1.3}
"""On the largest use ever, as a known script for Slurm takes them."""


@dataclass(frozen=True)
class Case:
    """One resource of one trace; ``cost`` by name: what a unit of over-ask of each job costs."""

    name: str
    jobs: Jobs
    size: Floats
    cost: dict[str, Floats]

    @property
    def middle(self) -> Ints:
        n = len(self.jobs)
        return np.arange(int(n * (1 - REPORTED - MIDDLE)), int(n * (1 - REPORTED)))

    @property
    def end(self) -> Ints:
        return np.arange(int(len(self.jobs) * (1 - REPORTED)), len(self.jobs))


def cases(path: Path) -> Iterator[Case]:
    """Time, and memory where the trace tells it. Jobs without run time, request or use are left out."""
    rows = read_swf(path).rows
    col = {c: floats(rows[c]) for c in ("submit", "wait", "run", "cpus_used", "cpus_asked", "time_asked", "mem_used_kb", "mem_asked_kb")}
    text = {c: [str(v) for v in rows[c].to_pylist()] for c in ("user", "executable", "group", "partition")}
    cpus = np.where(col["cpus_asked"] > 0, col["cpus_asked"], col["cpus_used"])
    cpus = np.where(cpus > 0, cpus, 1.0)
    end = col["submit"] + np.nan_to_num(col["wait"]) + col["run"]
    short = path.name.split("-2.1")[0]

    def case(name: str, use: Floats, asked: Floats, weight: Floats, cost: dict[str, Floats]) -> Case:
        keep = np.flatnonzero(np.isfinite(end) & np.isfinite(use) & (asked > 0) & (asked < 1e9 * 3600))
        keep = keep[np.argsort(col["submit"][keep], kind="stable")]
        columns = {k: [text[t][i] for i in keep] for k, t in zip(("user", "name", "account", "partition"), text, strict=True)}
        codes = Codes(columns, asked[keep]).codes
        killed = use[keep] >= asked[keep] if name.endswith("time") else np.zeros(len(keep), np.bool_)
        jobs = Jobs(col["submit"][keep], end[keep], use[keep], asked[keep], killed, weight[keep], codes)
        return Case(name, jobs, cpus[keep], {k: v[keep] for k, v in cost.items()})

    limit = np.where(col["time_asked"] > 0, col["time_asked"], np.nan)
    limit = np.where(limit < 4e6, limit, np.nan)  # beyond 46 days: unlimited
    yield case(f"{short} time", col["run"], limit, np.ones(len(end)), {"hours": np.ones(len(end)), "core-hours": cpus})
    used, asked = col["mem_used_kb"] * cpus, col["mem_asked_kb"] * cpus
    if np.isfinite(used).mean() > 0.1:
        yield case(f"{short} memory", used, asked, np.nan_to_num(limit, nan=3600.0), {"GB-hours": np.nan_to_num(col["run"])})


@dataclass(frozen=True)
class Figures:
    """Measures of one method on the reported jobs, each (value, low, high)."""

    killed: tuple[float, float, float]
    removed: dict[str, tuple[float, float, float]]
    retried: dict[str, tuple[float, float, float]]


def killed_of(case: Case, share: Floats) -> Flags:
    """Jobs whose request was enough and the proposal is not."""
    return case.jobs.sufficed & (case.jobs.use > share * case.jobs.asked * (1 + 1e-9))


def figures(case: Case, share: Floats, rows: Ints, draws: int = 200) -> Figures:
    """Measures with intervals."""
    jobs = case.jobs.take(rows)
    killed = killed_of(case, share)[rows]
    codes, counts = drawn_days(days_of(jobs.submit), draws)
    over = np.maximum(jobs.asked - jobs.use, 0.0)
    left = np.where(killed, over, np.maximum(share[rows] * jobs.asked - jobs.use, 0.0))
    again = left + np.where(killed, share[rows] * jobs.asked, 0.0)

    def ratio(part: Floats, whole: Floats) -> tuple[float, float, float]:
        days = len(counts[0]) if len(counts) else 0
        p, w = (np.bincount(codes, weights=v, minlength=days) for v in (part, whole))
        drawn = (counts @ p) / np.maximum(counts @ w, 1e-30) if len(counts) else np.array([np.nan])
        low, high = np.percentile(drawn, [2.5, 97.5])
        return float(part.sum() / max(float(whole.sum()), 1e-30)), float(low), float(high)

    def gone(part: Floats, cost: Floats) -> tuple[float, float, float]:
        value, low, high = ratio(part * cost, over * cost)
        return 1 - value, 1 - high, 1 - low

    cost = {k: v[rows] for k, v in case.cost.items()}
    return Figures(
        ratio(killed.astype(np.float64), np.ones(len(rows))),
        {k: gone(left, v) for k, v in cost.items()},
        {k: gone(again, v) for k, v in cost.items()},
    )


def capped(case: Case, amount: Floats, margin: Floats | float) -> Floats:
    """Shares of what is asked: the amount with its margin, as asked where nothing is told or it is more."""
    with np.errstate(over="ignore", invalid="ignore"):
        share = amount * margin / case.jobs.asked
    return np.where(np.isfinite(amount) & (share < 1), share, 1.0)


def margin_at(case: Case, amount: Floats, risk: float) -> float:
    """The least margin with which at most ``risk`` of the middle part would have been killed."""
    low, high = np.log(0.05), np.log(1e4)
    for _ in range(40):
        middle = (low + high) / 2
        if killed_of(case, capped(case, amount, float(np.exp(middle))))[case.middle].mean() <= risk:
            high = middle
        else:
            low = middle
    return float(np.exp(high))


def margins_online(case: Case, amount: Floats, risk: float) -> Floats:
    """A margin per job, held as our price is: the largest conformal quantile of use by amount."""
    jobs, n = case.jobs, len(case.jobs)
    with np.errstate(divide="ignore", invalid="ignore"):
        score = np.where(jobs.sufficed & np.isfinite(amount), np.log(np.maximum(jobs.use, 1e-9) / np.maximum(amount, 1e-9)), -40.0)
    order = np.argsort(jobs.end, kind="stable")
    first = int(n * FROM)
    order = order[order >= first]
    ends = jobs.end[order]
    margin = np.full(n, np.inf)
    for low in range(first, n, TICK):
        ended = int(np.searchsorted(ends, jobs.submit[low]))
        price = price_now(score[order[max(0, ended - WINDOWS[-1]) : ended]], risk * AIM)
        margin[low : low + TICK] = np.exp(price) if price < NEVER else np.inf
    return margin


def baselines(case: Case, past: Past, risk: float, *, with_sizey: bool) -> Iterator[tuple[str, str, Floats]]:
    """(name, setting, shares): each family as published, and its best member on the middle part at the risk, fixed and online."""
    rungs = {"same request": 0, "user": 3}
    first = next(iter(case.cost.values()))
    best: dict[str, tuple[float, Method, Floats, float]] = {}
    for method in methods(past, case.jobs, case.size, rungs, MARGIN[case.name.rsplit(" ", 1)[-1]]):
        if not with_sizey and method.name.startswith("Sizey"):
            continue
        amount = method.amount()
        margin = margin_at(case, amount, risk)
        share, rows = capped(case, amount, margin), case.middle
        over = np.maximum(case.jobs.asked - case.jobs.use, 0.0)
        left = np.where(killed_of(case, share), over, np.maximum(share * case.jobs.asked - case.jobs.use, 0.0))
        gone = 1 - float((left * first)[rows].sum() / max((over * first)[rows].sum(), 1e-30))
        name = family(method.name)
        if name not in best or gone > best[name][0]:
            best[name] = (gone, method, amount, margin)
    for _gone, method, amount, margin in best.values():
        yield method.name, f"as published (x {method.margin:g})", capped(case, amount, method.margin)
        yield method.name, f"margin set on the middle (x {margin:.3g})", capped(case, amount, margin)
        yield method.name, "margin held online", capped(case, amount, margins_online(case, amount, risk))


def ours(case: Case, past: Past, risk: float, refits: int) -> Iterator[tuple[str, str, Floats]]:
    """By counts and by trees, spending the risk where hours, or core-hours, are saved."""
    seen = past.look(case.jobs.codes, case.jobs.submit, case.jobs.asked)
    first = int(len(case.jobs) * FROM)
    floor = floors(seen)
    for label, trees in (("counts", False), ("counts and trees", True)):
        told = chances(case.jobs, seen, first, refits=refits, trees=trees)
        for cost, weight in list(case.cost.items())[: 2 if trees else 1]:
            if cost == "GB-hours":
                weight = case.jobs.weight
            for setting, least in ((f"for {cost}", np.zeros(len(floor))), (f"for {cost}, not below the kind's latest uses", floor)):
                yield f"ours, {label}", setting, replay(replace(case.jobs, weight=weight), told, least, first, risk * AIM).share


def measure(case: Case, args: argparse.Namespace, say: Callable[[str, str, Figures], None]) -> None:
    """All methods on one case."""
    past = Past(case.jobs)
    say("as asked", "", figures(case, np.ones(len(case.jobs)), case.end))
    for name, setting, share in ours(case, past, args.risk, args.refits):
        say(name, setting, figures(case, share, case.end))
    for name, setting, share in baselines(case, past, args.risk, with_sizey=not args.no_sizey):
        say(name, setting, figures(case, share, case.end))
    oracle = np.minimum(1.0, case.jobs.use / case.jobs.asked)
    say("what was used (cannot be known)", "", figures(case, np.maximum(oracle, 1e-9), case.end))


def main() -> None:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", nargs="+", type=Path)
    parser.add_argument("--json", action="store_true", help="one JSON line per figure")
    parser.add_argument("--risk", type=float, default=0.01)
    parser.add_argument("--refits", type=int, default=6, help="how often the trees are learned anew")
    parser.add_argument("--no-sizey", action="store_true", help="leave out the slowest comparison")
    args = parser.parse_args()
    for path in args.files:
        for case in cases(path):
            began = time.process_time()
            jobs = case.jobs
            over = np.maximum(jobs.asked - jobs.use, 0.0)
            wasted = float(over.sum() / jobs.asked.sum())
            facts = {"jobs": len(jobs), "wasted_share": wasted, "equal_share": float((jobs.use == jobs.asked).mean()),
                     "less_jobs": int((jobs.use < jobs.asked).sum())}  # fmt: skip
            if args.json:
                print(json.dumps({"trace": case.name, **facts}), flush=True)
            else:
                print(f"\n{case.name}: {len(jobs):,} jobs; of what is asked {wasted:.2%} is not used; "
                      f"{facts['less_jobs']:,} jobs used less, "
                      f"{facts['equal_share']:.1%} exactly as much", flush=True)  # fmt: skip
            if wasted < FEWEST_WASTE:
                if not args.json:
                    print("nothing to remove, so nothing to compare", flush=True)
                continue

            def say(name: str, setting: str, found: Figures, case: Case = case) -> None:
                if args.json:
                    for measure_, values in (("killed", {"": found.killed}), ("removed", found.removed), ("after_retries", found.retried)):
                        for cost, (value, low, high) in values.items():
                            print(json.dumps({"trace": case.name, "method": name, "setting": setting, "measure": measure_, "of": cost,
                                              "value": value, "low": low, "high": high}), flush=True)  # fmt: skip
                    return
                parts = [f"killed {found.killed[0]:.2%} ({found.killed[1]:.2%} to {found.killed[2]:.2%})"]
                for cost, (value, low, high) in found.removed.items():
                    parts.append(f"{cost} removed {value:.1%} ({low:.1%} to {high:.1%}), after retries {found.retried[cost][0]:.1%}")
                print(f"{name} | {setting} | " + " | ".join(parts), flush=True)

            measure(case, args, say)
            print(f"{case.name}: {time.process_time() - began:.0f} s of CPU time", file=sys.stderr)


if __name__ == "__main__":
    main()
