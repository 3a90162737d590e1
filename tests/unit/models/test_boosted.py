"""Chances of bins: honest distributions, censored jobs counted, nothing later than the moment of learning used."""

from __future__ import annotations

import io
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.unit.models.made_cases import DAY, HOUR, LOAD, QUICK, T0, altered_after, made

from queuecast.features.cases import Cases
from queuecast.models import boosted
from queuecast.models.boosted import Boosted, fit, restored, saved

AT = T0 + 15 * DAY


@pytest.fixture(scope="module")
def cases() -> Cases:
    return made()


@pytest.fixture(scope="module")
def model(cases: Cases) -> Boosted:
    return fit(cases, AT, **QUICK)


def test_distributions_are_distributions(cases: Cases, model: Boosted) -> None:
    told = model.predict(cases.values)
    assert (told.cdf >= 0).all()
    assert (told.cdf <= 1 + 1e-12).all()
    assert (np.diff(told.cdf, axis=1) >= 0).all()
    assert (told.cdf[:, -1] > 0.999).all()
    quantiles = np.stack([told.quantile(p) for p in (0.025, 0.1, 0.25, 0.5, 0.75, 0.9, 0.975)])
    assert (np.diff(quantiles, axis=0) >= 0).all()
    within = np.stack([told.within(h * HOUR) for h in (0, 1, 4, 24, 100)])
    assert (np.diff(within, axis=0) >= 0).all()
    assert within[-1].mean() > within[1].mean() + 0.2


def test_it_learns_what_the_wait_depends_on(cases: Cases) -> None:
    told = fit(cases, AT, rounds=25, bins=6, threads=1).predict(cases.values)
    low, high = cases.values[:, LOAD] < 0.25, cases.values[:, LOAD] > 0.75
    assert np.median(told.quantile(0.5)[high]) > 20 * np.median(told.quantile(0.5)[low])


def test_a_wait_of_zero_has_a_bin_of_its_own(cases: Cases, model: Boosted) -> None:
    assert model.low[0] == model.high[0] == 0
    assert model.low[1] > 0
    assert (model.high[1:] > model.low[1:]).all()
    told = model.predict(cases.values).cdf[:, 0]
    assert told.mean() == pytest.approx(0.3, abs=0.06)
    at_once = cases.start == cases.asked
    assert told[at_once].mean() > told[~at_once].mean() + 0.05
    never = made(300, at_once=0.0)
    assert (fit(never, AT, **QUICK).predict(never.values).cdf[:, 0] == 0).all()


def test_jobs_that_all_waited_the_same_can_be_learned_from() -> None:
    some = made(120)
    for wait, before, after in ((0.0, -1.0, 0.0), (600.0, 400.0, 900.0)):
        start = some.asked + wait
        told = fit(replace(some, start=start, last_pending=start), AT, **QUICK).predict(some.values[:5])
        assert (told.within(after) > 0.95).all()
        assert (told.within(before) < 0.05).all()


def test_censored_jobs_make_waits_longer() -> None:
    """Half of the jobs are cancelled at a random moment of their wait: who leaves them out takes waits for short."""
    full = made(800, at_once=0.0, days=14.0)
    cut = full.asked + np.random.default_rng(3).exponential(6 * HOUR, len(full))
    gone = cut < full.start
    assert 0.2 < gone.mean() < 0.8
    seen = replace(full, start=np.where(gone, np.inf, full.start), last_pending=np.minimum(cut, full.start))
    whole = fit(full, AT + 30 * DAY, **QUICK).predict(full.values).quantile(0.5)
    with_them = fit(seen, AT + 30 * DAY, **QUICK).predict(full.values).quantile(0.5)
    without = fit(seen.take(~gone), AT + 30 * DAY, **QUICK).predict(full.values).quantile(0.5)
    assert np.median(with_them) > 1.15 * np.median(without)
    assert abs(np.log(np.median(with_them) / np.median(whole))) < 0.5 * abs(np.log(np.median(without) / np.median(whole)))


