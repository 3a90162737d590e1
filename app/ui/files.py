"""Whether files of a job (its logs, its script) may be opened by the app, which runs with rights of its own.

Whoever can open the page sees what the app can read. So files are opened only where the app is run for their owner alone
(QUEUECAST_USER names them), or where whoever runs it says that its readers may see all files (QUEUECAST_FILES=all).
"""

from __future__ import annotations

import os

from app.ui.shell import Frame
from queuecast.i18n import _


def may_open(frame: Frame, owner: str | None) -> bool:
    """Whether files of ``owner`` may be read and shown."""
    if os.environ.get("QUEUECAST_FILES") == "all":
        return frame.viewer.may_see(owner)
    return frame.viewer.user is not None and owner is not None and frame.viewer.user.casefold() == owner.casefold()


def closed_words(command: str) -> str:
    """What to do where they may not."""
    return _("Files of jobs are not opened here, since others may see this page. Their owner can ask in a terminal: {command}").format(
        command=command
    )
