"""The task form and what would start sooner, in a real browser: drawn whole, wide and narrow, and a choice put into the request."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlencode

import pytest
from browsing import ROOT, SIZES, Visit, browser, served, shots
from playwright.sync_api import Browser, expect
from test_browser import PAGES

pytestmark = pytest.mark.browser
__all__ = ["browser", "shots"]

SERVE = """
import sys
sys.path[:0] = [{root!r}, {tests!r}]
import queuecast.answers.alternatives as alternatives
from madealternatives import stand_in
alternatives.alternatives = stand_in
from streamlit.web import cli
sys.argv = ["streamlit", "run", {app!r}, *sys.argv[1:]]
cli.main()
"""


@pytest.fixture(scope="module")
def site(campus: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Address of the app, with made-up alternatives instead of played futures."""
    code = SERVE.format(root=str(ROOT), tests=str(Path(__file__).parent), app=str(ROOT / "app" / "main.py"))
    with served(["-c", code], campus, tmp_path_factory.mktemp("home")) as address:
        yield address


TASK = "/?" + urlencode({"model": "7b", "mode": "full", "precision": "bf16", "batch": "8", "seq": "4096", "hours": "20", "on": "a100:8"})


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_the_choices_are_shown_whole(browser: Browser, site: str, shots: Path, size: str, scheme: str) -> None:
    visit = Visit(browser, site, size, scheme)
    page = visit.open(TASK, "What is assumed")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("recommended").first).to_be_visible()
    visit.shoot(shots / f"app-task-{size}.png")
    assert (shots / f"app-task-{size}.png").stat().st_size > 20_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()


def test_from_the_form_to_a_choice_to_its_wait(browser: Browser, site: str) -> None:
    visit = Visit(browser, site, "wide")
    page = visit.page
    page.goto(site)
    page.get_by_role("radio", name="My task").click()
    model = page.get_by_role("combobox", name="Model size")
    expect(model).to_be_visible(timeout=30_000)
    model.fill("1.3b")
    model.press("Enter")
    page.get_by_label("Hours", exact=True).fill("10")
    page.get_by_role("button", name="Ask").click()
    expect(page.get_by_text("OPT-1.3B").first).to_be_visible(timeout=30_000)
    assert "model=1.3b" in page.url
    assert "hours=10" in page.url
    page.get_by_role("button", name="Use this request").first.click()
    expect(page.get_by_text("8 in 10 like this start").first).to_be_visible(timeout=30_000)
    assert "gpu_type=a100" in page.url
    assert "model=" not in page.url
    expect(page.get_by_label("GPUs, whole job")).to_be_visible()
    page.get_by_role("radio", name="My task").click()
    expect(page.get_by_role("combobox", name="Model size")).to_have_value("1.3b", timeout=30_000)
    assert visit.dialogs == []
    visit.context.close()


@pytest.mark.parametrize(("size", "scheme"), [("wide", "light"), ("narrow", "dark")])
def test_what_would_start_sooner_is_looked_for_on_a_press(browser: Browser, site: str, shots: Path, size: str, scheme: str) -> None:
    visit = Visit(browser, site, size, scheme)
    page = visit.open(*PAGES["wait"])
    expect(page.get_by_text("What this rests on")).to_have_count(0)
    page.get_by_role("button", name="Look for it").click()
    expect(page.get_by_text("What this rests on").first).to_be_visible(timeout=30_000)
    expect(page.get_by_text("partition debug: likely sooner").first).to_be_visible()
    assert "alternatives=1" in page.url
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_role("button", name="Look for it")).to_have_count(0)
    visit.shoot(shots / f"app-alternatives-{size}.png")
    assert (shots / f"app-alternatives-{size}.png").stat().st_size > 20_000
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    page.get_by_role("button", name="Use this request").first.click()
    expect(page.get_by_text("partition debug").first).to_be_visible(timeout=30_000)
    page.wait_for_url("**partition=debug**", timeout=30_000)
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()
