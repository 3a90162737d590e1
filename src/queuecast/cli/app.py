"""Where the Streamlit app lies and how it is started."""

from __future__ import annotations

import sys
from importlib.util import find_spec
from pathlib import Path


def app_file() -> Path | None:
    """``app/main.py``: in the installed package, or beside ``src`` in a checkout."""
    here = Path(__file__).resolve()
    for candidate in (here.parents[1] / "_web" / "app" / "main.py", here.parents[3] / "app" / "main.py"):
        if candidate.exists():
            return candidate
    return None


def app_command(port: int, address: str) -> list[str] | None:
    """Argument list that serves the app; None if Streamlit or the app is not installed. No telemetry."""
    main = app_file()
    if main is None or find_spec("streamlit") is None:
        return None
    return [
        sys.executable,
        "-m",
        "streamlit",
        "run",
        str(main),
        "--server.port",
        str(port),
        "--server.address",
        address,
        "--server.headless",
        "true",
        "--browser.gatherUsageStats",
        "false",
        "--client.toolbarMode",
        "minimal",
        "--server.fileWatcherType",
        "none",
        "--client.disableDataExport",
        "true",
        "--client.showErrorDetails",
        "none",
    ]
