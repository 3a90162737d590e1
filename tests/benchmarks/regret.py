"""Would the advised request truly have started sooner? ``python -m tests.benchmarks.regret LAKE [--cases N] [--json]``

Real submitted GPU jobs of a recording are asked about at the moment of their submission. Then what truly came is played: the state at
that moment, all submissions recorded later, true run times, once with the job as asked and once with each alternative. The promised gain is
held against that one. The same cases give the errors of the wait model and of the replay for the wait as asked (``--save`` keeps them as
the lake's record, by which both are blended from then on).
"""

from __future__ import annotations

import argparse
import json
import math
import sys
import time
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np

from queuecast.answers import alternatives_blend as blending
from queuecast.answers.alternatives import alternatives
from queuecast.answers.alternatives_answer import Alternatives, Option
from queuecast.answers.alternatives_offers import Offer
from queuecast.answers.alternatives_play import HORIZON_S, candidate_of
from queuecast.answers.forecast import Forecaster
from queuecast.answers.viewer import Viewer
from queuecast.config import Hardware
from queuecast.policy.request import Request
from queuecast.store.lake import Lake
from queuecast.twin.forward import forward
from queuecast.twin.past import Past
from queuecast.twin.replay import Recording, recording
from queuecast.twin.state import state_at
from queuecast.twin.work import Work

NOTHING = Hardware({}, {}, "")


class TrueFuture(Past):
    """What truly came: recorded submissions after the state's reading, and true run times."""

    def __init__(self, found: Recording, seen: float, at: float, without: int) -> None:
        later = tuple(w for w in found.works if w.submit > seen and w.id != without)
        super().__init__(later, {}, at, at)
        object.__setattr__(self, "true", {w.id: w.run for w in found.works})

    def draw_runs(self, works: Any, now: float, futures: int, rng: Any) -> Any:
        """The recorded run time of each, at least what has run."""
        out = np.empty((len(works), futures))
        for i, w in enumerate(works):
            run = self.true.get(w.id, w.limit)  # type: ignore[attr-defined]
            gone = max(0.0, now - w.began) if np.isfinite(w.began) else 0.0
            out[i] = max(run if np.isfinite(run) else w.limit, gone + 1.0)
        return out

    def draw_arrivals(self, begin: float, length: float, rng: Any) -> Any:
        """All recorded submissions; those between the reading and ``begin`` are there at once."""
        stamps = np.array([max(w.submit, begin + 1.0) for w in self.works])
        inside = np.flatnonzero(stamps <= begin + length)
        return inside, stamps[inside]


@dataclass(frozen=True)
class Case:
    """A job at its submission."""

    work: Work
    at: datetime
    waited: float


