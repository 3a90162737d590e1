"""Choices that live in the link: whoever opens it sees the same."""

from __future__ import annotations

from collections.abc import Container, Mapping, Sequence

import streamlit as st

from queuecast.i18n import _


def link_choice(page: str, label: str, name: str, options: Mapping[str, str], usual: str) -> str:
    """One of a few; ``usual`` is left out of the link. ``options``: value to marked text."""
    key = f"{page}_{name}"
    _follow(key, name, options, usual)
    chosen = st.segmented_control(label, list(options), format_func=lambda value: _(options[value]), key=key, required=True)
    _write(name, chosen, usual)
    return chosen or usual


def link_select(page: str, label: str, name: str, options: Sequence[str], none: str, width: int = 190) -> str | None:
    """One of many, or none of them."""
    key = f"{page}_{name}"
    _follow(key, name, options, None)
    chosen: str | None = st.selectbox(label, options, index=None, key=key, placeholder=none, width=width)
    _write(name, chosen, None)
    return chosen


def _follow(key: str, name: str, options: Container[str], usual: str | None) -> None:
    """Start from the link; what is not offered (any more) gives way to the usual."""
    if key not in st.session_state:
        st.session_state[key] = st.query_params.get(name, usual)
    if st.session_state[key] not in options:
        st.session_state[key] = usual


def _write(name: str, chosen: str | None, usual: str | None) -> None:
    if chosen and chosen != usual:
        st.query_params[name] = chosen
    else:
        st.query_params.pop(name, None)
