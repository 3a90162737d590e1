"""Parameters counted from shapes agree with what the models' makers say."""

from __future__ import annotations

import contextlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from queuecast.errors import UsageError
from queuecast.hardware.modelshapes import SHAPES, Parts, find_shape, parse_count


@pytest.mark.parametrize(
    ("size", "billions"),
    [
        ("7b", 6.738),
        ("13B", 13.016),
        ("8b", 8.030),
        ("70b", 70.554),
        ("72b", 72.706),
        ("1b", 1.236),
        ("3b", 3.213),
        ("0.5b", 0.494),
        ("405b", 405.85),
        ("8x7b", 46.70),
        ("8x22b", 140.63),
    ],
)
def test_published_counts(size: str, billions: float) -> None:
    assert find_shape(size, Parts()).params / 1e9 == pytest.approx(billions, rel=2e-4)


def test_names_are_near_their_sizes() -> None:
    for shape in SHAPES:
        if "x" not in shape.name:
            assert shape.params == pytest.approx(parse_count(shape.name, ""), rel=0.25)
        assert shape.hidden % shape.heads == 0
        assert shape.heads % shape.kv_heads == 0


def test_mixtures_compute_with_fewer() -> None:
    assert find_shape("8x7b", Parts()).active_params / 1e9 == pytest.approx(12.88, rel=1e-3)
    told = find_shape("16x3b", Parts(layers=32, hidden=2048, heads=16, params="40b", active="7b"))
    assert (told.params, told.active_params) == (40 * 10**9, 7 * 10**9)
    for parts in (Parts(), Parts(params="40b"), Parts(layers=32, hidden=2048, heads=16)):
        with pytest.raises(UsageError):
            find_shape("16x3b", parts)


def test_parts_over_sizes() -> None:
    assert find_shape("7b", Parts(vocab=64000)).params - find_shape("7b", Parts()).params == 2 * 32000 * 4096
    own = find_shape(None, Parts(layers=24, hidden=2048, heads=16, vocab=50000))
    assert own.params > 10**9
    sized = find_shape("9b", Parts(layers=40, hidden=4096, heads=32))
    assert sized.params == 9 * 10**9


@pytest.mark.parametrize(
    ("model", "parts"),
    [
        (None, Parts()),
        ("9b", Parts()),
        ("seven", Parts()),
        ("7b", Parts(heads=31)),
        ("7b", Parts(kv_heads=5)),
        ("7b", Parts(layers=0)),
        ("7b", Parts(params="no")),
        ("7b", Parts(active="3b")),
        ("7b", Parts(params="1m")),
        ("7b", Parts(params="7b", active="8b")),
    ],
)
def test_what_cannot_be_is_refused(model: str | None, parts: Parts) -> None:
    with pytest.raises(UsageError) as refused:
        find_shape(model, parts)
    assert refused.value.hint


@given(st.text(max_size=12))
def test_any_text_is_a_size_or_refused(text: str) -> None:
    with contextlib.suppress(UsageError):
        assert find_shape(text, Parts()).params > 0
