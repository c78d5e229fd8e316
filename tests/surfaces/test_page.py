"""The page that `anaphora serve` shows, in a real browser: views, keyboard, widths, themes."""

from __future__ import annotations

import io
import re
import threading
import zipfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, Page, expect
from tests.surfaces.page_desk import SETTLED, Watched, chromium, serving, watched

from anaphora import Memory, Message
from anaphora.testing import ScriptedModel

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
    "memory": "memories/{memory}",
    "documents": "documents",
    "document": "documents/{document}",
    "notes": "notes",
    "note": "notes/{note}",
    "diary": "notes?show=diary",
    "project": "project?focus=where%20is%20a%20parcel%20tracked&sources=1",
    "map": "project/map",
    "ask": "ask",
    "answer": "ask/{trace}",
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


AXE = """async ([theme, rules]) => {
  document.documentElement.dataset.theme = theme;
  const options = {runOnly: rules, resultTypes: ["violations"], preload: false, iframes: false};
  const found = await axe.run(document, options);
  return found.violations.map((one) => `${one.id}: ${one.nodes.map((n) => n.html).join(" ")}`);
}"""
CONTRAST = {"type": "rule", "values": ["color-contrast"]}
RULES = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"]


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
    ids: dict[str, str]

    def view(self, name: str) -> str:
        """The address of a view; that of one memory is that of one with a history."""
        return VIEWS[name].format(**self.ids)

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
        memory.remember("The team deploys on Wednesdays.")
        memory.pin(memory.remember("The team deploys on Thursdays.").id)
        lease = memory.add_document(b"# Lease\n\nThe rent is 900.", name="lease.md").document
        ids = {
            "memory": memory.list({"path": "ferry.old"}).items[0].id,
            "note": memory.notes()[0].id,
            "trace": memory.traces()[0].id,
            "document": lease.id,
        }
        with serving(memory) as url:
            yield Still(browser, memory, url, ids)


@pytest.mark.promise("page.views")
def test_every_view_shows_what_is_there_and_asks_nobody_else(still: Still) -> None:
    """Each view shows real data, without an error, a violated policy or a foreign request."""
    with still.seen() as seen:
        shown = {
            "search": ["ferry.queue", "because Redis lost 214 jobs", "hits in"],
            "search-filtered": ["ferry.queue", "Look among"],
            "search-empty": ["1 contradiction", "4 messages", "5 memories", "1 document", "Recent"],
            "timeline": ["Soup is served on Tuesdays.", "scan events", "The queue was moved."],
            "conversations": ["We keep the jobs in Redis for now.", "Soup again on Tuesday."],
            "conversation": ["Ines", "because Redis lost 214 jobs"],
            "memories": ["Soup is served on Tuesdays.", "event", "ferry.queue", "5 memories"],
            "memory": ["What ferry.old was over time", "Replaces", "The queue lies in Redis."],
            "memories-searched": ["Soup is served on Tuesdays.", "the best first"],
            "notes": ["A parcel is tracked by its scan events.", "decision", "parcels"],
            "diary": ["The queue was moved."],
            "project": ["track/parcel.py", "scan events", "tokens"],
            "map": ["track", "store"],
            "ask": ["What does nobody know of Zanzibar?"],
            "questions": ["What does nobody know of Zanzibar?", "nothing known"],
            "contradictions": ["The team deploys on Wednesdays.", "The newer one holds"],
            "documents": ["Lease", "1 document"],
            "document": ["The rent is 900."],
            "note": ["A parcel is tracked by its scan events."],
            "answer": ["What does nobody know of Zanzibar?", "Answer"],
            "core": ["The team deploys on Thursdays.", "pinned 1"],
            "devices": ["This memory is on this computer alone."],
            "status": ["All is well", "Write path", "recall"],
        }
        for name, words in shown.items():
            page = seen.go(still.view(name))
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
    memory.search(QUERY, kinds=("turn",), read=32)
    assert memory.ready(60)
    with still.seen() as seen:
        page = seen.go(VIEWS["search"] + "&kind=turn")
        hit = memory.search(QUERY, kinds=("turn",), read=32)[0]
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
        assert {"memory", "conversation", "note"} <= kinds
        assert "redis" in {one.lower() for one in page.locator(".hit mark").all_inner_texts()}
        page = seen.go("search?q=queue&kind=memory")
        assert set(page.locator(".hit .badge.kind").all_inner_texts()) == {"memory"}
        page = seen.go("search?q=queue&tag=nowhere")
        expect(page.locator(".empty")).to_contain_text("Nothing that is stored")
        seen.check()


