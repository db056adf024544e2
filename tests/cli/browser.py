"""Drives Debian's chromium without a window, by Playwright."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from playwright.sync_api import Locator, Page, expect, sync_playwright

CHROMIUM = "/usr/bin/chromium"
PATIENCE_MS = 60_000
expect.set_options(timeout=PATIENCE_MS)  # a slow machine is no failure
WHY = "needs chromium (apt-get install chromium)"


@contextmanager
def browser() -> Iterator[Callable[..., Page]]:
    """Yields a function that opens pages, each in a context of its own."""
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])

        def page(**options: Any) -> Page:
            context = started.new_context(**{"viewport": {"width": 1400, "height": 900}, **options})
            made = context.new_page()
            made.set_default_timeout(PATIENCE_MS)
            return made

        try:
            yield page
        finally:
            started.close()


def here() -> bool:
    return Path(CHROMIUM).exists()


def picture(page: Page, name: str) -> None:
    """Saves a screenshot in the directory VNET_PICTURES, if it is set."""
    if at := os.environ.get("VNET_PICTURES"):
        page.screenshot(path=f"{at}/live-{name}.png")


def comes(place: Locator, text: str | re.Pattern[str]) -> None:
    """Waits until the element contains the text."""
    expect(place).to_contain_text(text)
