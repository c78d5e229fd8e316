"""Pictures of the page in a real browser: those that the documents show.

In: the home of `tools.demo_home`, served on loopback. Out: `page-search.png`, and below
`page/after/` one sheet for each view: 1280 and 390 pixels wide, light and dark.

Run `python -m tools.screenshots [--only search,map] [--images FOLDER]`; it needs Chromium.
"""

from __future__ import annotations

import argparse
import io
import os
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from tools.demo_home import MOMENT, QUESTION, demo_home

from anaphora import Memory
from anaphora.values.conversations import READ_AWAITED

if TYPE_CHECKING:
    from PIL.Image import Image
    from playwright.sync_api import Browser, Page

ROOT: Final = Path(__file__).resolve().parents[1]
IMAGES: Final = ROOT / "docs" / "images"
CHROMIUM: Final = Path(os.environ.get("CHROMIUM", "/usr/bin/chromium"))
CHROMIUM_ARGUMENTS: Final = (
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
)
Scheme: TypeAlias = Literal["light", "dark"]
# What it returns is called after the picture, so that the next one finds all as it was.
Act: TypeAlias = "Callable[[Page], Callable[[], object] | None]"

SEARCHED: Final = "why did we move the queue away from Redis?"
OUTDATED: Final = "which port does the staging database listen on?"
FOCUS: Final = "how is a hit's score put together from words and meaning"


@dataclass(frozen=True)
class Scene:
    """A view by its address, what is done there before the picture, and the size of the window."""

    address: str
    act: Act
    width: int = 1280
    height: int = 900
    scheme: Scheme = "light"