@pytest.mark.promise("page.search")
def test_a_hit_is_titled_and_says_in_one_go_what_replaced_it(seen: Watched, memory: Memory) -> None:
    """A turn by project, conversation, day and speaker; what is outdated names the newer value."""
    for day, port in ((10, 5433), (19, 5439)):
        memory.conversations.append(
            f"s{day}", "user", f"Staging's database listens on port {port}.", speaker="Rafi",
            ts=datetime(2026, 3, day, 9, tzinfo=UTC),
        )  # fmt: skip
        memory.conversations.set_title(f"s{day}", f"Servers, part {day}")
    memory.note_session(["s10"], client="claude-code", directory="/home/rafi/tideline")
    page = seen.go("search?q=which+port+is+the+staging+database+on&kind=turn,memory")
    old = page.locator(".hit", has_text="5433.").last
    expect(old.locator("header")).to_contain_text("tideline / Servers, part 10")
    expect(old.locator("header")).to_contain_text("Mar 10, 2026 · Rafi")
    expect(old.locator(".version.gone")).to_have_text(
        "Replaced on Mar 19, 2026 by Staging's database listens on port 5439."
    )
    expect(old.locator(".version a")).to_have_attribute("href", "#/conversations/s19?turn=0")
    new = page.locator(".hit", has=page.get_by_role("link", name="Servers, part 19", exact=True))
    expect(new.locator(".version")).to_have_text(
        "Replaces (Mar 10, 2026) Staging's database listens on port 5433."
    )
    page = seen.go("search?q=soup&kind=memory")
    expect(page.locator(".hit .where")).to_have_text(["Soup is served on Tuesdays."])
    seen.check()


@pytest.mark.promise("page.narrow")
def test_the_first_hit_is_on_the_first_screen_of_a_phone(still: Still) -> None:
    """At 390 pixels the first hit is to be seen without scrolling, and its whole text is."""
    with still.seen(viewport={"width": 390, "height": 844}) as seen:
        box = seen.go(VIEWS["search"]).locator(".hit").first.bounding_box()
        assert box is not None
        assert box["y"] + box["height"] < 844


