"""Pages: whole in one file, safe with any text, and drawn by a real browser that has no network."""

from __future__ import annotations

import base64
import re
import subprocess
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trueup.core.errors import TrueupError
from trueup.core.machine import find_browser
from trueup.report.page import Badge, Page
from trueup.report.traces import decimate, joint_traces
from trueup.view.film import find_ffmpeg

JOINTS = [f"{leg}_{part}_joint" for leg in ("FL", "FR", "RL", "RR") for part in ("hip", "thigh", "calf")]
NASTY = "</script><script>alert(1)</script><img src=x onerror=alert(2)> & \"'"


def signals(samples: int = 20_000) -> tuple[np.ndarray, dict[str, np.ndarray]]:
    time = np.linspace(0.0, 20.0, samples)
    target = np.sin(time[:, None] * np.linspace(1.0, 3.0, len(JOINTS)))
    return time, {"measured": 0.9 * target, "target": target}


class Reader(HTMLParser):
    """Collects tags with their attributes, and the text of the table's cells."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.words: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.words.append(data.strip())


def full_page(film: Path | None = None) -> Page:
    time, both = signals()
    page = Page("Go2 calibration", "two logs")
    page.badges(Badge("good", "trustworthy"), Badge("bad", "saturates"))
    page.facts({"Robot": "go2", "Evaluations": 45600})
    page.text("First.\n\nSecond.")
    page.table(["name", "value", "verdict"], [["delay", 0.0061, Badge("warn", "weak")], ["mass", None, ""]], "95 %")
    page.plot(joint_traces(time, both, JOINTS, "rad"), "held-out log")
    if film is not None:
        page.film(film, "walks")
    page.code("trueup train go2-velocity")
    return page


def test_page_refers_to_nothing_outside_itself(tmp_path):
    reader = Reader(full_page().write(tmp_path / "page.html").read_text())
    for tag, attributes in reader.tags:
        for name in ("src", "href", "data", "action", "poster", "srcset"):
            value = attributes.get(name)
            assert value is None or value.startswith(("data:", "#")), f"<{tag} {name}={value!r:.60}>"
    policy = next(a["content"] for tag, a in reader.tags if a.get("http-equiv") == "Content-Security-Policy")
    assert policy.startswith("default-src 'none'")
    assert "http" not in policy


def test_any_text_stays_text():
    page = Page(NASTY, NASTY)
    page.section(NASTY)
    page.text(NASTY)
    page.code(NASTY)
    page.facts({NASTY: NASTY})
    page.badges(Badge("plain", NASTY))
    page.table([NASTY], [[NASTY]], NASTY)
    reader = Reader(page.html())
    assert not {"script", "img"} & {tag for tag, _ in reader.tags}
    assert sum(word == NASTY for word in reader.words) == 12  # title and heading both show the title


def test_table_shows_numbers_to_four_digits_and_verdicts_in_colour():
    page = Page("t")
    page.table(
        ["a", "b", "c", "d"], [[0.0123456, np.int64(45600), None, Badge("bad", "no")], [1234567.0, 7, True, "text"]]
    )
    reader = Reader(page.html())
    assert reader.words.count("0.01235") == 1
    assert "1.235e+06" in reader.words
    assert "45\u2009600" in reader.words
    assert {"–", "yes", "text", "no"} <= set(reader.words)
    assert ("span", {"class": "badge bad"}) in reader.tags
    assert [a.get("class") for tag, a in reader.tags if tag == "td"][:4] == ["number", "number", "number", None]


def test_row_of_wrong_length_is_refused():
    with pytest.raises(ValueError, match="1 cells for 2 columns"):
        Page("t").table(["a", "b"], [["only one"]])


def test_page_without_plots_is_small_and_has_no_script():
    page = Page("t")
    page.text("hello")
    assert len(page.html()) < 10_000
    assert "<script" not in page.html()


def test_same_page_is_written_byte_for_byte_again():
    assert full_page().html() == full_page().html()


def test_unknown_or_missing_film_is_refused(tmp_path):
    with pytest.raises(TrueupError, match=r"\.mp4, \.gif, found '\.avi'"):
        Page("t").film(tmp_path / "x.avi")
    with pytest.raises(TrueupError, match=r"x\.mp4: the film cannot be read"):
        Page("t").film(tmp_path / "x.mp4")


def test_film_travels_inside_the_page(tmp_path):
    film = tmp_path / "x.gif"
    film.write_bytes(b"GIF89a...")
    page = Page("t")
    page.film(film, NASTY)
    image = next(a for tag, a in Reader(page.html()).tags if tag == "img")
    assert base64.b64decode(str(image["src"]).removeprefix("data:image/gif;base64,")) == b"GIF89a..."
    assert image["alt"] == NASTY


# decimation


def test_short_signals_are_left_as_they_are():
    time, values = np.arange(10.0), np.arange(10.0)
    kept = decimate(time, values, 10)
    assert kept[0] is time
    assert kept[1] is values


@pytest.mark.parametrize("samples", [101, 999, 1000, 12_345])
@pytest.mark.parametrize("max_points", [8, 50, 100])
def test_decimation_keeps_ends_peaks_and_the_limit(samples, max_points):
    rng = np.random.default_rng(samples)
    time, values = np.arange(float(samples)), rng.normal(size=samples)
    values[samples // 3], values[samples // 2] = 50.0, -60.0  # single samples that a stride would miss
    short_time, short = decimate(time, values, max_points)
    assert len(short) <= max_points
    assert short_time[[0, -1]].tolist() == [0.0, samples - 1.0]
    assert np.all(np.diff(short_time) > 0)
    assert short.tolist() == values[short_time.astype(int)].tolist()
    assert 50.0 in short
    assert -60.0 in short


def test_decimation_keeps_the_envelope_of_every_slice():
    """Against a plain loop: no kept neighbourhood hides a value outside what is kept around it."""
    values = np.random.default_rng(0).normal(size=5000)
    time, short = decimate(np.arange(5000.0), values, 200)
    width = -(-4998 // 99)
    for start in range(1, 4999, width):
        part = values[start : min(start + width, 4999)]
        kept = short[(time >= start) & (time < start + width)]
        assert part.min() in kept
        assert part.max() in kept


def test_gaps_stay_gaps():
    values = np.sin(np.arange(10_000.0))
    values[5000] = np.nan
    values[7000:8000] = np.nan
    time, short = decimate(np.arange(10_000.0), values, 300)
    assert len(short) <= 300
    assert np.isnan(short[time == 5000]).all()
    assert (time == 5000).any()
    assert np.isnan(short[(time > 7040) & (time < 7960)]).all()
    assert np.isfinite(short[(time > 8100)]).all()


# figures


def test_every_joint_has_a_row_and_every_signal_one_legend_entry():
    time, both = signals(100)
    figure = joint_traces(time, both, JOINTS, "rad")
    assert len(figure.data) == 2 * len(JOINTS)
    assert [trace.name for trace in figure.data if trace.showlegend] == ["measured", "target"]
    assert len({trace.yaxis for trace in figure.data}) == len(JOINTS)
    assert {trace.xaxis for trace in figure.data} == {None}  # all on the one time axis
    assert figure.data[5].y == pytest.approx(both["target"][:, 2].astype(np.float32))
    labels = [note.text for note in figure.layout.annotations]
    assert labels == [f"<b>{name}</b>" for name in JOINTS]


def test_signal_of_wrong_shape_is_named():
    with pytest.raises(TrueupError, match=r"'target' must have shape \(5, 2\), found \(5, 3\)"):
        joint_traces(np.arange(5.0), {"measured": np.zeros((5, 2)), "target": np.zeros((5, 3))}, ["a", "b"], "rad")


# a real browser


@pytest.fixture(scope="module")
def chromium() -> Iterator[Any]:
    from playwright import sync_api as playwright

    path = find_browser()
    if path is None or "chrom" not in path:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    flags = "--no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking"
    more = "--disable-component-update --disable-sync"
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=[*flags.split(), *more.split()])
        yield browser
        browser.close()


@pytest.fixture(scope="module")
def page_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("page")
    source = ["-f", "lavfi", "-i", "testsrc=size=64x48:rate=10:duration=1", "-pix_fmt", "yuv420p"]
    subprocess.run([find_ffmpeg(), "-loglevel", "error", *source, str(folder / "film.mp4")], check=True)
    return full_page(folder / "film.mp4").write(folder / "page.html")


class Opened:
    """The page in a browser without network; everything it complains about is kept."""

    def __init__(self, browser: Any, file: Path, **options: Any) -> None:
        self.context = browser.new_context(offline=True, **options)
        self.tab = self.context.new_page()
        self.complaints: list[str] = []
        self.requests: list[str] = []
        self.tab.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        self.tab.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.tab.on("request", lambda request: self.requests.append(request.url))
        self.tab.goto(file.as_uri())
        self.tab.wait_for_selector(".plot[data-drawn=yes]", timeout=60_000)

    def time_range(self) -> list[float]:
        return list(self.tab.evaluate("document.querySelector('.plot').layout.xaxis.range"))


@pytest.fixture
def opened(chromium: Any, page_file: Path) -> Iterator[Opened]:
    opened = Opened(chromium, page_file, viewport={"width": 1100, "height": 900})
    yield opened
    opened.context.close()


@pytest.mark.medium
def test_browser_without_network_draws_every_joint(opened, page_file):
    lines = opened.tab.evaluate(
        "[...document.querySelectorAll('.plot .scatterlayer .trace path.js-line')]"
        ".map((line) => { const box = line.getBoundingClientRect(); return [box.width, box.height]; })"
    )
    assert len(lines) == 2 * len(JOINTS)
    assert all(width > 500 and height > 50 for width, height in lines)
    text = opened.tab.evaluate("document.querySelector('.plot').textContent")
    assert all(name in text for name in [*JOINTS, "measured", "target", "time (s)", "rad"])
    assert opened.complaints == []
    assert all(re.match(r"file:.*page\.html$|data:|blob:", url) for url in opened.requests)


@pytest.mark.medium
def test_dragging_zooms_all_rows_and_double_click_returns(opened):
    before = opened.time_range()
    rows = opened.tab.query_selector_all(".plot .nsewdrag")
    assert len(rows) == len(JOINTS)
    rows[4].scroll_into_view_if_needed()
    box = rows[4].bounding_box()
    middle = box["y"] + box["height"] / 2
    opened.tab.mouse.move(box["x"] + 0.25 * box["width"], middle)
    opened.tab.mouse.down()
    opened.tab.mouse.move(box["x"] + 0.5 * box["width"], middle, steps=8)
    opened.tab.mouse.up()
    opened.tab.wait_for_function("document.querySelector('.plot').layout.xaxis.range[0] > 4")
    low, high = opened.time_range()
    span = before[1] - before[0]
    assert low == pytest.approx(before[0] + 0.25 * span, abs=0.02 * span)
    assert high == pytest.approx(before[0] + 0.50 * span, abs=0.02 * span)
    opened.tab.mouse.dblclick(box["x"] + 0.5 * box["width"], middle)
    opened.tab.wait_for_function("document.querySelector('.plot').layout.xaxis.range[0] < 1")
    assert opened.time_range() == pytest.approx(before)
    assert opened.complaints == []


@pytest.mark.medium
def test_hovering_shows_values_with_their_unit(opened):
    row = opened.tab.query_selector_all(".plot .nsewdrag")[1]
    row.scroll_into_view_if_needed()
    box = row.bounding_box()
    opened.tab.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 0.5 * box["height"], steps=3)
    opened.tab.wait_for_selector(".plot .hoverlayer .legend")
    hover = opened.tab.evaluate("document.querySelector('.plot .hoverlayer').textContent")
    assert re.search(r"measured : [-−]?[\d.]+ rad", hover), hover
    assert re.search(r"target : [-−]?[\d.]+ rad", hover), hover


@pytest.mark.medium
def test_film_plays_in_the_page(opened):
    opened.tab.wait_for_function("document.querySelector('video').readyState >= 2")
    assert opened.tab.evaluate("document.querySelector('video').videoWidth") == 64
    assert opened.tab.evaluate("document.querySelector('video').duration") == pytest.approx(1.0, abs=0.05)


@pytest.mark.medium
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_words_of_page_and_plot_stand_out_in_light_and_dark(chromium, page_file, scheme):
    shown = Opened(chromium, page_file, color_scheme=scheme)
    card, ink, plot_ink = shown.tab.evaluate(
        "[getComputedStyle(document.querySelector('figure')).backgroundColor,"
        " getComputedStyle(document.body).color,"
        " getComputedStyle(document.querySelector('.plot .xtick text')).fill]"
    )
    shown.context.close()
    assert contrast(card, ink) > 7  # WCAG AAA
    assert contrast(card, plot_ink) > 7
    assert (luminance(card) > 0.5) == (scheme == "light")


@pytest.mark.medium
def test_page_fits_a_phone(chromium, page_file):
    shown = Opened(chromium, page_file, viewport={"width": 390, "height": 800}, is_mobile=True, has_touch=True)
    width = shown.tab.evaluate("document.documentElement.scrollWidth")
    shown.context.close()
    assert width <= 390
    assert shown.complaints == []


def luminance(colour: str) -> float:
    """Relative luminance of `rgb(r, g, b)` as WCAG 2 defines it."""
    channels = np.array([int(part) for part in re.findall(r"\d+", colour)[:3]]) / 255
    linear = np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)
    return float(linear @ [0.2126, 0.7152, 0.0722])


def contrast(one: str, other: str) -> float:
    low, high = sorted([luminance(one), luminance(other)])
    return (high + 0.05) / (low + 0.05)
