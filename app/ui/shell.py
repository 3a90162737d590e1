"""What every page stands in: language, zone, the lake and its cluster, and how mistakes are shown."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, tzinfo
from pathlib import Path
from zoneinfo import ZoneInfo

import streamlit as st

from app.ui.words import clock_time, span
from queuecast import clock
from queuecast.answers.forecast import STALE, Forecaster
from queuecast.answers.scoring import is_live, keep_answer, predictions_of
from queuecast.answers.viewer import Viewer
from queuecast.answers.wait import WaitAnswer
from queuecast.errors import QueuecastError, StoreError, UsageError
from queuecast.i18n import _, available_languages, get_language, set_language
from queuecast.models.training import data_until
from queuecast.store.lake import Lake

RECORDING = timedelta(days=1)
"""Data older than that are taken for a recording: questions are then asked at its end unless another moment is named."""


class Shared:
    """What all sessions use, one at a time: hold ``lock``."""

    def __init__(self, lake: Lake, cluster: str) -> None:
        self.lock = threading.Lock()
        self._lake, self._cluster = lake, cluster
        self._forecaster: Forecaster | None = None
        self._making = threading.Lock()

    @property
    def forecaster(self) -> Forecaster:
        """Made when it is first asked for, so that a model that cannot be read keeps nobody from what needs none.
        Raises ``StoreError`` for such a model."""
        with self._making:
            if self._forecaster is None:
                self._forecaster = Forecaster(self._lake, self._cluster)
            return self._forecaster


@dataclass(frozen=True)
class Frame:
    """Where a page stands. ``newest``: when Slurm was last read, None if never."""

    shared: Shared
    lake: Lake
    cluster: str
    viewer: Viewer
    zone: tzinfo
    now: datetime
    newest: datetime | None

    @property
    def is_recording(self) -> bool:
        return self.newest is not None and self.now - self.newest > RECORDING

    @property
    def default_at(self) -> datetime:
        """Now, or the end of a recording."""
        return self.newest if self.newest is not None and self.is_recording else self.now

    def time(self, value: datetime) -> str:
        """An instant for the reader."""
        return clock_time(value, self.zone, self.now)


def choose_language() -> None:
    """``?lang=``, what was chosen earlier in this session, or the browser's. At the top of each run: threads are new."""
    asked = st.query_params.get("lang") or st.session_state.get("lang")
    if asked:
        st.session_state["lang"] = asked
        set_language(asked)
        return
    browser = st.context.locale
    set_language(browser or None)
    if browser and get_language() not in available_languages():
        set_language("en")


def reader_zone() -> tzinfo:
    """The browser's zone, else this machine's."""
    try:
        return ZoneInfo(st.context.timezone or clock.local_zone())
    except (ValueError, OSError):
        return UTC


@contextmanager
def friendly() -> Iterator[None]:
    """Show a mistake as what it is and what to do; the page ends there."""
    try:
        yield
    except QueuecastError as error:
        show_error(error)
        st.stop()


def show_error(error: QueuecastError) -> None:
    """Messages may hold what somebody typed, so they are shown as text."""
    question = isinstance(error, UsageError)
    with st.container(border=True, key="problem"):
        st.markdown(
            f"#### :material/{'edit' if question else 'error'}: "
            + (_("This question needs a change") if question else _("No answer from here"))
        )
        st.text(_sentence(error.message))
        if error.hint:
            st.text(_("What to do: {hint}").format(hint=error.hint))


def _sentence(text: str) -> str:
    return text[:1].upper() + text[1:]


def _make(path: str, version: int, model_mark: int, cluster: str) -> Shared:
    """Kept until the lake or the trained model changes; ``version`` and ``model_mark`` are there to tell that."""
    return Shared(Lake.open(path), cluster)


_shared: Callable[[str, int, int, str], Shared] = st.cache_resource(_make, max_entries=4, show_spinner=False)


def _model_mark(lake: Lake) -> int:
    try:
        return (lake.path / "models" / "current").stat().st_mtime_ns
    except OSError:
        return 0