@pytest.mark.parametrize("waited", [0.0, 30.0, 4000.0, 1e9])
def test_what_a_censored_job_may_still_wait_is_longer_than_what_it_waited(waited: float) -> None:
    waits, started = np.r_[np.linspace(10, 9000, 50), waited], np.r_[np.ones(50, bool), False]
    index, z = boosted._outcomes(waits, started)
    assert (np.bincount(index) == np.r_[np.ones(50), boosted.COPIES]).all()
    assert (z[index == 50] > np.log1p(waited)).all()
    assert np.allclose(z[index < 50], np.log1p(waits[:50]))


@pytest.mark.parametrize("day", [6, 15])
def test_outcomes_after_the_moment_of_learning_are_not_used(cases: Cases, day: int) -> None:
    at = T0 + day * DAY
    other = altered_after(cases, at)
    later = cases.asked > at
    other = replace(other, values=np.where(later[:, None], np.float32(-9), other.values))
    assert (other.start != cases.start).sum() > 50
    one, two = (saved(fit(c, at, **QUICK)) for c in (cases, other))
    assert all((one[n] == two[n]).all() for n in one)
    earlier = fit(altered_after(cases, at - 2 * DAY), at, **QUICK)
    assert len(earlier.low) != len(one["low"]) or not (earlier.high == one["high"]).all()


def test_nothing_to_learn_from_is_said(cases: Cases) -> None:
    with pytest.raises(ValueError, match="started"):
        fit(replace(cases, start=np.full(len(cases), np.inf)), AT, **QUICK)
    with pytest.raises(ValueError, match="started"):
        fit(cases, T0 - 1, **QUICK)


def test_of_too_many_cases_the_latest_are_kept_and_the_older_thinned(cases: Cases, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boosted, "MOST_CASES", 100)
    rows = boosted._chosen(cases, AT)
    before = np.flatnonzero(cases.asked < AT)
    assert len(rows) == len(np.unique(rows)) == 100
    assert (np.diff(rows) > 0).all()
    assert (rows[-50:] == before[-50:]).all()
    assert rows[0] == 0
    assert np.diff(rows[:50]).max() <= 1 + len(before) // 49
    assert (boosted._chosen(cases, cases.asked[80]) == np.arange(80)).all()


def _file(model: Boosted) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **saved(model))  # type: ignore[arg-type]
    return buffer.getvalue()


def test_saved_and_restored_it_answers_the_same(cases: Cases, model: Boosted) -> None:
    again = restored(dict(np.load(io.BytesIO(_file(model)), allow_pickle=False)))
    assert again.booster is None
    assert again.names == tuple(f.name for f in cases.features)
    few = cases.values[:100]
    assert (again.predict(few).cdf == model.predict(few).cdf).all()
    # With this many rows LightGBM itself answers in the process that trained.
    assert len(cases) >= 500
    assert np.allclose(again.predict(cases.values).cdf, model.predict(cases.values).cdf, atol=1e-10)


def test_foreign_arrays_are_refused(model: Boosted) -> None:
    good: dict[str, Any] = dict(saved(model))
    restored(good)
    bad: list[dict[str, Any]] = [
        {**good, "low": good["low"][:-1], "high": good["high"][:-1]},
        {**good, "high": good["high"][:-1]},
        {**good, "low": good["low"][::-1]},
        {**good, "high": good["high"] - 50},
        {**good, "names": good["names"][:1]},
        {**good, "left": good["left"] + len(good["left"])},
        *({n: a for n, a in good.items() if n != name} for name in good),
        {**good, "weights": np.zeros(3)},
        {"a": np.zeros(3)},
    ]
    for arrays in bad:
        with pytest.raises((ValueError, KeyError)):
            restored(arrays)


def test_a_restored_model_answers_without_lightgbm(cases: Cases, model: Boosted, tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(_file(model))
    np.save(tmp_path / "values.npy", cases.values[:3])
    program = (
        "import sys, numpy as np\n"
        "from queuecast.models.boosted import restored\n"
        "model = restored(dict(np.load('model.npz', allow_pickle=False)))\n"
        "print(repr(model.predict(np.load('values.npy')).within(3600.0).tolist()))\n"
        "print([m for m in ('lightgbm', 'sklearn', 'scipy', 'pandas') if m in sys.modules])\n"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [repr(model.predict(cases.values[:3]).within(3600.0).tolist()), "[]"]
