"""The track record in a real browser: drawn whole, wide and narrow, with nothing run that people wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from browsing import ROOT, SIZES, Visit, browser, served, shots
from playwright.sync_api import Browser, expect

pytestmark = pytest.mark.browser
__all__ = ["browser", "shots"]

SERVE = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
import queuecast.answers.forecast as forecast
from madelake import NEWEST
from queuecast.models.saving import Model
from test_track_page import made_record
model = Model(NEWEST, NEWEST)
model.records = {{"campus": made_record()}}
forecast.load_model = lambda folder: model
from streamlit.web import cli
sys.argv = ["streamlit", "run", {app!r}, *sys.argv[1:]]
cli.main()
"""


@pytest.fixture(scope="module")
def site(campus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app on a lake whose model keeps made-up answers."""
    code = SERVE.format(root=str(ROOT), tests=str(Path(__file__).parent), app=str(ROOT / "app" / "main.py"))
    with served(["-c", code], campus, tmp_path_factory.mktemp("home")) as address:
        yield address


@pytest.mark.parametrize("size", list(SIZES))
def test_the_page_is_shown_whole(browser: Browser, site: str, shots: Path, size: str) -> None:
    visit = Visit(browser, site, size)
    page = visit.open("/track", "By partition")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_test_id("stVegaLiteChart")).to_have_count(6)
    visit.shoot(shots / f"app-track-{size}.png")
    assert (shots / f"app-track-{size}.png").stat().st_size > 20_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()


def test_the_menu_filters_and_the_download(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.open("/queue", "GPUs by type")
    page.get_by_role("link", name="Track record").click()
    expect(page.get_by_text("in the last 30 days").first).to_be_visible(timeout=30_000)
    page.get_by_role("radio", name="7", exact=True).click()
    expect(page.get_by_text("in the last 7 days").first).to_be_visible(timeout=30_000)
    assert "days=7" in page.url
    page.get_by_label("Partition").first.click()
    hostile = page.get_by_role("option").filter(has_text="<script>alert(1)</script>")
    expect(hostile).to_have_count(1, timeout=30_000)
    hostile.click()
    # The text of the page before looks the same: the link tells that the choice has arrived.
    page.wait_for_url(re.compile("partition="), timeout=30_000)
    page.get_by_role("radio", name="30", exact=True).click()
    page.wait_for_url(re.compile("^(?!.*days=)"), timeout=30_000)
    # The number is that of this partition: the page before, of all of them, offers another file.
    expect(page.get_by_text("Of 188 answers in the last 30 days").first).to_be_visible(timeout=30_000)
    # The button comes last: until the run has ended it is that of a run before.
    expect(page.get_by_test_id("stApp")).to_have_attribute("data-test-script-state", "notRunning", timeout=30_000)
    with page.expect_download() as download:
        page.get_by_role("button", name="Download CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert len(rows) == 2
    assert "<script>" in rows[1]
    assert visit.dialogs == []
    assert visit.elsewhere == []
    visit.context.close()
