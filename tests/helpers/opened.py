"""A page in a real browser, offline, with everything drawn that is not folded, and every complaint kept."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from trueup.core.machine import find_browser

_SHOWN = "(plot) => !plot.closest('details:not([open])')"


@contextmanager
def opened(file: Path) -> Iterator[Any]:
    from playwright import sync_api as playwright

    path = find_browser()
    if path is None or "chrom" not in path:
        pytest.fail("no Chromium here: scripts/system-packages.sh installs it")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=path, args=["--no-sandbox", "--disable-gpu"])
        page = browser.new_context(offline=True, viewport={"width": 1100, "height": 900}).new_page()
        page.complaints = []
        page.on("console", lambda m: page.complaints.append(m.text) if m.type in ("error", "warning") else None)
        page.on("pageerror", lambda error: page.complaints.append(str(error)))
        page.goto(file.as_uri())
        while page.evaluate(f"[...document.querySelectorAll('.plot:not([data-drawn=yes])')].filter({_SHOWN}).length"):
            page.wait_for_timeout(100)
        yield page
        browser.close()
