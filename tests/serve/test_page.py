"""The page in a real browser: Debian's chromium, by Playwright. Skipped where there is none."""

from __future__ import annotations

import re
import shutil
import signal
import subprocess
import sys
from contextlib import contextmanager

import pytest

from regretless.serve import Client, Label, Predict
from regretless.serve.api import PAGE, PAGE_HEADERS
from regretless.serve.keys import KeyFile

playwright = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: pip install playwright")

pytestmark = pytest.mark.services

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
NASTY = "<img src=x onerror=alert(1)>"
SERVER = f"""
import sys
from pathlib import Path
from regretless.serve import Label, ModelSpec, Predict, Service
from regretless.serve.server import run
log, keys = sys.argv[1:]
with Service(log) as service:
    for name in ("default", "second"):
        recipe = "OnlineLogisticRegression(effort='low')"
        service.add_model(ModelSpec.of(recipe, ["a", "b"], ["no", {NASTY!r}], name=name))
        for at in range(0, 400, 40):
            ids = range(at, at + 40)
            service.answer([Predict({{"a": i % 7 - 3.0, "b": 1.0}}, f"r{{i}}") for i in ids], name)
            service.answer([Label(f"r{{i}}", "no" if i % 7 > 3 else {NASTY!r}) for i in ids], name)
    run(service, port=0, keys=Path(keys) if keys else None, started=lambda address: print(address, flush=True))
"""


@contextmanager
def serving(log, keys=""):
    """The address of a service with two models, in a process of its own."""
    command = [sys.executable, "-c", SERVER, str(log), str(keys)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    try:
        yield process.stdout.readline().strip()
    finally:
        process.send_signal(signal.SIGTERM)
        assert process.wait(30) == 0


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("page") / "log.db") as found:
        yield found


@pytest.fixture(scope="module")
def browser():
    if CHROMIUM is None:
        pytest.skip("chromium is not installed: apt-get install chromium")
    with playwright.sync_playwright() as found:
        started = found.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield started
        started.close()


@pytest.fixture
def visit(browser):
    """Opens the page, and fails if it reports an error or asks another host."""
    problems, contexts = [], []

    def open_page(address, **options):
        context = browser.new_context(**options)
        contexts.append(context)
        page = context.new_page()
        page.on("pageerror", lambda error: problems.append(str(error)))
        page.on("console", lambda said: problems.append(said.text) if said.type == "error" else None)
        page.on("dialog", lambda dialog: (problems.append("a dialog"), dialog.dismiss()))
        page.on(
            "request", lambda asked: None if asked.url.startswith((address, "data:,")) else problems.append(asked.url)
        )
        page.goto(address)
        return page

    open_page.problems = problems
    yield open_page
    for context in contexts:
        context.close()
    assert problems == []


def live(page):
    page.wait_for_selector("#status.live", timeout=30_000)
    page.wait_for_selector("#charts .uplot")
    return page


def row(page, title):
    return page.locator("#models tbody tr", has=page.get_by_role("rowheader", name=title, exact=True))


def test_models_side_by_side(visit, address):
    page = live(visit(address))
    playwright.expect(page.locator("#models thead label")).to_have_text(["default", "second"])
    assert row(page, "Labels learned").locator("td").all_inner_texts() == ["400", "400"]
    for title in ("Log loss", "Log loss of the baseline", "Error", "Regret, at most", "– certificate", "Bound"):
        assert all(float(text.split()[0]) > 0.0 for text in row(page, title).locator("td").all_inner_texts()), title
    titles = [text for text in page.locator(".chart h2").all_inner_texts() if text]
    assert titles == [
        "Log loss so far",
        "Log loss lately",
        "Error",
        "Regret of the served forecasts, at most",
        "Reliability",
        "Class shares",
        "Throughput",
        "Latency",
    ]
    legend = page.locator(".chart", has_text="Log loss so far").locator(".legend span")
    assert legend.count() == 4
    page.get_by_label("show second").uncheck()
    playwright.expect(legend).to_have_count(2)


def test_charts_are_drawn_and_tell_values(visit, address):
    page = live(visit(address))
    drawn = """canvas => {
      const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
      return new Set(new Uint32Array(pixels.buffer)).size;
    }"""
    canvases = page.locator("#charts .chart:not([hidden]) canvas")
    assert canvases.count() >= 6
    for i in range(6):
        assert canvases.nth(i).evaluate(drawn) > 5
    page.locator("#charts .u-over").first.hover()
    playwright.expect(page.locator(".chart .legend b").first).to_have_text(re.compile(r"^ 0\.\d+$"))


def test_what_happens_is_shown_at_once(visit, address):
    page = live(visit(address))
    with Client(address) as client:
        client.predict({"a": 1.0, "b": 2.0}, id="the-newest")
        newest = page.locator("#last tbody tr", has_text="the-newest")
        newest.get_by_text("waits").wait_for()
        client.label("the-newest", "no")
        newest.get_by_text("no", exact=False).last.wait_for()
        playwright.expect(row(page, "Labels learned").locator("td").first).to_have_text("401")
        client.bulk([Predict({"a": 1.0, "b": 2.0}, f"more{i}") for i in range(20)])
        client.bulk([Label(f"more{i}", "no") for i in range(20)])
        playwright.expect(row(page, "Labels learned").locator("td").first).to_have_text("421")


def test_texts_of_users_are_texts(visit, address):
    page = visit(address)
    live(page)
    with Client(address, model="second") as client:
        client.predict({"a": 1.0, "b": 2.0}, id=NASTY)
    page.locator("#chosen").select_option("second")
    page.locator("#last td.id", has_text=NASTY).wait_for()
    assert page.locator(".chart", has_text="Class shares").locator(".legend").inner_text().count(NASTY) == 1
    assert page.locator("img").count() == 0


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_a_phone(visit, address, scheme):
    page = live(visit(address, viewport={"width": 390, "height": 844}, color_scheme=scheme))
    assert page.evaluate("document.documentElement.scrollWidth") <= 390
    red = page.evaluate("Number(getComputedStyle(document.body).backgroundColor.match(/\\d+/)[0])")
    assert (red > 200) == (scheme == "light")


def test_it_asks_for_a_key(visit, browser, tmp_path):
    key = KeyFile(tmp_path / "keys.json").add("reader", ["read"])
    with serving(tmp_path / "log.db", tmp_path / "keys.json") as address:
        page = visit(address)
        page.locator("#key").fill(key)
        page.get_by_role("button", name="Show").click()
        live(page)
        page.reload()
        live(page)  # the key is remembered
    visit.problems.clear()  # the browser reports the 401 as an error


def test_a_lost_connection_is_told(visit, tmp_path):
    with serving(tmp_path / "log.db") as address:
        page = live(visit(address))
    page.wait_for_selector("#status.lost")
    visit.problems.clear()  # so is a lost connection


def test_no_other_host_is_allowed():
    policy = PAGE_HEADERS["content-security-policy"]
    assert "default-src 'none'" in policy and "'unsafe" not in policy and "http" not in policy
    for file in PAGE.iterdir():
        if file.suffix in (".html", ".js", ".css") and not file.name.startswith("uPlot"):
            text = file.read_text()
            assert "http" not in text and "innerHTML" not in text, file.name
    assert "MIT" in (PAGE / "uPlot-LICENSE.txt").read_text()
