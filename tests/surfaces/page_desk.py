"""The page in a real browser, over a real server on loopback, and what it did there.

`Watched` keeps every request, error, violated policy and dialog of a page, so that a test can say
that there were none.
"""

from __future__ import annotations

import os
import shutil
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from time import sleep
from typing import Any

import pytest
import uvicorn
from playwright.sync_api import Browser, Page, Playwright, sync_playwright

from anaphora import Memory
from anaphora.testing import server_app


def _browser() -> Path | None:
    """A Chromium of this machine: the one that `CHROMIUM` names, or what is on the path."""
    mac = "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome"
    names = ("chromium", "chromium-browser", "google-chrome", "chrome", mac)
    found = os.environ.get("CHROMIUM") or next(filter(None, map(shutil.which, names)), None)
    return Path(found) if found else None


CHROMIUM = _browser()
AXE = Path(__file__).parent / "axe" / "axe.min.js"
ARGUMENTS = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]
# Everything has come that was asked for.
SETTLED = "main:has(h1):not(:has(.waiting)):not(:has([aria-busy]))"
_VIOLATIONS = """
window.violations = [];
addEventListener("securitypolicyviolation", (e) => {
  violations.push(`${e.violatedDirective}: ${e.blockedURI}`);
});
"""


@contextmanager
def chromium() -> Iterator[Browser]:
    """The browser; without one the test is skipped, but where everything has to run it fails."""
    if CHROMIUM is None:
        why = "there is no browser: install chromium, or set CHROMIUM to one"
        if os.environ.get("CI") == "true":
            pytest.fail(why)
        pytest.skip(why)
    driver: Playwright
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def serving(memory: Memory, options: Mapping[str, Any] | None = None) -> Iterator[str]:
    """The URL of a server over `memory`, in a thread."""
    app = server_app(memory, **(options or {}))
    config = uvicorn.Config(app, host="127.0.0.1", port=0, log_level="critical", access_log=False)
    server = uvicorn.Server(config)
    socket = config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    try:
        while not server.started and thread.is_alive():
            sleep(0.005)
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(30)
        socket.close()


@dataclass
class Watched:
    """A page and what it did."""

    page: Page
    url: str
    requests: list[str] = field(default_factory=list)
    errors: list[str] = field(default_factory=list)
    dialogs: list[str] = field(default_factory=list)

    def go(self, view: str, *, wait: str = SETTLED) -> Page:
        """Go to a view by its hash and wait until it is there."""
        target = f"{self.url}#/{view}"
        if self.page.url.partition("#")[0] == self.url:
            self.page.evaluate("(hash) => { location.hash = hash; }", f"#/{view}")
        else:
            self.page.goto(target)
        if wait:
            self.page.wait_for_selector(wait)
        return self.page

    def open(self, view: str, *, wait: str = SETTLED) -> Page:
        """The same from a page that was just loaded."""
        self.page.goto("about:blank")
        return self.go(view, wait=wait)

    def violations(self) -> list[str]:
        """What the content security policy had to stop."""
        found: list[str] = self.page.evaluate("() => window.violations ?? []")
        return found

    def strangers(self) -> list[str]:
        """Requests to anywhere but the page's own server."""
        own = (self.url, "about:")
        return [one for one in self.requests if not one.startswith(own)]

    def check(self) -> None:
        """Nothing went wrong, nothing was stopped, nobody else was asked."""
        assert self.errors == []
        assert self.violations() == []
        assert self.strangers() == []
        assert self.dialogs == []


@contextmanager
def watched(browser: Browser, url: str, *, axe: bool = False, **context: Any) -> Iterator[Watched]:
    """A page in a context of its own; with `axe` the checker of accessibility is in it."""
    given = {"viewport": {"width": 1280, "height": 900}, "reduced_motion": "reduce"} | context
    window = browser.new_context(**given)
    window.add_init_script(_VIOLATIONS)
    if axe:
        window.add_init_script(path=AXE)
    window.set_default_timeout(20_000)
    page = window.new_page()
    seen = Watched(page, url)
    page.on("request", lambda request: seen.requests.append(request.url))
    page.on("pageerror", lambda error: seen.errors.append(str(error)))
    page.on(
        "console",
        lambda line: seen.errors.append(line.text) if line.type in {"error", "warning"} else None,
    )

    def dismiss(dialog: Any) -> None:
        seen.dialogs.append(dialog.message)
        dialog.dismiss()

    page.on("dialog", dismiss)
    try:
        yield seen
    finally:
        window.close()
