"""The page that `anaphora serve` shows, in a real browser: views, keyboard, widths, themes."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, expect
from tests.surfaces.page_desk import SETTLED, Watched, chromium, serving, watched

from anaphora import Memory
from anaphora.deep.models.base import Message
from anaphora.deep.models.scripted import ScriptedModel
from anaphora.surfaces.rest import ServerOptions
from anaphora.values.conversations import READ_AWAITED

pytestmark = pytest.mark.enable_socket

QUERY = "why did the queue leave Redis?"
VIEWS = {
    "search": f"search?q={QUERY.replace(' ', '%20')}",
    "search-filtered": "search?q=queue&kind=memory,tool_call&k=5",
    "search-empty": "search",
    "timeline": "timeline",
    "conversations": "conversations",
    "conversation": "conversations/ferry?turn=2",
    "memories": "memories",
    "memories-searched": "memories?q=soup",
    "notes": "notes",
    "diary": "notes?show=diary",
    "project": "project?focus=where%20is%20a%20parcel%20tracked&sources=1",
    "map": "project/map",
    "ask": "ask",
    "questions": "questions?status=all",
    "contradictions": "contradictions",
    "core": "core",
    "status": "status",
    "devices": "devices",
}
COUNT = (
    'seen = [one for one in search("Redis") if one["kind"] == "turn"]\nprint(len(seen), "found")'
)
SUBMIT = 'submit("Redis lost jobs.", [seen[0]["id"]])'


class Model:
    """Writes two blocks of code; the second one only when it is let go on."""

    def __init__(self) -> None:
        self.go_on = threading.Event()
        self.go_on.set()

    def __call__(self, messages: Sequence[Message]) -> str:
        whole = " ".join(one.text for one in messages)
        if "Zanzibar" in whole:
            return '```python\nsubmit("NOT_FOUND", [])\n```'
        if COUNT not in whole:
            return f"I look for it.\n\n```python\n{COUNT}\n```"
        assert self.go_on.wait(30)
        return f"```python\n{SUBMIT}\n```"


@dataclass
class Still:
    """A memory that no test changes, and the way to look at it."""

    browser: Browser
    memory: Memory
    url: str

    @contextmanager
    def seen(self, **context: Any) -> Iterator[Watched]:
        with watched(self.browser, self.url, **context) as one:
            yield one


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as one:
        yield one


@pytest.fixture
def model() -> Model:
    return Model()


@pytest.fixture
def memory(tmp_path: Path, model: Model) -> Iterator[Memory]:
    scripted = ScriptedModel(model, prices=(1.0, 2.0))
    with Memory.open(tmp_path / "home", embedder="hashing", model=scripted) as memory:
        fill(memory, tmp_path / "parcels")
        yield memory


def fill(memory: Memory, project: Path) -> None:
    turns = memory.conversations
    turns.append("ferry", "user", "We keep the jobs in Redis for now.", speaker="Ines")
    turns.append("ferry", "assistant", "Redis may forget them under pressure.")
    turns.append("ferry", "user", "The queue leaves Redis, because Redis lost 214 jobs.")
    turns.append("lunch", "user", "Soup again on Tuesday.")
    memory.remember(
        "The queue lies in PostgreSQL since Redis lost jobs.",
        path="ferry.queue", tags=["queue", "ferry"], category="decision",
    )  # fmt: skip
    memory.remember("The queue lies in Redis.", path="ferry.old", category="decision")
    memory.remember("The queue lies in a file.", path="ferry.old", category="decision")
    memory.remember("Soup is served on Tuesdays.", type="episodic", tags=["lunch"])
    (project / "track").mkdir(parents=True)
    (project / "store").mkdir()
    (project / "README.md").write_text("# Parcels\n\nWhere a parcel is tracked: track/.\n")
    (project / "track" / "__init__.py").write_text("")
    (project / "track" / "parcel.py").write_text(
        "from store.rows import Row\n\n\ndef tracked(parcel: str) -> Row:\n"
        '    """Where a parcel is."""\n    return Row(parcel)\n'
    )
    (project / "store" / "__init__.py").write_text("")
    (project / "store" / "rows.py").write_text(
        "class Row:\n    def __init__(self, name):\n        self.name = name\n"
    )
    memory.index_project(project, name="parcels")
    memory.observe("A parcel is tracked by its scan events.", kind="decision", project="parcels")
    memory.write_diary("The queue was moved.", subject="queue")
    memory.deep_recall("What does nobody know of Zanzibar?", scope="all_sessions")


@pytest.fixture
def url(memory: Memory) -> Iterator[str]:
    with serving(memory) as one:
        yield one


@pytest.fixture
def seen(browser: Browser, url: str) -> Iterator[Watched]:
    with watched(browser, url) as one:
        yield one


@pytest.fixture(scope="module")
def still(browser: Browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Still]:
    """A server for all tests that only look."""
    place = tmp_path_factory.mktemp("page")
    scripted = ScriptedModel(Model(), prices=(1.0, 2.0))
    with Memory.open(place / "home", embedder="hashing", model=scripted) as memory:
        fill(memory, place / "parcels")
        with serving(memory) as url:
            yield Still(browser, memory, url)


@pytest.mark.promise("page.views")
def test_every_view_shows_what_is_there_and_asks_nobody_else(still: Still) -> None:
    """Each view shows real data, without an error, a violated policy or a foreign request."""
    with still.seen() as seen:
        shown = {
            "search": ["ferry.queue", "because Redis lost 214 jobs", "hits in"],
            "search-filtered": ["ferry.queue", "Look among"],
            "search-empty": ["Kept here: 4 turns, 3 memories, 2 notes"],
            "timeline": ["Soup is served on Tuesdays.", "scan events", "The queue was moved."],
            "conversations": ["We keep the jobs in Redis for now.", "Soup again on Tuesday."],
            "conversation": ["Ines", "because Redis lost 214 jobs"],
            "memories": ["Soup is served on Tuesdays.", "lunch", "ferry.queue", "3 memories"],
            "memories-searched": ["Soup is served on Tuesdays.", "the best first"],
            "notes": ["A parcel is tracked by its scan events.", "decision", "parcels"],
            "diary": ["The queue was moved."],
            "project": ["track/parcel.py", "scan events", "tokens"],
            "map": ["track", "store"],
            "ask": ["What does nobody know of Zanzibar?"],
            "questions": ["What does nobody know of Zanzibar?", "nothing known"],
            "contradictions": ["Both are kept until you say what holds"],
            "devices": ["This namespace is on this machine alone."],
            "status": ["All is well", "Write path", "recall"],
        }
        for name, words in shown.items():
            page = seen.go(VIEWS[name])
            for word in words:
                expect(page.locator("main")).to_contain_text(word)
        expect(page.locator("#views [aria-current]")).to_have_text("Status")
        expect(page.locator(".plot svg").first).to_be_visible()
        seen.check()


@pytest.mark.promise("page.why")
def test_each_hit_shows_its_factors_as_bars(still: Still) -> None:
    """Folded behind "Why": names and values are those that recall gives, lengths go by value."""
    memory = still.memory
    # The page's question is read by the same reader, once it is loaded.
    memory.search(QUERY, kinds=("turn",), read=READ_AWAITED)
    assert memory.ready(60)
    with still.seen() as seen:
        page = seen.go(VIEWS["search"] + "&kind=turn")
        hit = memory.search(QUERY, kinds=("turn",), read=READ_AWAITED)[0]
        bars = page.locator(".hit").first.locator(".bars tr")
        expect(bars.first).to_be_hidden()
        page.locator(".hit summary", has_text="Why").first.click()
        expect(bars.first).to_be_visible()
        assert bars.locator("th").all_inner_texts() == list(hit.factors)
        told = [float(text) for text in bars.locator("td.number").all_inner_texts()]
        assert told == pytest.approx(list(hit.factors.values()), abs=6e-4)
        widths = [
            float(one.get_attribute("width") or 0) for one in bars.locator(".bar-value").all()
        ]
        assert sorted(range(len(told)), key=lambda at: -told[at])[0] == widths.index(max(widths))


@pytest.mark.promise("page.search")
def test_one_box_searches_everything(still: Still) -> None:
    """Kinds stand in one list, the words that matched are marked, and nothing fits is said."""
    with still.seen() as seen:
        page = seen.go("search?q=queue%20Redis%20parcel%20scan%20events")
        kinds = set(page.locator(".hit .badge.kind").all_inner_texts())
        assert {"memory", "said", "note"} <= kinds
        assert "redis" in {one.lower() for one in page.locator(".hit mark").all_inner_texts()}
        page = seen.go("search?q=queue&kind=memory")
        assert set(page.locator(".hit .badge.kind").all_inner_texts()) == {"memory"}
        page = seen.go("search?q=queue&tag=nowhere")
        expect(page.locator(".empty")).to_contain_text("Nothing that is kept")
        seen.check()


@pytest.mark.promise("page.narrow")
def test_the_first_hit_is_on_the_first_screen_of_a_phone(still: Still) -> None:
    """At 390 pixels the first hit is to be seen without scrolling, and its whole text is."""
    with still.seen(viewport={"width": 390, "height": 844}) as seen:
        box = seen.go(VIEWS["search"]).locator(".hit").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 844


def nothing_known() -> bytes:
    """A zip file as WhatsApp sends it."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("_chat.txt", "[05/01/2026, 10:01:00] Ola: The key is under the pot")
    return file.getvalue()


