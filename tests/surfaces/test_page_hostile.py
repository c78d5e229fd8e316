"""Remembered text in the page is data: shown as it is, never executed, wherever it stands."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from urllib.parse import quote

import pytest
from playwright.sync_api import Browser
from tests.surfaces.page_desk import Watched, chromium, serving, watched

from anaphora import Memory, NewMemory

pytestmark = pytest.mark.enable_socket

# Ours: each would set a mark, open a dialog, or ask a stranger, if it were taken for a page.
STRINGS = [
    "<script>window.pwned=1</script>",
    "<img src=x onerror=window.pwned=1>",
    "<svg onload=window.pwned=1>",
    "<svg><script>window.pwned=1</script></svg>",
    "<iframe srcdoc='<script>parent.pwned=1</script>'></iframe>",
    "<iframe src=javascript:parent.pwned=1></iframe>",
    "<a href=javascript:window.pwned=1>here</a>",
    "javascript:window.pwned=1",
    "#/conversations/<img src=x onerror=window.pwned=1>",
    "<body onload=window.pwned=1>",
    "<input autofocus onfocus=window.pwned=1>",
    "<details open ontoggle=window.pwned=1>",
    "<video><source onerror=window.pwned=1></video>",
    "<math><mi xlink:href='data:text/html,<script>window.pwned=1</script>'>x</mi></math>",
    "<link rel=stylesheet href=//stranger.example/x.css>",
    "<style>@import '//stranger.example/x.css';</style>",
    "<img src=//stranger.example/pixel.gif>",
    "<meta http-equiv=refresh content='0;url=//stranger.example/'>",
    "<base href=//stranger.example/>",
    "<form action=//stranger.example/><button>Send</button></form>",
    "<object data=data:text/html;base64,PHNjcmlwdD5hbGVydCgxKTwvc2NyaXB0Pg==></object>",
    "</textarea><script>window.pwned=1</script>",
    "</title></style></script><script>window.pwned=1</script>",
    '"><script>window.pwned=1</script>',
    "' onmouseover='window.pwned=1",
    "{{constructor.constructor('window.pwned=1')()}}",
    "${window.pwned=1}",
    "__proto__",
    "<noscript><p title='</noscript><img src=x onerror=window.pwned=1>'>",
    "\u202e<script>window.pwned=1</script>\u202c",
]
# Whatever the page itself never makes in its content, and what carries code in an attribute.
FOREIGN = """() => [...document.querySelectorAll(
  "main script, main style, main link, main meta, main base, main iframe, main img, main object, " +
  "main embed, main video, main audio, main math, main body, main form[action], " +
  "main [style], main [srcdoc]"
)].map((one) => one.outerHTML).concat(
  [...document.querySelectorAll("*")].flatMap((one) => [...one.attributes]
    .filter((a) => /^on/i.test(a.name) || /^\\s*(javascript|data|vbscript):/i.test(
      ["href", "src", "action", "xlink:href"].includes(a.name) ? a.value : ""))
    .map((a) => `${one.tagName} ${a.name}=${a.value}`)))"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture
def memory(tmp_path: Path) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing") as one:
        yield one


def remember_everywhere(memory: Memory, strings: Sequence[str], project: Path) -> None:
    """The strings as memories, tags, categories, paths, turns, speakers, titles, notes, gaps."""
    memory.remember_many(
        NewMemory(
            text=one,
            tags=_tags(one),
            category=_name(one),
            path=_name(one),
            source=_name(one),
            payload={one: one},
        )
        for one in strings
    )
    threads = memory.conversations
    for number, one in enumerate(strings):
        threads.append("hostile", "user" if number % 2 else "assistant", one, speaker=_name(one))
    for number, one in enumerate(strings[:8]):
        threads.append(f"titled-{number}", "user", one)
        threads.set_title(f"titled-{number}", one)
        memory.observe(one, tags=_tags(one), source=_name(one))
        memory.deep_recall(f"{one} zebra {number}?", scope="all_sessions")
    project.mkdir()
    for number, one in enumerate(strings[:40]):
        name = one.replace("/", "_").replace("\0", "_")[:80]
        (project / f"{name}.md").write_text(f"# {one}\n\nzebra {number}: {one}\n", errors="replace")
    memory.index_project(project, name=strings[1])