def sent_by_whatsapp() -> bytes:
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
        watched(browser, url, axe=True) as seen,
    ):
        page = seen.go("search")
        assert page.evaluate(AXE, ["light", RULES]) == []
        expect(page.locator(".first-run")).to_contain_text("anaphora setup claude-code")
        page.fill("[name=fact]", "The pot is on the sill.")
        page.keyboard.press("Enter")
        expect(page.locator("#toast")).to_contain_text("It is remembered.")
        expect(page.locator(".tiles")).to_have_text("1 memory")
        page.get_by_role("button", name="Import").click()
        page.set_input_files("dialog input[type=file]", file)
        page.click("dialog button.primary")
        expect(page.locator("dialog")).to_contain_text("chat.jsonl: 1 message in 1 conversation")
        page.click("dialog button.primary")
        expect(page.locator("main")).to_contain_text("1 message")
        for name, data, words in (
            ("chat.jsonl", lines.encode(), "chat.jsonl: nothing new in it"),
            (
                "blank.jsonl",
                lines.replace("The ferry leaves at nine.", " ").encode(),
                "blank message: 1",
            ),
            ("WhatsApp.zip", sent_by_whatsapp(), "WhatsApp.zip: 1 document."),
        ):
            page.locator("#intake").click()
            given = {"name": name, "mimeType": "application/octet-stream", "buffer": data}
            page.set_input_files("dialog input[type=file]", given)  # type: ignore[arg-type]
            page.click("dialog button.primary")
            expect(page.locator("dialog")).to_contain_text(words)
            if name != "WhatsApp.zip":
                page.click("dialog button.primary")
        # Vectors of what came in are made behind it, without a word of the user.
        expect(page.locator("#work")).to_be_hidden()
        assert memory.stats().pending == 0
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
        expect(page.locator("dialog")).to_contain_text("more.jsonl: 1 message in 1 conversation")
        page.click("dialog button[type=submit]")
        assert {one.conversation_id for one in memory.conversations.list()} == {
            "jsonl_a",
            "jsonl_b",
        }
        page = seen.go("ask")
        page.fill("[name=question]", "When does the ferry leave?")
        page.click("form [type=submit]")
        expect(page.locator(".answer")).to_contain_text("no model was asked")
        assert not re.search(r"\b0(\.0)? |no cost", page.locator(".answer .meta").inner_text())
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
        for key in ("Tab", "Tab", "Enter", "Enter"):
            page.keyboard.press(key)
        expect(page.locator("dialog")).to_be_visible()
        page.keyboard.press("Escape")
        expect(page.locator("dialog")).to_be_hidden()
        expect(page.locator(".turn.found").get_by_role("button")).to_be_focused()
        # From anywhere to the search box, down into the hits, and up again.
        page.keyboard.press("/")
        expect(page.locator("[name=q]")).to_be_focused()
        page.keyboard.type(QUERY)
        page.keyboard.press("Enter")
        page.wait_for_selector(".hit")
        page.keyboard.press("ArrowDown")
        expect(page.locator(".hit a.where").first).to_be_focused()
        page.keyboard.press("ArrowDown")
        expect(page.locator(".hit a.where").nth(1)).to_be_focused()
        page.keyboard.press("Control+k")
        expect(page.locator("[name=q]")).to_be_focused()
        page = seen.go("memories")
        page.get_by_role("button", name="Actions: Soup").focus()
        for key in ("Enter", "ArrowUp"):
            page.keyboard.press(key)
        expect(page.get_by_role("menuitem", name="Delete for good")).to_be_focused()
        page.keyboard.press("Escape")
        expect(page.get_by_role("button", name="Actions: Soup")).to_be_focused()


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


@pytest.mark.promise("page.contrast", "page.narrow")
def test_every_view_holds_wcag_aa(still: Still) -> None:
    """By axe: names, roles, order and contrast, wide and narrow, in light and in dark.

    At 360 pixels none scrolls sideways.
    """
    violations: list[Any] = []
    with still.seen(axe=True) as seen:
        for name in VIEWS:
            page = seen.go(still.view(name))
            for width in (1280, 390):
                page.set_viewport_size({"width": width, "height": 844})
                for theme in ("light", "dark"):
                    # What a theme changes is the contrast.
                    rules = RULES if theme == "light" else CONTRAST
                    violations += [
                        (name, width, theme, one) for one in page.evaluate(AXE, [theme, rules])
                    ]
            page.set_viewport_size({"width": 360, "height": 740})
            wide = page.evaluate("() => document.documentElement.scrollWidth")
            violations += [(name, "scrolls sideways", wide)] if wide > 360 else []
        page = seen.go("memories")
        page.get_by_role("button", name="Actions: The queue lies in a").click()
        violations += page.evaluate(AXE, ["dark", RULES])
        page.get_by_role("menuitem", name="Edit").click()
        violations += page.evaluate(AXE, ["light", RULES])
    assert violations == []


