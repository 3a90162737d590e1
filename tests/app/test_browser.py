"""The real app in a real browser: starts, shows both pages, keeps to this machine, runs nothing that people wrote.

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
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from playwright.sync_api import Browser, Page, expect, sync_playwright

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
CHROMIUM = "/usr/bin/chromium"
ARGS = ["--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
        "--disable-component-update", "--disable-sync"]  # fmt: skip
SIZES = {"wide": (1280, 900), "narrow": (390, 844)}
PAGES = {
    "wait": (
        "/?" + urlencode({"partition": "gpu", "gpu_type": "a100", "gpus": "4", "time": "1-00:00:00"}),
        "8 in 10 like this start",
    ),
    "job": ("/?job=9006", "Why it waits: Not enough free right now"),
    "queue": ("/queue", "GPUs by type"),
}


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@pytest.fixture(scope="module")
def site(campus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app, run as ``queuecast serve`` runs it, from another folder and without a home."""
    port, home = _free_port(), tmp_path_factory.mktemp("home")
    flags = {
        "server.address": "127.0.0.1", "server.port": str(port), "server.headless": "true", "server.fileWatcherType": "none",
        "browser.gatherUsageStats": "false", "client.disableDataExport": "true", "client.showErrorDetails": "none",
        "client.toolbarMode": "minimal",
    }  # fmt: skip
    command = [sys.executable, "-m", "streamlit", "run", str(ROOT / "app" / "main.py"), *(f"--{k}={v}" for k, v in flags.items())]
    environment = {**os.environ, "QUEUECAST_LAKE": str(campus), "TZ": "UTC", "HOME": str(home)}
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
def browser() -> Iterator[Browser]:
    assert Path(CHROMIUM).exists(), f"{CHROMIUM} is needed: apt-get install chromium"
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=CHROMIUM, args=ARGS)
        yield chromium
        chromium.close()


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


@pytest.fixture
def shots(tmp_path: Path) -> Path:
    folder = Path(os.environ.get("QUEUECAST_SCREENSHOTS") or tmp_path)
    folder.mkdir(parents=True, exist_ok=True)
    return folder


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("name", list(PAGES))
def test_a_page_is_shown_whole(browser: Browser, site: str, shots: Path, name: str, size: str) -> None:
    """No scrolling to the side, no failure, nothing asked of other machines (telemetry, fonts, icons)."""
    visit = Visit(browser, site, size)
    page = visit.open(*PAGES[name])
    expect(page.get_by_test_id("stException")).to_have_count(0)
    visit.shoot(shots / f"app-{name}-{size}.png")
    assert (shots / f"app-{name}-{size}.png").stat().st_size > 20_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()


def test_dark(browser: Browser, site: str, shots: Path) -> None:
    visit = Visit(browser, site, "wide", "dark")
    page = visit.open(*PAGES["job"])
    background = page.evaluate("() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor")
    assert background != "rgb(255, 255, 255)"
    visit.shoot(shots / "app-job-dark.png")
    visit.context.close()


def test_asking_by_hand_changes_the_link_and_back_brings_it_back(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open(*PAGES["wait"])
    page.get_by_label("GPUs, whole job").fill("8")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_text("8 × a100").first).to_be_visible(timeout=30_000)
    assert "gpus=8" in page.url
    again = Visit(browser, site, "wide")
    other = again.open(page.url.removeprefix(site), "8 × a100")
    expect(other.get_by_label("GPUs, whole job")).to_have_value("8")
    visit.context.close()
    again.context.close()


def test_the_menu_leads_to_the_queue_and_its_search_to_the_link(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open(*PAGES["wait"])
    page.get_by_role("link", name="Queue now").click()
    expect(page.get_by_text("What waits").first).to_be_visible(timeout=30_000)
    search = page.get_by_label("Search").first
    search.fill("train-1")
    search.press("Enter")
    expect(page.get_by_text("11 records").first).to_be_visible(timeout=30_000)
    assert "q=train-1" in page.url
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) == 12
    assert visit.elsewhere == []
    visit.context.close()


def test_a_chosen_row_leads_to_its_forecast(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open("/queue?q=llm-finetune", "What waits")
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    expect(table.locator("canvas").first).to_be_visible(timeout=30_000)
    page.wait_for_timeout(500)  # the table is laid out
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 54)  # cells are painted on a canvas: no element to ask for
    page.get_by_role("button", name="How long will the chosen job wait?").click(timeout=30_000)
    expect(page.get_by_text("Job 9006:").first).to_be_visible(timeout=30_000)
    assert "job=9006" in page.url
    visit.context.close()
