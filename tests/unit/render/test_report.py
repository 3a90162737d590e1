"""The report: structure, escaping of hostile names, pictures that show something, and what it says where data lack."""

from __future__ import annotations

import base64
import io
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from queuecast.models.bootstrap import measure_all_with_intervals
from queuecast.models.measures_summary import ReportData, Shown, summarise
from queuecast.models.waits import KNOTS_S, Waits
from queuecast.render import report_plots
from queuecast.render.report import write_report
from queuecast.render.report_blocks import Table, Text, Value, as_markdown
from queuecast.render.report_tables import Figures, comparison

HOSTILE = (
    "<script>alert(1)</script>",
    "\"><img src=x onerror='alert(1)'>",
    "$\\frac{1}{",
    "a|b`c`*d*_e_",
    "[x](javascript:alert(1))",
    "\x1b[31mred\n# head",
    "{n} %s %(n)s",
    "作业",
)
TRACE = "<b>demo</b> & co"
PNG = b"\x89PNG\r\n\x1a\n"


def evaluation() -> tuple[list[dict[str, Any]], Shown]:
    """Two models on a made-up cluster of hostile partitions: 120 days, waits from at once to weeks, a tenth cancelled."""
    rng = np.random.default_rng(4)
    count = 4000
    asked = 1.7e9 + np.sort(rng.uniform(0, 120 * 86400, count))
    size = rng.choice([0, 1, 2, 11, 12, 13, 17], count)
    middle = 7 + np.sin((asked - 1.7e9) / 86400 / 15) + 0.3 * size / 4 + rng.normal(0, 1, count)
    at_once = 1 / (1 + np.exp(middle - 6))
    wait = np.where(rng.uniform(size=count) < at_once, 0.0, np.round(np.expm1(np.maximum(0.7, middle + 0.8 * rng.logistic(size=count)))))
    started = rng.uniform(size=count) > 0.1
    wait = np.minimum(np.where(started, wait, wait * rng.uniform(size=count)), 5e6)

    def told(shift: float, scale: float) -> Waits:
        cdf = 1 / (1 + np.exp(-(np.log1p(KNOTS_S) - middle[:, None] - shift) / scale))
        return Waits(at_once[:, None] + (1 - at_once[:, None]) * (cdf - cdf[:, :1]) / (1 - cdf[:, :1]) * 0.99, KNOTS_S)

    models = {"forest": told(0, 0.8), "<i>like</i> jobs": told(1.5, 0.4)}
    figures = []
    for part, rows in {
        "all": np.ones(count, bool),
        "gpu": size > 10,
        "pending": np.arange(count) % 2 == 0,
        "night|shift": size == 0,
    }.items():
        for model, waits in models.items():
            found = measure_all_with_intervals(Waits(waits.cdf[rows], KNOTS_S), wait[rows], started[rows], asked[rows], draws=20)
            figures += [
                {"trace": TRACE, "slice": part, "model": model, "measure": m, "value": f.value, "low": f.low, "high": f.high}
                for m, f in found.items()
            ]
    partition = np.array(HOSTILE)[rng.integers(0, len(HOSTILE), count)]
    groups = {"partition": partition, "size": size}
    return figures, summarise(models["forest"], wait, started, asked, groups, trace=TRACE, slice="all", model="forest", minimum=50)


class Page(HTMLParser):
    """Elements with their attributes, and the text between them."""

    def __init__(self, text: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data)

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.elements if name == tag]


@pytest.fixture(scope="module")
def evaluated() -> tuple[list[dict[str, Any]], Shown]:
    return evaluation()