@pytest.mark.promise("page.intake")
def test_an_empty_memory_says_how_to_begin_and_takes_a_file(
    browser: Browser, tmp_path: Path
) -> None:
    """The first visit names the ways in; a chosen file and a dropped one are imported and told."""
    lines = '{"conversation_id": "a", "role": "user", "content": "The ferry leaves at nine."}\n'
    file = tmp_path / "chat.jsonl"
    file.write_text(lines)
    with (
        Memory.open(tmp_path / "home", embedder="hashing") as memory,
        serving(memory) as url,
        watched(browser, url) as seen,
    ):
        page = seen.go("search")
        expect(page.locator(".first-run")).to_contain_text("anaphora setup claude-code")
        page.locator(".first-run button").click()
        page.set_input_files("dialog input[type=file]", file)
        page.click("dialog button.primary")
        expect(page.locator("dialog")).to_contain_text("chat.jsonl: 1 turn in 1 conversation")
        page.click("dialog button.primary")
        expect(page.locator("main")).to_contain_text("Kept here: 1 turn")
        for name, data, words in (
            ("chat.jsonl", lines.encode(), "chat.jsonl: nothing new in it"),
            (
                "blank.jsonl",
                lines.replace("The ferry leaves at nine.", " ").encode(),
                "1 blank message",
            ),
            ("WhatsApp.zip", nothing_known(), "nothing in it can be imported"),
        ):
            page.locator("#intake").click()
            given = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
            page.set_input_files("dialog input[type=file]", given)  # type: ignore[arg-type]
            page.click("dialog button.primary")
            expect(page.locator("dialog")).to_contain_text(words)
            if name != "WhatsApp.zip":
                page.click("dialog button.primary")
        # Dropped in the moment in which the last dialog closes.
        page.evaluate(
            """(text) => {
              document.querySelector("dialog button.primary").click();
              const data = new DataTransfer();
              data.items.add(new File([text], "more.jsonl"));
              const told = (name) => new DragEvent(name, {dataTransfer: data, bubbles: true});
              document.body.dispatchEvent(told("dragenter"));
              document.body.dispatchEvent(told("drop"));
            }""",
            lines.replace("nine", "ten").replace('"a"', '"b"'),
        )
        expect(page.locator("dialog")).to_contain_text("more.jsonl: 1 turn in 1 conversation")
        page.click("dialog button[type=submit]")
        assert {one.conversation_id for one in memory.conversations.list()} == {
            "jsonl_a",
            "jsonl_b",
        }
        # The browser logs that a file was refused.
        assert [error for error in seen.errors if "status of 422" not in error] == []
        seen.errors.clear()
        seen.check()


