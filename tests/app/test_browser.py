"""The real app in a real browser: starts, shows both pages, keeps to this machine, runs nothing that people wrote."""

from __future__ import annotations

from pathlib import Path
from urllib.parse import urlencode

import pytest
from browsing import SIZES, Visit, browser, shots, site
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser
__all__ = ["SIZES", "Visit", "browser", "shots", "site"]

PAGES = {
    "wait": (
        "/?" + urlencode({"partition": "gpu", "gpu_type": "a100", "gpus": "4", "time": "1-00:00:00"}),
        "8 in 10 like this start",
    ),
    "job": ("/?job=9006", "Why it waits: Not enough free right now"),
    "queue": ("/queue", "GPUs by type"),
}


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
