"""Over-requests, failures and an ended job in a real browser: drawn whole, nothing run that people wrote, ways from page to page."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import ROOT, SIZES, Visit, browser, served, shots
from madeuse import DEAD, IDLE, TIMED_OUT, WELL, build_use_lake
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser
__all__ = ["browser", "shots"]

SERVE = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
import queuecast.answers.rightsizing.rightsize as rightsize
from madeuse import StandIn
rightsize.sizes_at = StandIn
from streamlit.web import cli
sys.argv = ["streamlit", "run", {app!r}, *sys.argv[1:]]
cli.main()
"""
PAGES = {
    "overrequests": ("/overrequests?by=kind", "What it would do to the queue", 3),
    "failures": ("/failures", "What is measured", 2),
    "ended": (f"/job?job={TIMED_OUT}", "What happened so far", 1),
    "node": (f"/job?job={DEAD[0]}", "What happened so far", 1),
    "use": (f"/job?job={WELL}", "What happened so far", 2),
}


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app on a lake with measured use; bounds take no learning."""
    lake = build_use_lake(tmp_path_factory.mktemp("used"), generated=True).path
    code = SERVE.format(root=str(ROOT), tests=str(Path(__file__).parent), app=str(ROOT / "app" / "main.py"))
    with served(["-c", code], lake, tmp_path_factory.mktemp("home")) as address:
        yield address


def settled(visit: Visit) -> None:
    """The page of the last choice, not of the one before."""
    expect(visit.page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=60_000)


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
@pytest.mark.parametrize("name", list(PAGES))
def test_the_page_is_shown_whole(browser: Browser, site: str, shots: Path, name: str, size: str, scheme: str) -> None:
    path, text, charts = PAGES[name]
    visit = Visit(browser, site, size, scheme)
    page = visit.open(path, text)
    settled(visit)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(charts)
    expect(page.get_by_test_id("stSkeleton")).to_have_count(0, timeout=30_000)
    visit.shoot(shots / f"app-{name}-{size}.png")
    assert (shots / f"app-{name}-{size}.png").stat().st_size > 20_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()


def test_the_review_by_hand(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open("/queue", "GPUs by type")
    page.get_by_role("link", name="Over-requests").click()
    expect(page.get_by_text("What it would do to the queue")).to_be_visible(timeout=60_000)
    expect(page.get_by_text("generated, not measured").first).to_be_visible()
    page.get_by_role("radio", name="Account", exact=True).click()
    page.wait_for_url(re.compile("by=account"), timeout=30_000)
    settled(visit)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").first.click()
    rows = list(csv.DictReader(Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()))
    assert {"all", "user", "account", "partition", "kind"} == {r["by"] for r in rows}
    page.get_by_text("Write them").click()
    expect(page.get_by_text("Dear ines").first).to_be_visible(timeout=30_000)
    page.get_by_role("radio", name="Chinese").click()
    settled(visit)
    expect(page.get_by_text("Dear ines")).to_have_count(0, timeout=30_000)
    assert visit.dialogs == []
    assert visit.elsewhere == []
    visit.context.close()


def test_from_an_idle_job_to_its_page(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open("/overrequests", "Whom to contact")
    settled(visit)
    table = page.get_by_test_id("stDataFrame").last
    table.scroll_into_view_if_needed()
    expect(table.locator("canvas").first).to_be_visible(timeout=30_000)
    page.wait_for_timeout(500)  # the table is laid out
    box = table.bounding_box()
    assert box is not None
    page.mouse.click(box["x"] + 16, box["y"] + 54)  # cells are painted on a canvas: no element to ask for
    page.get_by_role("button", name="Open the chosen job").click(timeout=30_000)
    expect(page.get_by_text(f"Job {IDLE}").first).to_be_visible(timeout=30_000)
    assert f"job={IDLE}" in page.url
    visit.context.close()


def test_from_a_node_to_a_job_to_its_copy(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open("/failures", "What is measured")
    settled(visit)
    page.get_by_text("6 of 6 jobs died").first.click()
    link = page.get_by_role("link", name=str(DEAD[0]), exact=True)
    expect(link).to_be_visible(timeout=30_000)
    assert str(link.get_attribute("href")).endswith(f"job?job={DEAD[0]}")
    visit.open(f"/job?job={TIMED_OUT}", "What it rests on")
    page.get_by_role("radio", name="Copy", exact=True).click()
    page.wait_for_url(re.compile("about=copy"), timeout=30_000)
    expect(page.get_by_text("A corrected copy").first).to_be_visible(timeout=30_000)
    settled(visit)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download the copy").click()
    script = Path(download.value.path()).read_text()
    assert download.value.suggested_filename == f"retry-{TIMED_OUT}.sh"
    assert script.startswith("#!/bin/sh")
    assert "#SBATCH --time=" in script
    assert "python fit.py" in script
    assert visit.dialogs == []
    visit.context.close()
