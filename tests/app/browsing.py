"""The app in a real browser: started as ``queuecast serve`` starts it, and a page that notes what it asks of others.

Chromium is Debian's; without it these tests fail. Screenshots go to the test's folder, or to QUEUECAST_SCREENSHOTS.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
import urllib.error
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

ROOT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"]  # fmt: skip
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}


def free_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(start: Sequence[str], lake: Path, home: Path) -> Iterator[str]:
    """Address of the app, begun by ``start`` (what follows ``python``) in the folder ``home``, once it answers."""
    port = free_port()
    flags = {
        "server.address": "127.0.0.1", "server.port": str(port), "server.headless": "true", "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false", "client.disableDataExport": "true", "client.showErrorDetails": "none",
        "client.toolbarMode": "minimal",
    }  # fmt: skip
    command = [sys.executable, *start, *(f"--{k}={v}" for k, v in flags.items())]
    environment = {**os.environ, "QUEUECAST_LAKE": str(lake), "TZ": "UTC", "HOME": str(home)}
    with (home / "log").open("wb") as log:
        server = subprocess.Popen(command, cwd=home, env=environment, stdout=log, stderr=subprocess.STDOUT)
    try:
        for _ in range(300):
            assert server.poll() is None, (home / "log").read_text()
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{port}/_stcore/health", timeout=2):
                    break
            except (urllib.error.URLError, ConnectionError):
                time.sleep(0.2)
        yield f"http://127.0.0.1:{port}"
    finally:
        server.terminate()
        server.wait(timeout=20)


@pytest.fixture(scope="module")
def site(campus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app, run as ``queuecast serve`` runs it, from another folder and without a home."""
    with served(["-m", "streamlit", "run", str(ROOT / "app" / "main.py")], campus, tmp_path_factory.mktemp("home")) as address:
        yield address


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Chromium without a window."""
    assert Path(CHROMIUM).exists(), f"{CHROMIUM} is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield chromium
        chromium.close()


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    """Where screenshots go."""
    folder = Path(os.environ.get("QUEUECAST_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


class Visit:
    """A page in a fresh browser context; notes what it asked of other machines and what it ran."""

    def __init__(self, browser: Browser, site: str, size: str, scheme: str = "light") -> None:
        width, height = SIZES[size]
        self.site = site
        self.context = browser.new_context(
            viewport={"width": width, "height": height}, locale="en-GB", timezone_id="Europe/Berlin",
            color_scheme="dark" if scheme == "dark" else "light")  # fmt: skip
        self.page: Page = self.context.new_page()
        self.elsewhere: list[str] = []
        self.dialogs: list[str] = []
        self.page.on("request", self._note)
        self.page.on("dialog", lambda dialog: (self.dialogs.append(dialog.message), dialog.dismiss()))

    def _note(self, request: object) -> None:
        url = str(getattr(request, "url", ""))
        if not url.startswith((self.site, self.site.replace("http", "ws"), "data:", "blob:")):
            self.elsewhere.append(url)

    def open(self, path: str, text: str) -> Page:
        self.page.goto(self.site + path)
        expect(self.page.get_by_text(text).first).to_be_visible(timeout=30_000)
        expect(self.page.get_by_test_id("stStatusWidget")).to_have_count(0, timeout=30_000)
        expect(self.page.get_by_test_id("stVegaLiteChart").locator("canvas, svg").first).to_be_visible(timeout=30_000)
        return self.page

    def shoot(self, file: Path) -> None:
        """The whole page: the window is made as high as its content."""
        height = int(self.page.evaluate("() => document.querySelector('[data-testid=stMain]').scrollHeight"))
        size = self.page.viewport_size
        assert size is not None
        self.page.set_viewport_size({"width": size["width"], "height": max(size["height"], height + 8)})
        self.page.wait_for_timeout(800)  # charts are drawn anew
        self.page.screenshot(path=str(file))
