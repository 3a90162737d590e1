"""The page of one job in a real browser: whole, and hostile names stay text."""

from __future__ import annotations

from pathlib import Path

import pytest
from madelake import HOSTILE_JOB, PENDING
from playwright.sync_api import Browser, expect
from test_browser import SIZES, Visit, browser, shots, site  # noqa: F401  # fixtures

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("size", list(SIZES))
@pytest.mark.parametrize("job", [PENDING, HOSTILE_JOB])
def test_the_page_is_whole_and_runs_nothing(browser: Browser, site: str, shots: Path, job: int, size: str) -> None:  # noqa: F811
    visit = Visit(browser, site, size)
    page = visit.open(f"/job?job={job}", "What happened so far")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    visit.shoot(shots / f"app-why-{job}-{size}.png")
    assert page.evaluate("() => document.documentElement.scrollWidth") <= SIZES[size][0]
    assert visit.elsewhere == []
    assert visit.dialogs == []
    visit.context.close()
