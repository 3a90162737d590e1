"""Lakes for the app's tests, made once."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from madelake import build_lake
from streamlit.testing.v1 import AppTest

MAIN = Path(__file__).parents[2] / "app" / "main.py"
Opener = Callable[..., AppTest]


@pytest.fixture(scope="session")
def campus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """One cluster, made up, with a snapshot."""
    return build_lake(tmp_path_factory.mktemp("campus"), demo=True).path


@pytest.fixture(scope="session")
def two_clusters(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """``annex`` (no job has started there) beside ``campus``."""
    return build_lake(tmp_path_factory.mktemp("two"), annex=True).path


@pytest.fixture
def open_app(monkeypatch: pytest.MonkeyPatch) -> Opener:
    """Run a page of the app on a lake with the parameters of a link."""
    monkeypatch.setenv("TZ", "UTC")
    for name in ("QUEUECAST_USER", "QUEUECAST_SEES", "QUEUECAST_LANG", "LC_ALL", "LC_MESSAGES", "LANG"):
        monkeypatch.delenv(name, raising=False)

    def opened(
        lake: Path | None, page: str = "wait", *, sees: str | None = None, user: str | None = None, **link: Any
    ) -> AppTest:
        for name, given in (("QUEUECAST_SEES", sees), ("QUEUECAST_USER", user)):
            if given:
                monkeypatch.setenv(name, given)
        if lake is None:
            monkeypatch.delenv("QUEUECAST_LAKE", raising=False)
        else:
            monkeypatch.setenv("QUEUECAST_LAKE", str(lake))
        app = AppTest.from_file(str(MAIN), default_timeout=60)
        if page != "wait":
            app.run()
            app.switch_page(f"views/{page}.py")
        for name, value in link.items():
            app.query_params[name] = value
        app.run()
        assert not app.exception, [e.message for e in app.exception]
        return app

    return opened