def cases(found: Recording, count: int, skip_days: float, seed: int) -> list[Case]:
    """Started GPU jobs after the first days whose recorded wait was over five minutes, spread over the recording, one per user and hour."""
    first = found.begin + skip_days * 86400
    rows, seen = [], set()
    for i, w in enumerate(found.works):
        waited = float(found.started[i] - w.submit)
        key = (w.user, int(w.submit // 3600))
        usable = w.gpus > 0 and w.submit > first and w.submit < found.end - 86400 and math.isfinite(waited) and waited > 300
        if usable and key not in seen and w.reservation is None and w.array is None:
            seen.add(key)
            rows.append(Case(w, datetime.fromtimestamp(w.submit, UTC) - timedelta(seconds=1), waited))
    rng = np.random.default_rng(seed)
    chosen = rng.choice(len(rows), min(count, len(rows)), replace=False)
    return [rows[int(i)] for i in chosen]


def request_of(work: Work) -> Request:
    """As ``sbatch`` was asked."""
    return Request(
        partitions=work.partitions,
        gpus=int(work.gpus),
        gpu_type=work.gpu_type,
        nodes=work.nodes,
        cpus=int(work.cpus),
        mem_bytes=int(work.mem_mib * 2**20) or None,
        limit_s=int(work.limit),
        account=work.account,
        qos=work.qos,
        user=work.user,
        tasks=work.nodes,
    )


def truth(lake: Lake, cluster: str, found: Recording, case: Case, answer: Alternatives) -> list[float]:
    """Starts (seconds from the moment) as asked and of each option, in what truly came."""
    state = state_at(lake, cluster, case.at)
    options = [answer.as_asked, *answer.options]
    tries = [candidate_of(Offer(o.label, o.kinds, o.request, delay_s=o.delay_s), 0.0) for o in options]
    scale = [o.run.median_s / max(1.0, answer.as_asked.run.median_s) if o.run and answer.as_asked.run else 1.0 for o in options]
    runs = [[min(case.work.run * s, t.limit_s)] for s, t in zip(scale, tries, strict=True)]
    came = TrueFuture(found, state.queue_at or state.at, state.at, case.work.id)
    played = forward(state, tries, np.array(runs), arrivals=came, futures=1, horizon_s=HORIZON_S)
    return [float(s) for s in played.starts[:, 0]]


def crps(sample: np.ndarray[Any, Any], outcome: float) -> float:
    """Of log(1 + seconds), from drawn values (Gneiting and Raftery 2007, equation 21)."""
    z, y = np.log1p(np.minimum(sample, HORIZON_S)), math.log1p(min(outcome, HORIZON_S))
    return float(np.abs(z - y).mean() - np.abs(z[:, None] - z[None, :]).mean() / 2)


def judge(lake: Lake, found: Recording, chosen: list[Case], futures: int, until: float) -> list[dict[str, Any]]:
    """One row per case; stops when the time is up."""
    forecaster = Forecaster(lake)
    rows = []
    levels = (np.arange(50) + 0.5) / 50
    for number, case in enumerate(chosen):
        if time.monotonic() > until:
            break
        request, viewer = request_of(case.work), Viewer(case.work.user)
        model = forecaster.when(request, case.at, viewer)
        answer = alternatives(forecaster, request, case.at, viewer, futures=futures, hardware=NOTHING)
        starts = truth(lake, forecaster.cluster, found, case, answer)
        quantiles = blending.model_quantiles(model, levels)
        twin = answer.agreement.twin
        row: dict[str, Any] = {"job": case.work.id, "waited": case.waited, "asked_true": starts[0], "options": []}
        if quantiles is not None and twin is not None:
            points = np.interp(levels, (0.1, 0.5, 0.9), [math.log1p(min(v, HORIZON_S)) for v in (twin.low_s, twin.median_s, twin.high_s)])
            row |= {"crps_model": crps(quantiles, case.waited), "crps_twin": crps(np.expm1(points), case.waited)}
        best = answer.recommended
        for option, start in zip(answer.options, starts[1:], strict=True):
            row["options"].append(_held(option, starts[0], start, option is best, case, answer))
        rows.append(row)
        print(f"{number + 1}/{len(chosen)}", file=sys.stderr, flush=True)
    return rows


def _held(option: Option, asked: float, start: float, best: bool, case: Case, answer: Alternatives) -> dict[str, Any]:
    gain = min(asked, HORIZON_S) - min(start, HORIZON_S)
    scale = option.run.median_s / max(1.0, answer.as_asked.run.median_s) if option.run and answer.as_asked.run else 1.0
    return {
        "label": option.label,
        "kinds": list(option.kinds),
        "best": best,
        "promised": None if option.sooner is None else [option.sooner.low_s, option.sooner.median_s, option.sooner.high_s],
        "p_sooner": option.p_sooner,
        "gain": gain,
        "finish_gain": gain + case.work.run * (1 - scale),
    }


def summary(rows: list[dict[str, Any]]) -> dict[str, Any]:
    """Figures of docs/alternatives.md."""
    told = [o for r in rows for o in r["options"] if o["promised"] is not None and "later" not in o["kinds"]]
    best = [o for o in told if o["best"]]
    out: dict[str, Any] = {"cases": len(rows), "recommended": len(best), "options": len(told)}
    for name, group in (("recommended", best), ("likely_sooner", [o for o in told if o["p_sooner"] > 0.5])):
        if group:
            gain, promise = np.array([o["gain"] for o in group]), np.array([o["promised"][1] for o in group])
            out[name + "_judged"] = len(group)
            out[name + "_started_sooner"] = float((gain > 0).mean())
            out[name + "_started_no_later"] = float((gain >= 0).mean())
            out[name + "_finished_sooner"] = float(np.mean([o["finish_gain"] > 0 for o in group]))
            out[name + "_median_gain_s"] = float(np.median(gain))
            out[name + "_median_promised_s"] = float(np.median(promise))
    # where nothing can change the interval is a point that holds: counted apart
    moving = [o for o in told if o["promised"][0] != o["promised"][2]]
    for name, group in (("interval_80_held_all", told), ("interval_80_held_moving", moving), ("interval_80_held_recommended", best)):
        out[name] = float(np.mean([o["promised"][0] - 60 <= o["gain"] <= o["promised"][2] + 60 for o in group])) if group else None
    both = [r for r in rows if "crps_model" in r]
    if both:
        out |= {"crps_cases": len(both), "crps_model": float(np.mean([r["crps_model"] for r in both]))}
        out["crps_twin"] = float(np.mean([r["crps_twin"] for r in both]))
        asked = np.array([min(r["asked_true"], HORIZON_S) for r in rows])
        out["replay_of_truth_median_difference_s"] = float(np.median(np.abs(asked - np.array([r["waited"] for r in rows]))))
    return out


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("lake")
    parser.add_argument("--cases", type=int, default=40)
    parser.add_argument("--futures", type=int, default=16)
    parser.add_argument("--skip-days", type=float, default=2.0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--minutes", type=float, default=600.0, help="stop after so many")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--rows", metavar="FILE", help="write each case there")
    parser.add_argument("--save", action="store_true", help="keep the errors as the lake's record")
    args = parser.parse_args()
    lake = Lake.open(args.lake)
    cluster = Forecaster(lake).cluster
    found = recording(lake, cluster)
    chosen = cases(found, args.cases, args.skip_days, args.seed)
    rows = judge(lake, found, chosen, args.futures, time.monotonic() + args.minutes * 60)
    out = summary(rows)
    if args.rows:
        with open(args.rows, "w", encoding="utf-8") as file:
            json.dump(rows, file, indent=1)
    if args.save and out.get("crps_cases"):
        blending.save_skill(lake, cluster, blending.Skill(out["crps_model"], out["crps_twin"], out["crps_cases"], found.end))
    print(json.dumps(out, indent=1) if args.json else "\n".join(f"{k:<40} {v}" for k, v in out.items()))


if __name__ == "__main__":
    main()
