"""Each view of the page in a real browser, on a real server that requires a token.

The views are those that the page's own program names. Each must settle with a heading and content,
without an error on the console, a failed request, or a request to another server.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Final

from playwright.sync_api import Browser, Error, expect, sync_playwright
from tests.surfaces.page_desk import ARGUMENTS, CHROMIUM, SETTLED, Watched, watched
from tools.gate.report import Report, must
from tools.gate.surfaces.serving import Server

__all__ = ["check_web", "views_of"]

# What the checks of the routes have stored before.
_SHOWN: Final[Mapping[str, tuple[str, str]]] = {
    "search": ("search?q=which%20port%20is%20staging%20on", "5433"),
    "timeline": ("timeline", "The ferry to Hvar"),
    "conversations": ("conversations", "ferry to Hvar"),
    "memories": ("memories", "5433"),
    "core": ("core", "5433"),
    "documents": ("documents", "Crane manual"),
    "notes": ("notes", "must stay one statement"),
    "project": ("project?focus=where%20is%20take_berth%20defined", "berths.py"),
    "ask": ("ask", "ferry"),
    "questions": ("questions", "Zanzibar"),
    "status": ("status", "All is well"),
    "contradictions": ("contradictions", "contradict"),
    "devices": ("devices", "this computer alone"),
}
"""A view's address and words that it must show. One that is not here is held to the rest."""


def check_web(server: Server, report: Report) -> None:
    """Every view, one after the other, in one tab that was opened by the server's link."""
    program = server.ask("GET", "/app.js", token=False)
    with report.check("the page and its files are served to a browser without a token"):
        page = server.ask("GET", "/", token=False)
        must(page.status == 200 and "<html" in page.text, f"{page.status} {page.text[:200]}")
        must(program.status == 200, f"app.js: {program.status}")
    with (
        report.check("without a token the page asks for one"),
        _browser() as browser,
        watched(browser, f"{server.url}/") as seen,
    ):
        seen.page.goto(seen.url)
        expect(seen.page.locator("main")).to_contain_text("A token is needed")
    views = views_of(program.text)
    must(len(views) > 5, f"the page names the views {views}")
    with _browser() as browser, watched(browser, f"{server.url}/") as seen:
        failed = _failures(seen)
        seen.page.goto(f"{server.url}/#token={server.token}")
        seen.page.wait_for_selector(SETTLED)
        # The link opens the first one: it comes last, so that each is a view that was not shown.
        for name in (*views[1:], views[0]):
            with report.check(f"{name}: shows what is stored, and nothing fails"):
                _check_view(seen, failed, name)


def views_of(program: str) -> list[str]:
    """The names of the views that the page's program can show."""
    return re.findall(r'(\w+):\s*\(\)\s*=>\s*import\("\./views/', program)


def _failures(seen: Watched) -> list[str]:
    """The requests of a page that fail from now on, or are answered with an error."""
    failed: list[str] = []
    # What is under way when a view is left is broken off on purpose.
    seen.page.on(
        "requestfailed",
        lambda request: (
            None
            if request.failure == "net::ERR_ABORTED"
            else failed.append(f"{request.url}: {request.failure}")
        ),
    )
    seen.page.on(
        "response",
        lambda got: failed.append(f"{got.url}: {got.status}") if got.status >= 400 else None,
    )
    return failed


def _check_view(seen: Watched, failed: list[str], name: str) -> None:
    address, words = _SHOWN.get(name, (name, ""))
    failed.clear()
    seen.errors.clear()
    # A view that is left shows what it has until the next one comes.
    seen.page.evaluate("() => document.querySelector('main').replaceChildren()")
    view = seen.go(address, wait="").locator("main")
    try:
        seen.page.wait_for_selector(SETTLED, timeout=10_000)
        expect(view).to_contain_text(words, timeout=10_000)
    except (AssertionError, Error) as error:
        raise AssertionError(f"{name} shows {view.inner_text()[:500]!r}; {failed}") from error
    text = view.inner_text()
    must("That did not work" not in text, f"{name} shows {text[:500]!r}; {failed}")
    must(len(text.split()) > 3, f"{name} shows {text!r}")
    must(not failed, f"{name}: {failed}")
    seen.check()


@contextmanager
def _browser() -> Iterator[Browser]:
    """A browser of this machine; the gate fails without one."""
    must(CHROMIUM is not None, "there is no browser: run tools/bring_tools.sh, or set CHROMIUM")
    with sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=str(CHROMIUM), args=ARGUMENTS)
        try:
            yield browser
        finally:
            browser.close()