def _name(text: str) -> str | None:
    """The string where a name may stand: control signs and outer white space are refused there."""
    return text if text.isprintable() and text == text.strip() else None


def _tags(text: str) -> tuple[str, ...]:
    return (text,) if _name(text) else ()


def look_everywhere(seen: Watched, asked: Sequence[str]) -> None:
    """Every view, with the strings in its address as well."""
    for view in (
        "conversations",
        "conversations/hostile",
        "timeline",
        "memories",
        "notes",
        "contradictions",
        "documents",
        "core",
        "search",
        "project/map",
        "ask",
        "questions",
        "status",
        "devices",
    ):
        seen.go(view)
        unharmed(seen)
    for one in asked:
        given = quote(one, safe="")
        seen.go(f"search?q={given}&kind=memory,note,turn,file,tool_call&k=20")
        unharmed(seen)
    given = quote(asked[0], safe="")
    for view in (
        f"project?focus={given}%20zebra&sources=1", f"memories?tag={given}",
        f"conversations/{given}", f"memories/{given}", f"ask/{given}", f"notes/{given}", given,
        f"search?q={asked[0]}",
        f"project/map?project={given}&within={given}",
    ):  # fmt: skip
        seen.go(view, wait="main h1, main .note.bad")
        unharmed(seen)
    page = seen.go("ask")
    page.locator("main .row a").first.click()
    page.wait_for_selector(".answer")
    unharmed(seen)


def unharmed(seen: Watched) -> None:
    assert seen.page.evaluate("() => window.pwned") is None
    assert seen.page.evaluate(FOREIGN) == []
    assert seen.dialogs == []
    assert seen.strangers() == []
    assert seen.violations() == []


def shown(seen: Watched, strings: Sequence[str]) -> None:
    """In the thread each string stands as it is."""
    page = seen.go("conversations/hostile")
    texts = page.locator(".turn > .said, .turn > div > .said").all_text_contents()
    assert texts == list(strings)


@pytest.mark.promise("page.data")
def test_our_strings_are_data_in_every_view(
    browser: Browser, memory: Memory, tmp_path: Path
) -> None:
    """Thirty strings that attack pages are shown word for word and do nothing."""
    remember_everywhere(memory, STRINGS, tmp_path / "project")
    with serving(memory) as url, watched(browser, url) as seen:
        look_everywhere(seen, STRINGS[1:4])
        shown(seen, STRINGS)
        page = seen.go("memories")
        for deed in ("Edit", "Delete for good …"):
            page.get_by_role("button", name="Actions:").first.click()
            page.get_by_role("menuitem", name=deed).click()
            unharmed(seen)
            if deed == "Edit":
                page.keyboard.press("Escape")
        page.click("dialog button.danger")
        page.wait_for_selector("#toast a")
        unharmed(seen)


@pytest.mark.promise("page.data")
def test_the_naughty_strings_are_data_in_every_view(
    browser: Browser, memory: Memory, tmp_path: Path, naughty: list[str]
) -> None:
    """Every string of the list that carries code is shown word for word and does nothing."""
    signs = ("<", "javascript:", "alert", "onerror", "&#")
    strings = [one for one in naughty if any(s in one.lower() for s in signs)]
    assert len(strings) > 150
    remember_everywhere(memory, strings, tmp_path / "project")
    with serving(memory) as url, watched(browser, url) as seen:
        look_everywhere(seen, strings[:2])
        shown(seen, strings)


@pytest.mark.promise("page.data")
def test_the_page_has_no_way_to_parse_markup() -> None:
    """None of its programs turns text into markup or code; no style or script is inline."""
    import anaphora

    web = Path(anaphora.__file__).parent / "surfaces" / "web"
    programs = list(web.rglob("*.js"))
    assert len(programs) >= 10
    for file in programs:
        for sign in ("innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "eval(",
                     "new Function", "setHTML", "DOMParser", "http://", "https://"):  # fmt: skip
            known = sign == "http://" and file.name == "dom.js"
            assert known or sign not in file.read_text("utf-8"), (file.name, sign)
    markup = (web / "index.html").read_text("utf-8")
    assert "<style" not in markup
    assert "style=" not in markup
    assert "<script>" not in markup