def main() -> None:
    """Make the pictures that were asked for; without a choice, all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--images", type=Path, default=IMAGES)
    arguments = parser.parse_args()
    only = frozenset(name for name in arguments.only.split(",") if name)
    with tempfile.TemporaryDirectory(prefix="anaphora-pictures-") as folder:
        with demo_home(Path(folder)) as memory, _served(memory) as url, _browser() as browser:
            # The reader loads with the first question that is read.
            memory.search(SEARCHED, read=READ_AWAITED)
            memory.ready()
            if not only or "search" in only:
                with _opened(browser, url, Scene(_FOUND + "&k=4", _why, height=1000)) as page:
                    page.screenshot(path=arguments.images / "page-search.png")
            _sheets(browser, url, _views(memory), arguments.images, only)
        with (
            Memory.open(Path(folder) / "empty", clock=lambda: MOMENT) as memory,
            _served(memory) as url,
            _browser() as browser,
        ):
            _sheets(browser, url, {"first-visit": ("#/search", _settled)}, arguments.images, only)


@contextmanager
def _served(memory: Memory) -> Iterator[str]:
    """A real server over `memory` on a free port of loopback, in a thread; gives its URL."""
    import uvicorn

    from anaphora.features.server.serving import create_app

    app = create_app(memory)
    server = uvicorn.Server(
        uvicorn.Config(app, host="127.0.0.1", port=0, log_level="warning", access_log=False)
    )
    socket = server.config.bind_socket()
    thread = threading.Thread(target=server.run, kwargs={"sockets": [socket]}, daemon=True)
    thread.start()
    while not server.started and thread.is_alive():
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{socket.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(30)
        socket.close()


@contextmanager
def _browser() -> Iterator[Browser]:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=list(CHROMIUM_ARGUMENTS)
        )
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def _opened(browser: Browser, url: str, scene: Scene) -> Iterator[Page]:
    window = browser.new_context(
        viewport={"width": scene.width, "height": scene.height},
        color_scheme=scene.scheme,
        reduced_motion="reduce",
        locale="en-GB",
        timezone_id="UTC",
    )
    page = window.new_page()
    page.set_default_timeout(_PATIENCE)
    page.clock.set_fixed_time(MOMENT)
    page.goto(url + scene.address)
    restore = scene.act(page)
    try:
        yield page
    finally:
        if restore is not None:
            restore()
        window.close()


_WIDTHS: Final = ((1280, 900), (390, 844))
_SHARE: Final = 0.6
_GAP: Final = 16
_PATIENCE: Final = 120_000
"""Milliseconds for one step on a busy machine."""


def _sheets(
    browser: Browser,
    url: str,
    views: Mapping[str, tuple[str, Act]],
    images: Path,
    only: frozenset[str],
) -> None:
    """A sheet for each view: wide and narrow in light, below them in dark."""
    folder = images / "page" / "after"
    folder.mkdir(parents=True, exist_ok=True)
    for name, (address, act) in views.items():
        if only and name not in only:
            continue
        shots = []
        schemes: tuple[Scheme, ...] = ("light", "dark")
        for scheme in schemes:
            for width, height in _WIDTHS:
                with _opened(browser, url, Scene(address, act, width, height, scheme)) as page:
                    shots.append(page.screenshot())
        _joined(shots).save(folder / f"{name}.webp", quality=33, method=6)


def _joined(shots: list[bytes]) -> Image:
    """Four pictures as one, two in a row, at a share of their size."""
    from PIL import Image

    images = []
    for shot in shots:
        with Image.open(io.BytesIO(shot)) as whole:
            size = (round(whole.width * _SHARE), round(whole.height * _SHARE))
            images.append(whole.convert("RGB").resize(size, Image.Resampling.LANCZOS))
    column = images[0].width + _GAP
    row = max(image.height for image in images) + _GAP
    sheet = Image.new("RGB", (column + images[1].width, row * 2 - _GAP), "#8a9499")
    for number, image in enumerate(images):
        sheet.paste(image, (column * (number % 2), row * (number // 2)))
    return sheet


def _settled(page: Page) -> None:
    page.wait_for_selector("main h1")
    page.wait_for_selector("main:has(h1):not(:has(.waiting)):not(:has([aria-busy]))")


def _why(page: Page) -> None:
    _settled(page)
    page.locator(".hit summary", has_text="Why").first.click()


def _map(page: Page) -> None:
    page.wait_for_selector(".node")
    page.click(".node[aria-label^='src/anaphora/recall,']")


def _import(page: Page) -> None:
    _settled(page)
    page.get_by_role("button", name="Import").first.click()
    page.wait_for_selector("dialog h2")


def _undo(page: Page) -> None:
    page.keyboard.press("Control+z")
    page.wait_for_selector("#toast", state="hidden")


def _forget(page: Page) -> Callable[[], object]:
    """Forget a memory of the list."""
    _menu(page)
    page.get_by_role("menuitem", name="Forget").click()
    page.wait_for_selector("#toast .undo")
    return lambda: _undo(page)


def _settle(page: Page) -> Callable[[], object]:
    """Settle the first contradiction."""
    _settled(page)
    page.get_by_role("button", name="The newer one holds").first.click()
    page.wait_for_selector("#open-contradictions:has-text('2')")
    return lambda: _undo(page)


def _menu(page: Page) -> None:
    """Open the menu of a memory."""
    _settled(page)
    page.locator(".memories").get_by_role("button", name="Actions").nth(1).click()


_FOUND: Final = f"#/search?q={SEARCHED.replace(' ', '+')}"


def _views(memory: Memory) -> dict[str, tuple[str, Act]]:
    """Every view, by name: its address, and what is done there before the picture."""
    port = memory.list({"path": "ferrywell.staging.port"}).items[0]
    turn = memory.recall_conversation(None, SEARCHED, top_k=1)[0]
    trace = next(trace for trace in memory.traces() if trace.question == QUESTION)
    return {
        "start": ("#/search", _settled),
        "search": (_FOUND, _why),
        "search-outdated": (f"#/search?q={OUTDATED.replace(' ', '+')}", _settled),
        "timeline": ("#/timeline", _settled),
        "conversations": ("#/conversations", _settled),
        "conversation": (f"#/conversations/{turn.conversation_id}?turn={turn.index}", _settled),
        "memories": ("#/memories", _settled),
        "memory": (f"#/memories/{port.id}", _settled),
        "memory-menu": ("#/memories", _menu),
        "memory-forget": ("#/memories", _forget),
        "always-included": ("#/core", _settled),
        "contradictions": ("#/contradictions", _settled),
        "contradiction-settled": ("#/contradictions", _settle),
        "documents": ("#/documents", _settled),
        "notes": ("#/notes", _settled),
        "project": (f"#/project?focus={FOCUS.replace(' ', '+')}&sources=1", _settled),
        "map": ("#/project/map", _map),
        "ask-answer": (f"#/ask/{trace.id}", _settled),
        "status": ("#/status", _settled),
        "import": ("#/search", _import),
    }


if __name__ == "__main__":
    main()
