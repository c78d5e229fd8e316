"""Pictures of the page, from a home made of what this repository holds: `docs/images/page-*.png`.

In: `examples/conversation.json`, the memories and notes below, this repository's own sources as
the project. Out: pictures, taken in a real browser of a real server on loopback. Deep recall is
answered by a script instead of a model; its code runs in the real sandbox over the real turns.

Run `python -m tools.screenshots [--only search,map] [--home FOLDER] [--every FOLDER]`; it needs
Chromium.
"""

from __future__ import annotations

import argparse
import os
import shutil
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from anaphora import Memory
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.surfaces.rest.options import ServerOptions

if TYPE_CHECKING:
    from playwright.sync_api import Page

__all__ = ["CHROMIUM", "CHROMIUM_ARGUMENTS", "demo_home", "served"]

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
QUESTION: Final = "On how many days did we talk about Redis, and what came of it?"
SEARCHED: Final = "why did we move the queue away from Redis?"
FOCUS: Final = "how is a hit's score put together from words and meaning"

_READ_ALL = """\
Search shows the best hits only, so I read every turn that names Redis.

```python
import re
found = []
for s in list_sessions():
    for start in range(0, s["turns"], 500):
        for t in load_transcript(s["id"], start, start + 500):
            if re.search(r"\\bredis\\b", t["text"], re.IGNORECASE):
                found.append(t)
found.sort(key=lambda t: t["ts"])
days = sorted(set(t["ts"][:10] for t in found))
print(len(found), "turns on", len(days), "days:", ", ".join(days))
for t in found:
    print(t["ts"][:10], t["speaker"], "-", t["text"][:110])
```"""
_JUDGE = """\
Which of these turns says what was decided? The other model reads them.

```python
asked = "Does this turn state a decision about the queue? Answer yes or no.\\n\\n"
answers = llm_query_batched([asked + t["text"] for t in found])
decided = [t for t, a in zip(found, answers) if a.strip().lower().startswith("yes")]
print(len(decided), "decisions, the last:", decided[-1]["text"][:160])
```"""
_SUBMIT = """\
```python
submit(
    f"On {len(days)} days, from {days[0]} to {days[-1]}. The queue moved to PostgreSQL after Redis "
    "had lost 214 jobs; since then Redis only keeps the page cache.",
    sources=[decided[-1]["id"], found[2]["id"], found[-1]["id"]],
)
```"""
_NOT_FOUND = (
    '```python\nhits = search(question, limit=20)\nprint(len(hits))\nsubmit("NOT_FOUND", [])\n```'
)

_MEMORIES: Final[tuple[dict[str, Any], ...]] = (
    {
        "text": "The job queue of Ferrywell lies in PostgreSQL (SELECT … FOR UPDATE SKIP LOCKED), "
        "because Redis evicted 214 jobs and could not write a job in the event's transaction.",
        "path": "ferrywell.queue",
        "category": "decision",
        "tags": ("ferrywell", "queue"),
    },
    {
        "text": "Ferrywell's staging database listens on port 5433.",
        "path": "ferrywell.staging.port",
        "category": "environment",
        "tags": ("ferrywell",),
    },
    {
        "text": "Ferrywell's staging database listens on port 5439.",
        "path": "ferrywell.staging.port",
        "category": "environment",
        "tags": ("ferrywell",),
    },
    {
        "text": "Redis keeps the page cache of Ferrywell, and nothing that must not be lost.",
        "category": "environment",
        "tags": ("ferrywell", "cache"),
    },
    {
        "text": "Snippets of test code are written with pytest, never with unittest.",
        "category": "preference",
        "tags": ("python", "testing"),
    },
    {
        "text": "Before a migration: restore last night's backup on staging, and time it.",
        "type": "procedural",
        "category": "procedure",
        "tags": ("ferrywell", "database"),
    },
    {
        "text": "The restore drill in April took 51 minutes for 63 GB.",
        "type": "episodic",
        "tags": ("ferrywell", "database"),
    },
    {
        "text": "A webhook is tried 8 times over about 11 hours.",
        "path": "ferrywell.webhook.attempts",
        "tags": ("ferrywell",),
    },
    {
        "text": "Kestrel's KP-4107 means: the client certificate expires within 14 days.",
        "tags": ("carriers",),
    },
    {"text": "Ines's son is allergic to hazelnuts.", "category": "people"},
)  # fmt: skip
_NOTES: Final = (
    ("decision", "Closeness by cosine only links memories; it never merges them.", 5),
    ("constraint", "Modules of src/anaphora/rank read no clock, disk or log.", 4),
    ("code_insight", "rank/turns.py adds up the parts of a turn's score, so they explain it.", 3),
)


