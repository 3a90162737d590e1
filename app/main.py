"""The app's entry: ``queuecast serve`` runs it. The lake is named by QUEUECAST_LAKE."""

from __future__ import annotations

import sys
from pathlib import Path

import streamlit as st

# Streamlit puts this folder on the path, not the one that holds the package.
ROOT = str(Path(__file__).resolve().parents[1])
if ROOT not in sys.path:
    sys.path.insert(0, ROOT)

from app.ui.shell import choose_language  # noqa: E402  # needs the path
from queuecast.i18n import _  # noqa: E402

choose_language()
st.set_page_config(page_title="queuecast", page_icon=str(Path(__file__).with_name("icon.svg")), layout="wide")
# The pages lie in views/: a folder pages/ would make Streamlit open a deep link without this file.
st.navigation(
    [
        st.Page("views/wait.py", title=_("How long will it wait?"), icon=":material/hourglass_top:", default=True),
        st.Page("views/queue.py", title=_("Queue now"), icon=":material/view_list:", url_path="queue"),
        st.Page("views/job.py", title=_("Job"), icon=":material/search_insights:", url_path="job"),
        st.Page("views/overrequests.py", title=_("Over-requests"), icon=":material/recycling:", url_path="overrequests"),
        st.Page("views/failures.py", title=_("Failures"), icon=":material/report:", url_path="failures"),
        st.Page("views/track.py", title=_("Track record"), icon=":material/fact_check:", url_path="track"),
    ],
    position="top",
).run()