@pytest.fixture(scope="module")
def written(evaluated: tuple[list[dict[str, Any]], Shown], tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("out") / "new" / "report"
    figures, shown = evaluated
    paths = write_report(figures, ReportData("", [("training <window>", "60 days")], [shown]), folder)
    assert paths == [folder / "report.html", folder / "report.md"]
    return folder


@pytest.fixture(scope="module")
def page(written: Path) -> Page:
    return Page((written / "report.html").read_text(encoding="utf-8"))


def test_every_section_is_there(page: Page) -> None:
    text = " ".join(page.words)
    for section in (
        "How well waits were predicted",
        "What was asked, and how it was measured",
        "Models compared",
        "Intervals: do they hold",
        "Upper bounds",
        "Chances to start within 1, 4 and 24 hours",
        "Where waits fell in their distributions",
        "Predicted median and the wait that came",
        "How wide the intervals are",
        "Over time",
        "What held, by partition",
        "What held, by size",
        "What held, by month",
    ):
        assert section in text
    for told in (
        "origin rolls forward",
        "all jobs",
        "GPU jobs",
        "asked while pending",
        "night|shift",
        "training <window>",
        "GPUs: 3-4",
        "2023-12",
    ):
        assert told in text
    assert len(page.all("table")) == 12


def test_names_are_text_and_nothing_else(page: Page) -> None:
    tags = {name for name, _ in page.elements}
    assert tags <= set("html head meta title style body h1 h2 h3 p div table caption thead tbody tr th td small img".split())
    for name, attributes in page.elements:
        assert not [a for a in attributes if a.startswith("on")], name
        assert set(attributes) <= {"lang", "charset", "http-equiv", "content", "name", "class", "scope", "colspan", "alt", "src"}
    text = "".join(page.words)
    for name in HOSTILE:
        shown = name.replace("\x1b", "\\x1b").replace("\n", "\\n")
        assert shown in text
    assert "\x1b" not in text
    assert "<b>demo</b> & co: forest" in text
    assert any("default-src 'none'" in (m.get("content") or "") for m in page.all("meta"))


def test_pictures_show_something(page: Page, written: Path) -> None:
    from matplotlib.image import imread

    files = sorted((written / "report_plots").iterdir())
    pictures = [base64.b64decode((p["src"] or "").removeprefix("data:image/png;base64,")) for p in page.all("img")]
    assert len(pictures) == len(files) == 8
    assert {f.read_bytes() for f in files} == set(pictures)
    for picture in pictures:
        assert picture.startswith(PNG)
        pixels = imread(io.BytesIO(picture))
        assert pixels.shape[1] > 600
        drawn = (pixels[:, :, :3] < 0.95).any(axis=2)
        assert drawn.mean() > 0.01
        assert drawn.any(axis=0).mean() > 0.5, "over most of the width"
    assert all(p["alt"] for p in page.all("img"))


def test_markdown_holds_the_same_tables_and_no_markup_of_others(written: Path) -> None:
    text = (written / "report.md").read_text(encoding="utf-8")
    tables = re.findall(r"(?:^\|.*\n)+", text, re.MULTILINE)
    assert len(tables) == 12
    for table in tables:
        widths = {len(re.findall(r"(?<!\\)\|", line)) for line in table.splitlines()}
        assert len(widths) == 1, table[:300]
    pictures = re.findall(r"(?<!\\)!\[[^\]]*\]\(([^)]*)\)", text)
    assert len(pictures) == 8
    assert all((written / p).stat().st_size > 5000 for p in pictures)
    assert not re.search(r"(?<!\\)<[a-zA-Z/]", text)
    assert not re.search(r"(?<![\\!])\[x\]", text.replace("\\]", "]"))
    assert "\n# head" not in text
    assert "\\[x\\](javascript:alert(1))" in text


def test_the_best_of_a_slice_stands_out_and_claims_have_no_best(written: Path) -> None:
    text = (written / "report.html").read_text(encoding="utf-8")
    rows = re.findall(r"<tr><td>forest</td>(.*?)</tr>", text)
    assert 'class="n best">' in rows[0]
    held = re.findall(r'<td class="n( best)?">\d+\.\d %<small>', rows[0])
    assert held[1] == "", "80 % held is no contest"


def test_gpu_jobs_have_a_line_even_where_there_are_none() -> None:
    rows = [{"trace": "t", "slice": "all", "model": "m", "measure": "medae_s", "value": 100.0}]
    table = comparison(Figures(rows), "t", ("medae_s", "brier_4h"))
    assert table.rows == [["all jobs"], ["m", Value("–"), Value("100 s"), Value("–")], ["GPU jobs: none among the cases of this trace"]]


def test_units_intervals_and_unknown_values() -> None:
    rows: list[dict[str, Any]] = [
        {"trace": "t", "slice": "gpu", "model": "m", "measure": "cases", "value": 12345},
        {"trace": "t", "slice": "gpu", "model": "m", "measure": "medae_s", "value": 7200.0, "low": 3600, "high": 10800},
        {"trace": "t", "slice": "gpu", "model": "m", "measure": "coverage_80", "value": 0.8, "low": 0.75, "high": 1.0},
        {"trace": "t", "slice": "gpu", "model": "m", "measure": "mse_log10", "value": float("nan"), "low": None, "high": None},
        {"trace": "t", "slice": "gpu", "model": "m", "measure": "crps_log10", "value": 0.3, "low": float("nan"), "high": 0.4},
    ]
    table = comparison(Figures(rows), "t", ("medae_s", "coverage_80", "mse_log10", "crps_log10"))
    assert table.rows[1] == ["m", Value("12,345"), Value("2 h", "1 h – 3 h"), Value("80.0 %", "75.0 – 100.0 %"), Value("–"), Value("0.300")]


def test_empty_states_say_what_to_do(tmp_path: Path) -> None:
    write_report([], ReportData("Nothing yet"), tmp_path)
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert text.startswith("# Nothing yet")
    assert "> There are no figures yet. Evaluate" in text
    assert "> No predictions were kept to draw. Summarise" in text
    assert not (tmp_path / "report_plots").exists()
    waits = Waits(np.full((5, 96), 0.5), KNOTS_S)
    none = summarise(waits, np.ones(5), np.zeros(5, bool), np.full(5, 1.7e9), {}, trace="t", slice="all", model="m")
    few = summarise(waits, np.ones(5), np.ones(5, bool), np.full(5, 1.7e9), {}, trace="t", slice="all", model="m")
    write_report([], ReportData("x", [], [none, few]), tmp_path, ("md",))
    text = (tmp_path / "report.md").read_text(encoding="utf-8")
    assert "None of the 5 cases has a known start" in text
    assert text.count("Too few started jobs to tell. Evaluate a longer stretch") == 2
    assert (tmp_path / "report_plots/02-pit.png").read_bytes().startswith(PNG)


def test_without_matplotlib_there_are_no_pictures(
    evaluated: tuple[list[dict[str, Any]], Shown], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(report_plots, "available", lambda: False)
    figures, shown = evaluated
    write_report(figures, ReportData("x", [], [shown]), tmp_path)
    page = Page((tmp_path / "report.html").read_text(encoding="utf-8"))
    assert page.all("img") == []
    assert "pip install 'queuecast[plot]'" in "".join(page.words)
    assert "What held, by partition" in "".join(page.words)


def test_wrong_input_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="pdf"):
        write_report([], ReportData("x"), tmp_path, ("pdf",))
    for wrong in ({"trace": "t"}, {"trace": "t", "slice": "all", "model": "m", "measure": "medae_s", "value": "12"}):
        with pytest.raises(ValueError, match="a figure needs"):
            write_report([wrong], ReportData("x"), tmp_path)
    assert list(tmp_path.iterdir()) == []


def test_one_format_alone(tmp_path: Path) -> None:
    assert write_report([], ReportData("x"), tmp_path, ("html",)) == [tmp_path / "report.html"]
    assert [p.name for p in tmp_path.iterdir()] == ["report.html"]


@pytest.mark.parametrize("start", ["# no heading", "1. no list", "- no list", "+ no list", "12) no list", "=== no underline", "> no quote"])
def test_no_text_starts_a_markdown_block(start: str) -> None:
    line = as_markdown([Text(start)], "plots")
    assert not re.match(r"\s*(#|\d+[.)]\s|[-+=>])", line)
    assert re.match(r"1\.5", as_markdown([Text("1.5 h")], "plots"))


def test_a_table_without_rows() -> None:
    assert as_markdown([Table(["a", "b"], [])], "plots") == "| a | b |\n|---|---|\n"


def test_nothing_heavy_until_a_picture_is_drawn() -> None:
    code = "import sys, queuecast.render.report; print([m for m in ('matplotlib', 'pandas', 'scipy', 'sklearn') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"
