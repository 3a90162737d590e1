"""The learned distribution: honest, censored jobs counted, nothing later than the moment of learning used."""

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
from queuecast.models.stacked import LOCATION, Stacked, fit, restored, saved

AT = T0 + 15 * DAY


@pytest.fixture(scope="module")
def cases() -> Cases:
    return made()


@pytest.fixture(scope="module")
def model(cases: Cases) -> Stacked:
    return fit(cases, AT, **QUICK)


def test_distributions_are_distributions(cases: Cases, model: Stacked) -> None:
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
    assert not np.array_equal(earlier.located.levels, one["located_levels"])


def test_nothing_to_learn_from_is_said(cases: Cases) -> None:
    with pytest.raises(ValueError, match="started"):
        fit(replace(cases, start=np.full(len(cases), np.inf)), AT, **QUICK)
    with pytest.raises(ValueError, match="started"):
        fit(cases, T0 - 1, **QUICK)


def _file(model: Stacked) -> bytes:
    buffer = io.BytesIO()
    np.savez(buffer, **saved(model))  # type: ignore[arg-type]
    return buffer.getvalue()


def test_saved_and_restored_it_answers_the_same(cases: Cases, model: Stacked) -> None:
    again = restored(dict(np.load(io.BytesIO(_file(model)), allow_pickle=False)))
    assert again.bins.booster is None
    assert again.located.boosters == ()
    assert again.names == tuple(f.name for f in cases.features)
    assert again.bins.names == (*again.names, LOCATION.name)
    few = cases.values[:100]
    assert (again.predict(few).cdf == model.predict(few).cdf).all()
    assert (model.alone().predict(few).cdf == model.predict(few).cdf).all()
    # With this many rows LightGBM itself answers in the process that trained.
    assert len(cases) >= 500
    assert np.allclose(again.predict(cases.values).cdf, model.predict(cases.values).cdf, atol=1e-10)


def test_a_restored_model_answers_without_lightgbm(cases: Cases, model: Stacked, tmp_path: Path) -> None:
    (tmp_path / "model.npz").write_bytes(_file(model))
    np.save(tmp_path / "values.npy", cases.values[:3])
    program = (
        "import sys, numpy as np\n"
        "from queuecast.models.stacked import restored\n"
        "model = restored(dict(np.load('model.npz', allow_pickle=False)))\n"
        "print(repr(model.predict(np.load('values.npy')).within(3600.0).tolist()))\n"
        "print([m for m in ('lightgbm', 'sklearn', 'scipy', 'pandas') if m in sys.modules])\n"
    )
    told = subprocess.run([sys.executable, "-c", program], cwd=tmp_path, capture_output=True, text=True, check=True).stdout.splitlines()
    assert told == [repr(model.predict(cases.values[:3]).within(3600.0).tolist()), "[]"]


def test_foreign_arrays_are_refused(model: Stacked) -> None:
    good: dict[str, Any] = dict(saved(model))
    restored(good)
    bad: list[dict[str, Any]] = [
        {**good, "bins_low": good["bins_low"][:-1], "bins_high": good["bins_high"][:-1]},
        {**good, "bins_high": good["bins_high"][:-1]},
        {**good, "bins_low": good["bins_low"][::-1]},
        {**good, "bins_high": good["bins_high"] - 50},
        {**good, "bins_names": good["bins_names"][:1]},
        {**good, "bins_names": good["bins_names"][::-1]},
        {**good, "bins_left": good["bins_left"] + len(good["bins_left"])},
        {**good, "located_folds": np.array(0)},
        {**good, "located_levels": good["located_levels"][::-1]},
        {**good, "located_levels": good["located_levels"][:-1]},
        {**good, "located_cdf": good["located_cdf"][:, ::-1]},
        {**good, "located_cdf": good["located_cdf"] * 2},
        {**good, "located_feature": good["located_feature"] + 3},
        *({n: a for n, a in good.items() if n != name} for name in good),
        {**good, "bins_weights": np.zeros(3)},
        {"a": np.zeros(3)},
    ]
    for arrays in bad:
        with pytest.raises((ValueError, KeyError)):
            restored(arrays)


def test_both_parts_count(cases: Cases) -> None:
    model = fit(cases, AT, rounds=25, bins=6, threads=1)
    few = cases.values[:50]
    location = model.located.location(few)
    told, alike = model.predict(few).cdf, model.located.around(location).cdf
    bins = model.bins.predict(np.column_stack([few, location.astype(np.float32)])).cdf
    assert np.allclose(told, 0.6 * bins + 0.4 * alike)
    assert np.abs(bins - alike).max() > 0.02