@pytest.mark.promise("page.keyboard")
def test_search_and_a_hit_by_keyboard_alone(still: Still) -> None:
    """From the top: skip link, search, the hit, its turn; the focus is always to be seen."""
    with still.seen() as seen:
        page = seen.go("search")
        page.keyboard.press("Tab")
        expect(page.locator(".skip")).to_be_focused()
        page.keyboard.press("Enter")
        expect(page.locator("main")).to_be_focused()
        page.keyboard.press("Tab")
        expect(page.locator("[name=q]")).to_be_focused()
        page.keyboard.type(QUERY)
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        expect(page.locator("#said")).to_contain_text("hits in")
        expect(page.locator("[name=q]")).to_be_focused()
        for _ in range(60):
            page.keyboard.press("Tab")
            outline = page.evaluate("() => getComputedStyle(document.activeElement).outlineStyle")
            assert outline != "none"
            if page.evaluate("() => document.activeElement.dataset.thread") == "ferry":
                break
        page.keyboard.press("Enter")
        expect(page.locator(".turn.found")).to_be_focused()
        page.keyboard.press("Tab")
        page.keyboard.press("Tab")
        page.keyboard.press("Enter")
        expect(page.locator("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_be_hidden()
        expect(page.locator(".turn.found .redact")).to_be_focused()


@pytest.mark.promise("page.keyboard")
def test_the_map_by_keyboard(still: Still) -> None:
    """Every node of the map is reached by arrow keys, and Enter tells what it imports."""
    with still.seen() as seen:
        page = seen.go(VIEWS["map"])
        page.locator(".node[tabindex='0']").focus()
        reached = set()
        for key in ["ArrowDown", "ArrowRight", "ArrowUp", "ArrowLeft"] * 6:
            reached.add(page.evaluate("() => document.activeElement.getAttribute('aria-label')"))
            page.keyboard.press(key)
        labels = {one.get_attribute("aria-label") for one in page.locator(".node").all()}
        assert reached == labels
        page.locator(".node[aria-label^='track,']").focus()
        page.keyboard.press("Enter")
        expect(page.locator(".detail")).to_contain_text("store")
        expect(page.locator(".node[aria-pressed=true]")).to_have_count(1)


@pytest.mark.promise("page.narrow")
def test_nothing_sticks_out_at_the_width_of_a_phone(still: Still) -> None:
    """At 360 pixels no view scrolls sideways."""
    with still.seen(viewport={"width": 360, "height": 740}) as seen:
        for name, view in VIEWS.items():
            page = seen.go(view)
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            assert wide <= 360, name


# Name and contrast of every text that is to be seen, by the definition of WCAG 2.
CONTRAST = """() => {
  const parse = (text) => {
    const [r, g, b, a = 1] = text.match(/[\\d.]+/g).map(Number);
    return [r, g, b, a];
  };
  const linear = (v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4);
  const light = ([r, g, b]) =>
    0.2126 * linear(r / 255) + 0.7152 * linear(g / 255) + 0.0722 * linear(b / 255);
  const behind = (element) => {
    for (let one = element; one; one = one.parentElement) {
      const colour = parse(getComputedStyle(one).backgroundColor);
      if (colour[3] === 1) return colour;
    }
    return [255, 255, 255, 1];
  };
  const found = new Map();
  const walk = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  while (walk.nextNode()) {
    const text = walk.currentNode.data.trim();
    const element = walk.currentNode.parentElement;
    if (!text || !element.checkVisibility()) continue;
    if (element.closest(".visually-hidden, noscript, option")) continue;
    const style = getComputedStyle(element);
    const own = element instanceof SVGElement ? style.fill : style.color;
    const [a, b] = [light(parse(own)), light(behind(element))];
    found.set(text.slice(0, 30), (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
  }
  return [...found];
}"""


@pytest.mark.promise("page.contrast")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_stands_out_from_its_ground(still: Still, scheme: Any) -> None:
    """Every text of every view has a contrast of at least 4.5, in light and in dark."""
    with still.seen(color_scheme=scheme) as seen:
        for name, view in VIEWS.items():
            found = seen.go(view).evaluate(CONTRAST)
            assert len(found) > 10, name
            assert [(name, *one) for one in found if one[1] < 4.5] == []
        ground = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        seen.page.click("#theme")
        seen.page.click("#theme") if scheme == "light" else None
        other = seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor")
        assert ground != other
        seen.page.reload()
        assert seen.page.evaluate("() => getComputedStyle(document.body).backgroundColor") == other


@pytest.mark.promise("page.forgets")
def test_forgetting_in_the_page_is_forgetting(seen: Watched, memory: Memory) -> None:
    """What is forgotten is gone from memory, and the page names the turns that hold the words."""
    memory.remember("The queue leaves Redis, because Redis lost 214 jobs.", tags=["twice"])
    page = seen.go("memories?tag=twice")
    page.get_by_role("button", name="Forget:").click()
    page.check("dialog [value=now]")
    page.click("dialog button.danger")
    expect(page.locator("dialog")).to_contain_text("1 memory was forgotten")
    expect(page.locator("dialog a")).to_have_text("ferry #2")
    assert not memory.list({"tags": {"contains": "twice"}}).items
    page.click("dialog a")
    expect(page.locator(".turn.found")).to_contain_text("214 jobs")
    page.click(".turn.found .redact")
    page.click("dialog button.danger")
    expect(page.locator("#turn-2")).to_contain_text("[redacted]")
    thread = memory.conversations.get("ferry")
    assert thread is not None
    assert "214" not in thread.turns[2].text
    page.get_by_role("button", name="Delete the conversation").click()
    page.click("dialog button.danger")
    page.wait_for_selector(".threads")
    assert memory.conversations.get("ferry") is None
    seen.check()


@pytest.mark.promise("page.undo")
def test_what_was_forgotten_is_undone(seen: Watched, memory: Memory) -> None:
    """One memory, and several that were chosen, are found no more, and come back by Undo."""
    page = seen.go("memories")
    before = {one.id for one in memory.list().items}
    page.get_by_role("button", name="Forget: Soup").click()
    page.click("dialog button.danger")
    expect(page.locator("dialog")).to_contain_text("1 memory was forgotten")
    page.click("dialog button.primary")
    assert {one.text for one in memory.list().items}.isdisjoint({"Soup is served on Tuesdays."})
    page.locator("#undo").get_by_role("button", name="Undo").click()
    expect(page.locator(".memories")).to_contain_text("Soup is served on Tuesdays.")
    page.get_by_label("Choose all that are shown").check()
    page.get_by_role("button", name=f"Forget {len(before)} memories").click()
    page.click("dialog button.danger")
    expect(page.locator(".empty")).to_contain_text("Nothing is remembered here yet.")
    assert memory.list().items == ()
    page.locator("#undo").get_by_role("button", name="Undo").click()
    expect(page.locator(".memories li")).to_have_count(len(before))
    assert {one.id for one in memory.list().items} == before
    seen.check()


@pytest.mark.promise("page.undo")
def test_notes_are_taken_and_forgotten_in_the_page(seen: Watched, memory: Memory) -> None:
    """A note and an entry of the diary are written, narrowed down, forgotten, and brought back."""
    page = seen.go("notes")
    page.get_by_role("button", name="Take a note").click()
    page.fill("dialog [name=text]", "Parcels are weighed twice.")
    page.select_option("dialog [name=kind]", "constraint")
    page.click("dialog button.primary")
    expect(page.locator("main")).to_contain_text("Parcels are weighed twice.")
    page.fill("main input[type=search]", "weighed")
    expect(page.locator("main li")).to_have_count(1)
    page.get_by_role("button", name="Forget: Parcels").click()
    page.click("dialog button.danger")
    expect(page.locator("main")).not_to_contain_text("Parcels are weighed twice.")
    page.locator("#undo").get_by_role("button", name="Undo").click()
    expect(page.locator("main")).to_contain_text("Parcels are weighed twice.")
    page = seen.go("notes?show=diary")
    page.get_by_role("button", name="Write an entry").click()
    page.fill("dialog [name=summary]", "The scales were repaired.")
    page.click("dialog button.primary")
    expect(page.locator("main")).to_contain_text("The scales were repaired.")
    assert memory.diary()[0].summary == "The scales were repaired."
    seen.check()


@pytest.mark.promise("page.edits")
def test_a_memory_is_edited_and_keeps_its_history(seen: Watched, memory: Memory) -> None:
    """Text, tags and category are changed in the page; the path's history shows both values."""
    page = seen.go("memories?path=ferry.queue")
    page.get_by_role("button", name="Edit").click()
    page.fill("dialog [name=text]", "The queue lies in two places.")
    page.fill("dialog [name=tags]", "queue, new")
    page.click("dialog button.primary")
    expect(page.locator("dialog")).to_contain_text("the one before is in the history")
    page.click("dialog button.primary")
    page.get_by_role("link", name="History of ferry.queue").click()
    expect(page.locator(".timeline li")).to_have_count(2)
    now = memory.list({"path": "ferry.queue"}).items[0]
    assert (now.text, set(now.tags)) == ("The queue lies in two places.", {"queue", "new"})
    seen.check()


@pytest.mark.promise("page.deep")
def test_steps_are_shown_as_they_happen(seen: Watched, model: Model) -> None:
    """The first step is on the page while the model still writes the second one."""
    page = seen.go("ask")
    model.go_on.clear()
    page.fill("[name=question]", "How often was Redis mentioned?")
    page.select_option("[name=scope]", "all_sessions")
    page.click("form [type=submit]")
    try:
        expect(page.locator(".step")).to_have_count(1)
        expect(page.locator(".step")).to_contain_text("found")
        expect(page.locator(".step .code")).to_contain_text("seen = [one for one in search")
        expect(page.locator(".answer")).to_have_count(0)
    finally:
        model.go_on.set()
    expect(page.locator(".answer")).to_contain_text("Redis lost jobs.")
    expect(page.locator(".answer .badge.good")).to_have_text("supported")
    expect(page.locator(".step")).to_have_count(2)
    source = page.locator("section[aria-label=Sources] a").first
    expect(source).to_have_attribute("href", re.compile(r"#/conversations/ferry\?turn=\d$"))
    page.locator("a.thread", has_text="How often was Redis mentioned?").click()
    expect(page.locator(".step")).to_have_count(2)
    seen.check()


@pytest.mark.promise("page.views")
def test_a_dream_is_run_and_told(seen: Watched) -> None:
    """The button looks at open questions again, and says what came of it."""
    page = seen.go("questions")
    page.get_by_role("button", name="Look again now").click()
    expect(page.locator(".report dd").first).to_have_text("1")
    expect(page.locator(".report")).to_contain_text("without a model")
    seen.check()


@pytest.mark.promise("core.surfaces")
def test_the_core_block_is_arranged_in_the_page(seen: Watched, memory: Memory) -> None:
    """Pinned among the memories, moved, unpinned; a rule that came by itself is left out."""
    ids = [memory.remember(text).id for text in ("Tea at four.", "Graz is home.", "Never log.")]
    for text in ("Tea at four.", "Graz is home."):
        page = seen.go("memories")
        page.get_by_role("button", name=f"Pin: {text}").click()
        expect(page.locator("h1")).to_have_text("Core block")
    cards = page.locator("main ol.core .card")
    expect(cards).to_have_count(3)
    page.get_by_role("button", name="Up: Graz is home.").click()
    expect(cards.first).to_contain_text("Graz is home.")
    page.get_by_role("button", name="Leave out: Never log.").click()
    expect(cards).to_have_count(2)
    page.get_by_role("button", name="Unpin: Tea at four.").click()
    expect(cards).to_have_count(1)
    assert [one.id for one in memory.core_block().entries] == [ids[1]]
    seen.check()


@pytest.mark.promise("contradictions.settled")
def test_a_contradiction_is_settled_and_taken_back(seen: Watched, memory: Memory) -> None:
    """The page shows both memories with their days; one click says what holds, one undoes it."""
    old = memory.remember("The team deploys on Wednesdays.").id
    new = memory.remember("The team deploys on Thursdays.").id
    page = seen.go("memories")
    page.get_by_role("link", name="Contradictions").click()
    card = page.locator("main .card").first
    expect(card).to_contain_text("The team deploys on Wednesdays.")
    expect(card).to_contain_text("The team deploys on Thursdays.")
    card.get_by_role("button", name="The newer one holds").click()
    expect(page.locator("main")).to_contain_text("Nothing that is kept contradicts itself")
    assert memory.get(old).superseded_by == new
    page.get_by_role("link", name="Settled").click()
    expect(page.locator("main .card")).to_contain_text("no longer holds")
    page.get_by_role("button", name="Take it back").click()
    expect(page.locator("main")).to_contain_text("None was settled.")
    assert memory.get(old).superseded_by is None
    seen.check()


@pytest.mark.promise("documents.surfaces")
def test_a_document_is_read_and_forgotten(seen: Watched, memory: Memory) -> None:
    """Found with everything else, a hit leads to its section, and that to the whole document."""
    text = b"# <b>Lease</b>\n\n## Rent\n\nThe rent of the houseboat is 900.\n\n## End\n\nIn June."
    kept = memory.add_document(text, name="lease.md", title="<b>Lease</b>").document
    page = seen.go("search?q=rent+of+the+houseboat&kind=document&k=5")
    page.locator(".hit a.where").first.click()
    expect(page.locator("main h1")).to_have_text("<b>Lease</b>")
    expect(page.locator("main")).to_contain_text("The rent of the houseboat is 900.")
    expect(page.locator("main")).not_to_contain_text("In June.")
    page.get_by_role("link", name="All of it").click()
    expect(page.locator("main")).to_contain_text("In June.")
    page = seen.go("memories")
    page.get_by_role("link", name="Documents").click()
    expect(page.locator("main .card", has_text="<b>Lease</b>")).to_have_count(1)
    page.get_by_role("button", name="Forget: <b>Lease</b>").click()
    page.get_by_role("button", name="Forget it").click()
    expect(page.locator("main")).to_contain_text("There are no documents yet.")
    assert memory.documents() == ()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("main .card")).to_contain_text("<b>Lease</b>")
    assert memory.documents() == (kept,)
    seen.check()


@pytest.mark.promise("sync.surfaces")
def test_devices_exchange_and_one_is_removed(seen: Watched, memory: Memory, tmp_path: Path) -> None:
    """The page shows them, exchanges at a click, and asks before it removes one."""
    (tmp_path / "remote").mkdir()
    memory.sync.init(str(tmp_path / "remote"), name="laptop")
    with Memory.open(tmp_path / "other", embedder="hashing", warm=False) as other:
        other.sync.init(
            str(tmp_path / "remote"), key=memory.sync.export_key(), name="<b>old phone</b>"
        )
        other.remember("The kettle is blue.")
        other.sync.now()
    page = seen.go("status")
    page.get_by_role("link", name="Devices").click()
    page.get_by_role("button", name="Exchange now").click()
    expect(page.locator("main")).to_contain_text("received 2 entries")
    row = page.locator("main tr", has_text="<b>old phone</b>")
    row.get_by_role("button", name="Remove").click()
    page.get_by_role("dialog").get_by_role("button", name="Remove").click()
    expect(row).to_contain_text("removed")
    assert [one.removed for one in memory.sync.devices() if not one.this] == [True]
    seen.check()


@pytest.mark.promise("page.namespaces")
def test_another_namespace_is_another_memory(seen: Watched, memory: Memory) -> None:
    """What the page shows is of the chosen namespace alone."""
    memory.scoped("work").remember("Only at work.")
    page = seen.go("memories")
    page.select_option("#namespace", "work")
    expect(page.locator(".memories")).to_contain_text("Only at work.")
    expect(page.locator(".memories li")).to_have_count(1)
    seen.check()


@pytest.mark.promise("page.token")
def test_the_link_of_the_server_opens_the_page(browser: Browser, memory: Memory) -> None:
    """The token in the link is used, kept in this tab, and gone from the address at once."""
    own = "anaphora_" + "5" * 64
    with (
        serving(memory, ServerOptions(require_token=True, own=own)) as url,
        watched(browser, url) as seen,
    ):
        page = seen.page
        page.goto(f"{url}#token={own}")
        page.wait_for_selector(SETTLED)
        expect(page.locator("main")).not_to_contain_text("A token is needed")
        assert own not in page.url
        page.reload()
        page.wait_for_selector(SETTLED)
        expect(page.locator("main")).not_to_contain_text("A token is needed")
        assert not any(own in request for request in seen.requests)
        seen.check()


@pytest.mark.promise("page.token")
def test_the_page_asks_for_a_token_where_one_is_needed(browser: Browser, memory: Memory) -> None:
    """Without a token the page says so; with one it works, and keeps it in this tab alone."""
    made = memory.tokens.create("page", namespaces=["default"])
    with (
        serving(memory, ServerOptions(require_token=True)) as url,
        watched(browser, url) as seen,
    ):
        page = seen.go("memories", wait="dialog input")
        page.fill("dialog input", "wrong")
        page.click("dialog button.primary")
        expect(page.locator("main")).to_contain_text("A token is needed")
        page.fill("dialog input", made.secret)
        page.click("dialog button.primary")
        expect(page.locator(".memories")).to_contain_text("Soup is served on Tuesdays.")
        assert made.secret not in page.evaluate("() => JSON.stringify(localStorage)")
        assert made.secret not in page.url
        assert seen.strangers() == []


@pytest.mark.promise("page.errors")
def test_what_goes_wrong_is_said_in_words(seen: Watched) -> None:
    """The detail of a problem document is on the page, with a way to try again."""
    page = seen.go("memories/there-is-none", wait=".note.bad")
    expect(page.locator(".note.bad")).to_contain_text("there-is-none")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page = seen.go("memories?tag=nowhere")
    expect(page.locator(".empty")).to_contain_text("No memory fits these filters.")
    seen.page.route("**/v1/search", lambda route: route.abort())
    page = seen.go("search?q=queue", wait=f"{SETTLED} .note.bad")
    expect(page.locator(".note.bad")).to_contain_text("The server does not answer")