def main() -> None:
    """Make the pictures that were asked for; without a choice, all."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", default="", help="names, with commas between them")
    parser.add_argument("--home", type=Path, help="keep the home here, and use it again")
    parser.add_argument("--images", type=Path, default=IMAGES)
    parser.add_argument(
        "--every", type=Path, help="every view at both widths and in both themes, into this folder"
    )
    given = parser.parse_args()
    place = given.home or Path(tempfile.mkdtemp(prefix="anaphora-pictures-"))
    try:
        with demo_home(place) as memory, served(memory) as url:
            only = [one for one in given.only.split(",") if one]
            if given.every is not None:
                _pictures(url, _every_view(), given.every, only)
            else:
                _pictures(url, _SCENES, given.images, only)
    finally:
        if given.home is None:
            shutil.rmtree(place, ignore_errors=True)


@contextmanager
def demo_home(place: Path) -> Iterator[Memory]:
    """A memory that was filled once, with a scripted model for deep recall."""
    filled = (place / "home").is_dir()
    model = ScriptedModel(_replies(), name="scripted", prices=(0.15, 0.6))
    sub = ScriptedModel(
        lambda asked: "Yes." if "Decided" in asked[-1].text else "No.",
        name="scripted-reader",
        prices=(0.05, 0.2),
    )
    with Memory.open(place / "home", model=model, sub_model=sub) as memory:
        if not filled:
            _fill(memory, place / "ferry")
        memory.ready()
        yield memory


def _replies() -> Any:
    """What the model says: a search in three blocks, or that a thing is nowhere."""
    steps = {QUESTION: [_READ_ALL, _JUDGE, _SUBMIT]}

    def following(messages: Any) -> str:
        said = sum(1 for one in messages if one.role == "assistant")
        whole = " ".join(one.text for one in messages)
        script = next((replies for asked, replies in steps.items() if asked in whole), [_NOT_FOUND])
        # Examples that every prompt begins with are replies of a model, too.
        return script[max(0, said - _shown_before(messages)) % len(script)]

    return following


def _shown_before(messages: Any) -> int:
    own = {_READ_ALL, _JUDGE, _SUBMIT, _NOT_FOUND}
    return sum(1 for one in messages if one.role == "assistant" and one.text not in own)


def _fill(memory: Memory, folder: Path) -> None:
    memory.ready()
    memory.import_(ROOT / "examples" / "conversation.json")
    for one in _MEMORIES:
        memory.remember(**one)
    memory.remember(str(_MEMORIES[4]["text"]), category="preference", tags=("python", "testing"))
    project = folder / "anaphora"
    hidden = shutil.ignore_patterns("__pycache__", "models", "*.pyc")
    shutil.copytree(ROOT / "src", project / "src", ignore=hidden)
    for name in ("README.md", "pyproject.toml"):
        shutil.copy(ROOT / name, project / name)
    memory.index_project(project, name="anaphora")
    memory.ready()
    for kind, text, importance in _NOTES:
        memory.observe(text, kind=kind, importance=importance, project="anaphora")  # type: ignore[arg-type]
    memory.write_diary(
        "The weights of a turn's ranking were fitted anew; recall@10 is as it was.",
        subject="ranking",
        project="anaphora",
    )
    memory.remember("The team of Ferrywell deploys on Wednesdays.", tags=("ferrywell",))
    memory.remember("The team of Ferrywell deploys on Thursdays.", tags=("ferrywell",))
    for question in (
        "Which company audits the books of Ferrywell?",
        "How many square metres has the office in Bergen?",
        "What did the lawyer say about the name Ferrywell?",
    ):
        memory.deep_recall(question, scope="all_sessions")
    memory.deep_recall(QUESTION, scope="all_sessions")


@contextmanager
def served(memory: Memory, options: ServerOptions | None = None) -> Iterator[str]:
    """A real server over `memory` on a free port of loopback, in a thread; gives its URL."""
    import uvicorn

    from anaphora.surfaces.rest import create_app

    app = create_app(memory, settings=options or ServerOptions())
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


def _pictures(
    url: str, scenes: dict[str, tuple[str, int, int, Any, Any]], images: Path, only: list[str]
) -> None:
    from playwright.sync_api import sync_playwright

    images.mkdir(parents=True, exist_ok=True)
    with sync_playwright() as driver:
        browser = driver.chromium.launch(
            executable_path=str(CHROMIUM), args=list(CHROMIUM_ARGUMENTS)
        )
        for name, (view, width, height, scheme, act) in scenes.items():
            if only and name not in only:
                continue
            page = browser.new_page(
                viewport={"width": width, "height": height},
                color_scheme=scheme,
                reduced_motion="reduce",
                locale="en-GB",
                timezone_id="UTC",
            )
            page.goto(url + view)
            act(page)
            page.screenshot(path=images / f"page-{name}.png")
            page.close()
        browser.close()


def _settled(page: Page) -> None:
    page.wait_for_selector("main h1")
    page.wait_for_selector("main:has(h1):not(:has(.waiting)):not(:has([aria-busy]))")


def _why(page: Page) -> None:
    _settled(page)
    page.locator(".hit summary", has_text="Why").first.click()


def _thread(page: Page) -> None:
    page.wait_for_selector(".hit .where[href*=conversations]")
    page.click(".hit .where[href*=conversations] >> nth=0")
    page.wait_for_selector(".turn.found")


def _map(page: Page) -> None:
    page.wait_for_selector(".node")
    page.click(".node[aria-label^='src/anaphora/recall,']")


def _ask(page: Page) -> None:
    page.click(f"text={QUESTION}")
    page.wait_for_selector(".answer")


def _questions(page: Page) -> None:
    _settled(page)
    page.click("text=Look again now")
    page.wait_for_selector(".report")
    _settled(page)


def _status(page: Page) -> None:
    _settled(page)
    for round_ in range(5):
        page.evaluate(_ASK, [f"{SEARCHED} {round_}", round_])
        page.wait_for_timeout(5_100)
    _settled(page)


_ASK: Final = """async ([query, at]) => {
  const headers = {"Content-Type": "application/json"};
  const post = (path, body) =>
    fetch(path, {method: "POST", headers, body: JSON.stringify(body)});
  for (let n = 0; n < 4 + at; n += 1) {
    await post("v1/recall", {query: query + n});
    await post("v1/conversations/recall", {query: query + n});
  }
  await post("v1/context/recall", {focus: query});
  await fetch("v1/memories");
}"""
_FOUND: Final = f"#/search?q={SEARCHED.replace(' ', '+')}"
_PROJECT: Final = f"#/project?focus={FOCUS.replace(' ', '+')}&sources=1"
# What is in the documents: view, size, scheme, and what is done before the picture is taken.
_SCENES: Final[dict[str, tuple[str, int, int, Any, Any]]] = {
    "search": (_FOUND + "&k=4", 1280, 1000, "light", _why),
    "search-dark": (_FOUND + "&k=4", 1280, 1000, "dark", _why),
    "search-narrow": (_FOUND + "&k=4", 390, 844, "light", _settled),
    "timeline": ("#/timeline", 1280, 900, "light", _settled),
    "conversation": (_FOUND + "&kind=turn", 1280, 900, "light", _thread),
    "memories": ("#/memories", 1280, 900, "light", _settled),
    "notes": ("#/notes", 1280, 700, "light", _settled),
    "project": (_PROJECT, 1280, 1100, "light", _settled),
    "map": ("#/project/map", 1280, 1150, "light", _map),
    "ask": ("#/ask", 1280, 1200, "light", _ask),
    "questions": ("#/questions", 1280, 800, "light", _questions),
    "contradictions": ("#/contradictions", 1280, 700, "light", _settled),
    "status": ("#/status", 1280, 1150, "light", _status),
}  # fmt: skip
_EVERY: Final = {
    "search": (_FOUND, _settled),
    "search-empty": ("#/search", _settled),
    "timeline": ("#/timeline", _settled),
    "conversations": ("#/conversations", _settled),
    "conversation": (_FOUND + "&kind=turn", _thread),
    "memories": ("#/memories", _settled),
    "contradictions": ("#/contradictions", _settled),
    "notes": ("#/notes", _settled),
    "diary": ("#/notes?show=diary", _settled),
    "project": (_PROJECT, _settled),
    "map": ("#/project/map", _map),
    "ask": ("#/ask", _settled),
    "questions": ("#/questions", _settled),
    "status": ("#/status", _settled),
}


def _every_view() -> dict[str, tuple[str, int, int, Any, Any]]:
    """Every view at both widths, in light and in dark."""
    return {
        f"{name}-{width}-{scheme}": (view, width, height, scheme, act)
        for name, (view, act) in _EVERY.items()
        for width, height in ((1280, 900), (390, 844))
        for scheme in ("light", "dark")
    }


if __name__ == "__main__":
    main()
