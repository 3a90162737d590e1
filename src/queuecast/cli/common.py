"""What the commands share: options, settings, errors as one message, output."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Annotated, Any

import typer

from queuecast import clock
from queuecast.config import Settings, load_settings

if TYPE_CHECKING:
    from queuecast.answers.viewer import Viewer
    from queuecast.store.lake import Lake

LakeOption = Annotated[
    str | None, typer.Option("--lake", metavar="DIR", help="Folder of the lake (else QUEUECAST_LAKE, else the configuration).")
]
ClusterOption = Annotated[
    str | None, typer.Option("-M", "--cluster", "--clusters", metavar="NAME", help="Cluster, where the lake holds several.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="JSON, as docs/json.md describes.")]
ParsableOption = Annotated[bool, typer.Option("-P", "--parsable", help="Fields separated by | with a header.")]
AtOption = Annotated[
    str | None,
    typer.Option("--at", metavar="TIME", help="Answer as of this moment: 2026-06-10T14:00, 3d (ago), now, data (the newest data)."),
]
WaitOption = Annotated[float, typer.Option("--wait", metavar="SECONDS", help="Wait so long for another writer to finish.")]
UserOption = Annotated[str | None, typer.Option("-u", "--user", metavar="NAME", help="Ask as this user (default: you).")]


@dataclass(frozen=True)
class Context:
    """Settings with the options of this call applied."""

    settings: Settings
    lake_path: str
    cluster: str | None

    def lake(self, *, create: bool = False) -> Lake:
        """Open the lake."""
        from queuecast.store.lake import Lake

        return Lake.open(self.lake_path, create=create)

    @property
    def zone(self) -> str:
        """Zone that times are shown in."""
        return self.settings.zone or clock.local_zone()

    def at(self, text: str | None, lake: Lake, cluster: str | None) -> datetime:
        """The instant asked about. Without ``--at``: now."""
        if text == "data":
            from queuecast.models.training import data_until

            names = [cluster] if cluster else lake.clusters
            known = [t for n in names if (t := data_until(lake, n)) is not None]
            return max(known) if known else clock.now()
        return clock.parse_instant(text, self.zone) if text else clock.now()

    def viewer(self, user: str | None) -> Viewer:
        """Who asks: under privacy "own" always the login user, whatever ``-u`` says."""
        from queuecast.answers.viewer import Viewer

        me = login_user()
        if self.settings.privacy == "own":
            return Viewer(me, sees_all=False)
        return Viewer(user or me, sees_all=True)


def context(lake: str | None, cluster: str | None) -> Context:
    """Raises ``ConfigError``."""
    settings = load_settings()
    return Context(settings, lake or settings.lake, cluster or settings.cluster)


def login_user() -> str | None:
    """The user of this process, by the system and not by the environment."""
    import os
    import pwd

    try:
        return pwd.getpwuid(os.getuid()).pw_name
    except KeyError:
        return None


def print_json(value: Any) -> None:
    """Indented JSON; text is escaped where a terminal could be harmed."""
    print(json.dumps(value, indent=2, ensure_ascii=True, default=str))


def print_lines(lines: Iterable[str]) -> None:
    """Plain lines; the picture's first column in bold on a terminal."""
    if not sys.stdout.isatty():
        print("\n".join(lines))
        return
    from rich.console import Console
    from rich.text import Text

    console = Console(highlight=False, soft_wrap=True)
    for i, line in enumerate(lines):
        text = Text(line)
        if i == 0:
            text.stylize("bold")
        elif line[:9].strip() and not line.startswith(" "):
            text.stylize("bold cyan", 0, 9)
        text.highlight_regex(r"[━■]+", "green")
        text.highlight_regex(r"─{2,}", "dim green")
        console.print(text)


def width() -> int:
    """Columns of the terminal, at most 110."""
    import shutil

    return min(110, shutil.get_terminal_size((100, 24)).columns)