@pytest.mark.promise("page.contrast")
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_chosen_theme_stays(still: Still, scheme: Any) -> None:
    """The button says what it is of, and what was chosen is there after the page is loaded anew."""
    ground = "() => getComputedStyle(document.body).backgroundColor"
    with still.seen(color_scheme=scheme) as seen:
        page = seen.go("search")
        before = page.evaluate(ground)
        switcher = page.get_by_role("button", name="Theme: system. Change it")
        expect(switcher).to_have_text("Theme: system")
        switcher.click()
        page.click("#theme") if scheme == "light" else None
        after = page.evaluate(ground)
        assert after != before
        page.reload()
        assert page.evaluate(ground) == after


def act(page: Page, name: str, deed: str) -> None:
    """Do something with the thing of a row, by its menu."""
    page.get_by_role("button", name=f"Actions: {name}").click()
    page.get_by_role("menuitem", name=deed).click()


@pytest.mark.promise("page.forgets")
def test_forgetting_in_the_page_is_forgetting(seen: Watched, memory: Memory) -> None:
    """What is deleted is gone from memory, and the page names the turns that hold the words."""
    memory.remember("The queue leaves Redis, because Redis lost 214 jobs.", tags=["twice"])
    page = seen.go("memories?tag=twice")
    act(page, "The queue leaves", "Delete for good …")
    page.click("dialog button.danger")
    expect(page.locator("#toast")).to_contain_text("Deleted: “The queue leaves Redis")
    expect(page.locator("#toast .undo")).to_have_count(0)
    link = page.locator("#toast a")
    expect(link).to_have_text("We keep the jobs in Redis for now., message 3")
    assert not memory.list({"tags": {"contains": "twice"}}).items
    link.click()
    expect(page.locator(".turn.found")).to_contain_text("214 jobs")
    act(page, "message 3", "Erase its words …")
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
    """One step forgets a memory, no dialog covers its Undo; several that were chosen come back."""
    page = seen.go("memories")
    before = {one.id for one in memory.list().items}
    act(page, "Soup", "Forget")
    expect(page.locator("#toast")).to_contain_text("Forgotten: “Soup is served on Tuesdays.”")
    expect(page.locator("dialog")).to_be_hidden()
    expect(page.locator(".bulk")).to_contain_text(f"{len(before) - 1} memories")
    expect(page.locator(".memories a:focus")).to_have_count(1)
    assert {one.text for one in memory.list().items}.isdisjoint({"Soup is served on Tuesdays."})
    page.keyboard.press("Control+z")
    expect(page.locator(".memories")).to_contain_text("Soup is served on Tuesdays.")
    page.get_by_label("Select all on this page").check()
    page.get_by_role("button", name=f"Forget {len(before)} memories").click()
    page.click("dialog button.danger")
    expect(page.locator(".empty")).to_contain_text("Nothing is remembered here yet.")
    assert memory.list().items == ()
    page.locator("#toast").get_by_role("button", name="Undo").click()
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
    act(page, "Parcels", "Forget")
    expect(page.locator("main")).not_to_contain_text("Parcels are weighed twice.")
    page.locator("#toast").get_by_role("button", name="Undo").click()
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
    act(page, "The queue lies in PostgreSQL", "Edit")
    page.fill("dialog [name=text]", "The queue lies in two places.")
    page.fill("dialog [name=tags]", "queue, new")
    page.click("dialog button.primary")
    expect(page.locator("#toast")).to_contain_text("the one before is in the history")
    act(page, "The queue lies in two", "Open, with its history")
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
    page.locator(".row a", has_text="How often was Redis mentioned?").click()
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
    """Included by its menu, moved, unpinned; a rule that came by itself is left out."""
    ids = [memory.remember(text).id for text in ("Tea at four.", "Graz is home.", "Never log.")]
    for text in ("Tea at four.", "Graz is home."):
        page = seen.go("memories")
        act(page, text, "Always include")
        expect(page.locator("#toast")).to_contain_text("included in every session")
    page.locator("#toast").get_by_role("link", name="Its place").click()
    expect(page.locator("h1")).to_have_text("Always included")
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
    """Announced with their number; a double click settles one, and its toast takes that back."""
    old = memory.remember("The team deploys on Wednesdays.").id
    new = memory.remember("The team deploys on Thursdays.").id
    memory.remember("The review of the week is on Mondays at ten.")
    memory.remember("The review of the week is on Fridays at ten.")
    page = seen.go("search")
    expect(page.locator("#views")).to_contain_text("Contradictions 2")
    page.get_by_role("link", name="Decide what holds").click()
    card = page.locator("main .card", has_text="The team deploys")
    expect(card).to_contain_text("The team deploys on Wednesdays.")
    expect(card).to_contain_text("The team deploys on Thursdays.")
    card.get_by_role("button", name="The newer one holds").dblclick()
    expect(page.locator("main .card")).to_have_count(2)
    expect(card).to_contain_text("settled")
    expect(page.locator("#views")).to_contain_text("Contradictions 1")
    expect(page.locator("main .summary")).to_have_text("1 contradiction, 1 settled just now")
    assert memory.get(old).superseded_by == new
    assert len(memory.contradictions()) == 1
    page.locator("#toast").get_by_role("button", name="Undo").click()
    expect(card.get_by_role("button", name="Both hold")).to_be_visible()
    assert memory.get(old).superseded_by is None
    card.get_by_role("button", name="The newer one holds").click()
    page.get_by_role("link", name="Settled").click()
    expect(card).to_contain_text("no longer holds")
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
    page.get_by_role("link", name="All documents").click()
    expect(page.locator("main .row", has_text="<b>Lease</b>")).to_have_count(1)
    act(page, "<b>Lease</b>", "Forget")
    expect(page.locator("main")).to_contain_text("There are no documents yet.")
    assert memory.documents() == ()
    page.get_by_role("button", name="Undo").click()
    expect(page.locator("main .row")).to_contain_text("<b>Lease</b>")
    assert memory.documents() == (kept,)
    seen.check()