def open_frame() -> Frame:
    """The lake, its cluster and the viewer; a page without them says what to do and ends."""
    path = os.environ.get("QUEUECAST_LAKE", "")
    if not path or not (Path(path).expanduser() / "manifest.json").exists():
        _no_lake(path)
        st.stop()
    with friendly():
        lake = Lake.open(path)
        if not lake.clusters:
            _empty_lake()
            st.stop()
        cluster = _cluster(lake.clusters)
        shared = _shared(str(lake.path), lake.manifest.version, _model_mark(lake), cluster)
        newest = data_until(lake, cluster)
    frame = Frame(shared, lake, cluster, _viewer(), reader_zone(), clock.now(), newest)
    with st.container(horizontal=True, vertical_alignment="center", key="marks"):
        if lake.manifest.state.get("demo"):
            st.badge(
                _("Demonstration: made-up users and jobs"),
                icon=":material/science:",
                color="orange",
            )
        if frame.is_recording and newest is not None:
            st.badge(
                _("A recording that ends {time}, {span} ago").format(
                    time=frame.time(newest), span=span((frame.now - newest).total_seconds())
                ),
                icon=":material/history:",
                color="gray",
            )
    return frame


def _viewer() -> Viewer:
    """QUEUECAST_SEES=own: only the jobs of QUEUECAST_USER are shown as such, the others as sums."""
    return Viewer(os.environ.get("QUEUECAST_USER") or None, os.environ.get("QUEUECAST_SEES", "all") != "own")


def _cluster(names: list[str]) -> str:
    """The one there is, or the one chosen; the choice is kept in the link."""
    if len(names) == 1:
        return names[0]
    asked = st.query_params.get("cluster") or st.session_state.get("cluster") or names[0]
    index = next((i for i, n in enumerate(names) if n.casefold() == asked.casefold()), None)
    if index is None:
        raise UsageError(
            _("cluster {name} is not in this lake").format(name=asked), _("it has: {names}").format(names=", ".join(names))
        )
    chosen: str = st.selectbox(_("Cluster"), names, index=index, width=260)
    st.session_state["cluster"] = chosen
    if st.query_params.get("cluster") != chosen:
        st.query_params["cluster"] = chosen
    return chosen


def keep(frame: Frame, answer: WaitAnswer) -> None:
    """Log an answer about the present for the track record, once a question and not at each redrawing of the page."""
    if not is_live(answer, clock.now()):
        return
    question = (answer.cluster, answer.job_id, answer.request, int(answer.at.timestamp()) // 300)
    if st.session_state.get("kept") == question:
        return
    st.session_state["kept"] = question
    try:
        keep_answer(predictions_of(frame.lake), answer)
    except StoreError:
        st.session_state["kept"] = None  # a log that cannot be written is no reason to withhold the answer


def _no_lake(path: str) -> None:
    with st.container(border=True, key="empty"):
        st.markdown("#### :material/database_off: " + _("There is no data folder yet"))
        if path:
            st.text(_("Nothing is at {path}.").format(path=path))
        st.text(_("queuecast answers from a folder with your cluster's history, the lake. Make one, then start the app on it:"))
        st.code("queuecast collect --lake LAKE\nqueuecast serve --lake LAKE", language="bash")


def _empty_lake() -> None:
    with st.container(border=True, key="empty"):
        st.markdown("#### :material/inbox: " + _("The lake is empty"))
        st.text(
            _("Nothing was read from Slurm yet. Read the queue and the last weeks of accounting, or a folder of recorded output:")
        )
        st.code("queuecast collect\nqueuecast backfill --since 2026-01-01\nqueuecast ingest FOLDER", language="bash")


def show_freshness(frame: Frame, at: datetime, data_at: datetime | None) -> None:
    """A banner if the answer rests on old data. ``data_at``: the newest reading before ``at``."""
    if data_at is None:
        st.warning(_("Nothing was read from Slurm before that moment, so this answer knows little."), icon=":material/warning:")
    elif at - data_at > STALE:
        st.warning(
            _("The data are old: Slurm was last read {span} before the moment asked about ({time}).").format(
                span=span((at - data_at).total_seconds()), time=frame.time(data_at)
            ),
            icon=":material/warning:",
        )