@pytest.mark.promise("sync.surfaces")
def test_devices_exchange_and_one_is_removed(seen: Watched, memory: Memory, tmp_path: Path) -> None:
    """The page shows them and their conflicts, exchanges at a click, and asks before it removes
    one."""
    (tmp_path / "remote").mkdir()
    memory.remember("The kettle costs 20.", path="kettle.price")
    memory.sync.init(str(tmp_path / "remote"), name="laptop")
    with Memory.open(tmp_path / "other", embedder="hashing", warm=False) as other:
        other.sync.init(
            str(tmp_path / "remote"), key=memory.sync.export_key(), name="<b>old phone</b>"
        )
        other.remember("The kettle costs 30.", path="kettle.price")
        other.sync.now()
    page = seen.go("status")
    expect(page.locator("main")).to_contain_text("only the user who runs the server can read it")
    page.get_by_role("link", name="Devices").click()
    page.get_by_role("button", name="Exchange now").click()
    expect(page.locator("main")).to_contain_text("received 2 entries")
    expect(page.locator(".note.warn")).to_contain_text("1 conflict of two devices")
    expect(page.locator(".note.warn")).to_contain_text(
        '<b>old phone</b> said "The kettle costs 30."'
    )
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
        serving(memory, {"require_token": True, "own": own}) as url,
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
        serving(memory, {"require_token": True}) as url,
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
    expect(page.locator(".note.bad .next")).to_contain_text("Go back and reload")
    expect(page.get_by_role("button", name="Try again")).to_be_visible()
    page = seen.go("memories?tag=nowhere")
    expect(page.locator(".empty")).to_contain_text("No memory fits these filters.")
    seen.page.route("**/v1/search", lambda route: route.abort())
    page = seen.go("search?q=queue", wait=f"{SETTLED} .note.bad")
    expect(page.locator(".note.bad")).to_contain_text("The server does not answer")
    expect(page.locator(".note.bad .next")).to_contain_text("Start Anaphora again")
