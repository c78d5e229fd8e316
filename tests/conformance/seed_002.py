"""Recall over a project: a compact package for a task, with its reasons and how far to trust it."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from tests.conformance.desk import Counting, Desk
from tests.conformance.shop import FILES, QUEUE_FILE, SESSION, SESSION_FILE
from tests.conformance.table import Seed, refusal

from anaphora import Memory
from anaphora.errors import InvalidInput
from anaphora.values.projects import RecallPackage

SEED = Seed("002", "recall and retrieval")
row = SEED.row

REFRESH = "refresh the session token's expiry"
NAMED = "refresh the SessionToken expiry"
OFF_TOPIC = "photosynthesis of orchids in greenhouses"
RIVER = "The turbine is cooled by water from the river."


def indexed(desk: Desk, files: dict[str, str] | None = None, embedder: object = "minilm") -> Memory:
    """A memory of the desk's own that has indexed a project."""
    memory = desk.memory(embedder)
    memory.index_project(desk.project(files or FILES), name="shop")
    memory.ready(60)
    return memory


def paths(package: RecallPackage) -> list[str]:
    """The places to look at first."""
    return [target.path for target in package.primary_targets]


def kinds_of(package: RecallPackage) -> set[str]:
    """The kinds of the targets and memories of a package."""
    kinds_of_targets = {target.kind for target in package.primary_targets}
    return kinds_of_targets | {item.kind for item in package.memories}


def text_of(package: RecallPackage) -> str:
    """All words of a package's answers."""
    said = [item.text for item in package.memories]
    return " ".join([*package.brief, *said, *(item.text for item in package.history)])


def supersede(memory: Memory) -> None:
    """A decision, and the one that replaces it."""
    old = memory.observe("The session token lasts a day.", kind="decision")
    memory.observe("The session token lasts an hour.", kind="decision", supersedes=old.id)


@row("18", "a focus gives a compact package, in Python and on the command line")
def compact(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(REFRESH)
    assert package.primary_targets
    assert 0 < package.tokens <= 2000
    printed = desk.json("project", "recall", NAMED, home=desk.shared.shop.home)
    assert printed["primary_targets"]
    assert printed["quality"]
    return f"{package.tokens} tokens"


@row("20", "recall chooses, ranks, trims and explains")
def explains(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(REFRESH)
    assert package.primary_targets[0].path == SESSION_FILE
    assert all(target.reason for target in package.primary_targets)
    return package.primary_targets[0].reason


@row("37", "one or more focus statements, a list or several arguments")
def statements(desk: Desk) -> str:
    both = ("refresh the SessionToken", "the JobQueue worker takes")
    assert {SESSION_FILE, QUEUE_FILE} <= set(paths(desk.shared.shop.recall_context([*both])))
    printed = desk.json("project", "recall", *both, home=desk.shared.shop.home)
    assert {SESSION_FILE, QUEUE_FILE} <= {target["path"] for target in printed["primary_targets"]}
    return "two statements, both served"


@row("37 terms", "the focus is broken into terms, and the intent inferred")
def terms(desk: Desk) -> str:
    focus = "test the SessionToken refresh in src/shop/session_token.py"
    read = desk.shared.shop.recall_context(focus).focus
    assert "tests" in read.intents
    assert read.terms
    assert read.names
    return f"{', '.join(read.terms)}; {', '.join(read.intents)}"


@row("39", "the intent shapes the evidence: documentation, set-up, code, tests, decisions, history")
def intents(desk: Desk) -> str:
    memory = indexed(desk)
    supersede(memory)
    packages = {
        intent: memory.recall_context(focus)
        for intent, focus in (
            ("docs", "documentation of the session token expiry"),
            ("setup", "how to install and set up shop: dependencies"),
            ("implementation", "implement the session token refresh"),
            ("tests", "tests for the session token refresh"),
            ("decisions", "which decision was made about the session token expiry"),
            ("history", "what was the session token expiry before, and why did it change"),
        )
    }
    first = {intent: paths(package)[0] for intent, package in packages.items()}
    assert first["docs"] == "docs/sessions.md"
    assert first["implementation"] == SESSION_FILE
    assert first["tests"] == "tests/test_session_token.py"
    assert first["setup"] in ("pyproject.toml", "package.json", "docs/sessions.md", "README.md")
    assert "decision" in kinds_of(packages["decisions"])
    assert packages["history"].history
    assert not packages["implementation"].history
    return ", ".join(f"{intent}: {path or 'a note'}" for intent, path in first.items())


@row("41", "no useful terms: no evidence")
def no_terms(desk: Desk) -> str:
    focuses: list[Any] = ["the of and", "??? ---", "", [], ["", " "], "I", "\u200b"]
    for focus in focuses:
        package = desk.shared.shop.recall_context(focus)
        assert (package.primary_targets, package.memories, package.graph) == ((), (), ())
        assert package.quality == "weak"
    return "empty, weak"


@row("45", "retrieval memory of sections, modules, observations, diary")
def kinds(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("The session token's expiry is an hour by decision.", kind="decision")
    memory.write_diary("Extended the expiry of the session token in shop.")
    package = memory.recall_context("continue with the session token expiry")
    assert {"section", "decision", "diary"} <= {item.kind for item in package.memories}
    assert "module" in kinds_of(memory.recall_context("what is in the src/shop module"))
    return "section, decision, diary; module"


@row("45, 47", "a module is found by the words of its document, not by its name alone")
def module_by_its_words(desk: Desk) -> str:
    package = desk.shared.shop.recall_context("sessions, a clock and a queue of jobs")
    assert "module" in kinds_of(package), (kinds_of(package), paths(package))
    return ", ".join(sorted(kinds_of(package)))


@row("47", "exact vocabulary: symbols, paths, commands, decisions, words")
def vocabulary(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("Never log the SessionToken.", kind="decision")
    for focus, path in (
        ("SessionToken", SESSION_FILE),
        (QUEUE_FILE, QUEUE_FILE),
        ("pip install shop", "docs/sessions.md"),
        ("shop.clock", "src/shop/clock.py"),
        ("vite build", "package.json"),
        ("shop-admin", "pyproject.toml"),
    ):
        first = paths(memory.recall_context(focus))[0]
        assert first.startswith(path), (focus, first)
    assert "Never log" in text_of(memory.recall_context("Never log decision"))
    return "a symbol, a path, commands, a module: each first; a decision among the memories"


@row("47 meaning", "meaning re-ranks what words found")
def meaning(desk: Desk) -> str:
    memory = desk.shared.shop
    package = memory.recall_context("refresh the session token", include_sources=True)
    assert package.primary_targets[0].signals["meaning"] > 0
    assert memory.recall_context("prolong the login credential").primary_targets == ()
    value = package.primary_targets[0].signals["meaning"]
    return f"meaning {value:.2f}; without a common word nothing"


class Incompatible(Counting):
    """An embedder of another model, which always fails."""

    def __init__(self) -> None:
        super().__init__(lambda text: True)
        self.name = "other:1"


@row("49", "without embeddings, or with others, words go on")
def without_vectors(desk: Desk) -> str:
    package = indexed(desk, embedder=Incompatible()).recall_context(NAMED)
    assert paths(package)[0] == SESSION_FILE
    assert package.degraded
    indexed(desk).close()
    other = desk.memory("hashing").recall_context(NAMED)
    assert paths(other)[0] == SESSION_FILE
    return str(package.degraded[0])


@row("53", "older search surfaces as a fallback")
def fallback(desk: Desk) -> str:
    package = desk.shared.shop.recall_context("ostgre")
    assert package.degraded
    assert "postgre" in (text_of(package) + " ".join(paths(package))).lower()
    return f"a part of a word: found by a scan, {package.degraded[0]}"


@row("55", "then observations and diary entries directly")
def notes_directly(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("The CalibrationTable is read at the start.")
    memory.write_diary("Wrote the FrobnicatorHandler.")
    assert "CalibrationTable" in text_of(memory.recall_context("alibrationtabl"))
    assert "FrobnicatorHandler" in text_of(memory.recall_context("robnicatorHandle"))
    return "parts of words that only an observation and only a diary entry have: found"


@row("55 missing index", "they are found where the rest is missing")
def notes_without_an_index(desk: Desk) -> str:
    with desk.memory() as memory:
        memory.observe("The turbine is cooled by river water.")
        memory.write_diary("Painted the turbine hall.")
    shutil.rmtree(desk.home / "index", ignore_errors=True)
    memory = desk.memory()
    assert "river" in text_of(memory.recall_context("turbine cooled"))
    assert "Painted" in text_of(memory.recall_context("continue with the turbine hall"))
    return "no project, the index deleted: both come"


@row("55 command line", "`anaphora recall` finds diary entries")
def diary_on_the_command_line(desk: Desk) -> str:
    with desk.memory() as memory:
        memory.write_diary("Looked at how the zebra formatter rounds negative numbers.")
        hits = memory.search("zebra formatter rounds", kinds=("note",), min_confidence=0)
        assert ["zebra formatter" in hit.text for hit in hits] == [True]
    words = ("recall", "zebra formatter rounds", "--kind", "note", "--min-confidence", "0")
    assert "zebra formatter" in desk.anaphora(*words).stdout
    return "a note like others"


@row("57", "nothing is invented")
def nothing_invented(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(OFF_TOPIC)
    assert (package.primary_targets, package.memories, package.graph) == ((), (), ())
    assert package.quality == "weak"
    return "empty, weak"


def signal(desk: Desk, name: str) -> str:
    """A signal of the first target, which must be above 0."""
    package = desk.shared.shop.recall_context("refresh the SessionToken", include_sources=True)
    value = package.primary_targets[0].signals[name]
    assert value > 0
    return f"{name} {value:.2f}"


@row("65", "signal: lexical match")
def signal_words(desk: Desk) -> str:
    return signal(desk, "words")


@row("66", "signal: semantic closeness")
def signal_meaning(desk: Desk) -> str:
    return signal(desk, "meaning")


def first_memory(memory: Memory, focus: str = "how is the turbine cooled") -> Any:
    """The first of the memories of a package, with its signals."""
    item = memory.recall_context(focus, include_sources=True).memories[0]
    assert "river" in item.text
    return item


@row("67", "signal: confidence")
def signal_confidence(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.observe("The turbine is cooled by water from the lake.", importance=1)
    memory.observe(RIVER, importance=5)
    value = first_memory(memory).signals["confidence"]
    return f"importance 5 before 1: confidence {value:.2f}"


@row("68", "signal: recency")
def signal_recency(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.observe("The turbine is cooled by water from the lake.")
    desk.later(days=660)
    memory.observe(RIVER)
    value = first_memory(memory).signals["recency"]
    return f"22 months apart: the fresh one first, recency {value:.2f}"


@row("69", "signal: size cost")
def signal_size(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.observe("The turbine is cooled by water. " + "And a long story beside it. " * 900)
    memory.observe(RIVER)
    value = first_memory(memory, "how is the turbine cooled by water").signals["size"]
    return f"a note of 5,000 words stands behind a short one: size {value:.2f}"


@row("70", "signal: role and intent fit")
def signal_role(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(
        "tests of the session token refresh", include_sources=True
    )
    assert package.primary_targets[0].role == "test"
    return "a question about tests: a test first"


@row("72", "near-duplicates do not drown the rest")
def pruned(desk: Desk) -> str:
    same = (
        "# Turbine cooling\n\nThe turbine is cooled by water from the river, at night too. "
        "The pump is driven by the shaft.\n"
    )
    files = {f"docs/copy_{n}.md": f"{same}\nCopy {n}.\n" for n in range(8)}
    files["docs/pump.md"] = "# Pump\n\nThe pump that takes water for the turbine.\n"
    files["src/turbine_cooling.py"] = (
        '"""How the turbine is cooled by water."""\n\n\nclass Cooling:\n    """Cooling."""\n'
    )
    first = paths(indexed(desk, files).recall_context("how the turbine is cooled by water"))
    copies = [path for path in first if path.startswith("docs/copy_")]
    assert len(copies) <= 2
    assert "src/turbine_cooling.py" in first
    return f"eight copies: {len(copies)} among the targets, the code beside it"


@row("72 notes", "nor do notes that say nearly the same")
def pruned_notes(desk: Desk) -> str:
    memory = desk.memory("minilm")
    for number in range(8):
        memory.observe(f"The turbine is cooled by water from the river, day {number}.")
    memory.observe("The turbine hall is painted green; its water tank too.")
    texts = [item.text for item in memory.recall_context("turbine water").memories]
    assert any("painted" in text for text in texts)
    return f"eight that differ by a day: {len(texts)} memories, the ninth note among them"


@row("76", "entities are found, relations expanded")
def graph(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(NAMED, include_sources=True)
    predicates = {relation.predicate for relation in package.graph}
    assert {"imports", "defines"} <= predicates
    return ", ".join(sorted(predicates))


@row("78", "a sparse graph: recall works from retrieval alone")
def sparse(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.observe(RIVER)
    package = memory.recall_context("how is the turbine cooled")
    assert package.memories
    assert not package.graph
    return "no project, one note: it comes"


@row("78 decisions", "nearby decisions are in the map")
def nearby_decisions(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("We keep src/shop/session_token.py free of I/O.", kind="decision")
    package = memory.recall_context(NAMED)
    concerns = [one for one in package.graph if one.predicate in ("concerns", "applies_to")]
    assert concerns or "free of I/O" in text_of(package)
    return "a decision about a file that the words found"


@row("80", "the graph is led by retrieval: text hits first")
def graph_led(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(NAMED, include_sources=True)
    assert paths(package)[0] == SESSION_FILE
    first = {*paths(package)}
    assert any(one.subject in first or one.object in first for one in package.graph)
    return "relations of what the text found"


@row("80 explained", "a connected candidate is explained by its relation")
def explained_by_a_relation(desk: Desk) -> str:
    files = {
        "src/app/__init__.py": "",
        "src/app/main_panel.py": (
            '"""The main panel."""\nfrom app.linked import rotate\n\n\n'
            'class MainPanel:\n    """Draws the panel."""\n'
        ),
        "src/app/linked.py": (
            '"""Turning of gadgets by degrees."""\n\n\n'
            'def rotate():\n    """Rotate gadget."""\n    return 1\n'
        ),
        "src/app/alone.py": (
            '"""Where gadgets spin in circles."""\n\n\n'
            'def spin():\n    """Rotate gadget."""\n    return 2\n'
        ),
    }
    memory = indexed(desk, files, embedder="hashing")
    package = memory.recall_context("MainPanel rotate gadget", include_sources=True)
    relations = {(one.subject, one.predicate, one.object) for one in package.graph}
    assert ("src/app/main_panel.py", "imports", "src/app/linked.py") in relations
    return "main_panel imports linked, in the graph evidence"


@row("80 history", "superseded and invalidated relations where asked, and only there")
def history(desk: Desk) -> str:
    memory = indexed(desk)
    supersede(memory)
    root = Path(memory.projects()[0].root)
    changed = SESSION.replace("from shop.clock import now", "from shop.wall_clock import now")
    (root / SESSION_FILE).write_text(changed)
    wall_clock = '"""Wall clock."""\n\n\ndef now():\n    return 1\n'
    (root / "src/shop/wall_clock.py").write_text(wall_clock)
    (root / "docs/queue.md").unlink()
    memory.index_project(root, name="shop")
    package = memory.recall_context("why was the session_token changed, what did it import before")
    told = {item.kind for item in package.history}
    assert any("supersed" in kind for kind in told), told
    assert any("invalid" in kind or kind == "superseded_relation" for kind in told), told
    assert not memory.recall_context("implement the session token").history
    return ", ".join(sorted(told))


@row("80 words", "prior work, replacements, migrations or why something changed bring history")
def words_of_history(desk: Desk) -> str:
    memory = indexed(desk)
    supersede(memory)
    asked = (
        "prior work on",
        "replacements for",
        "replacement of",
        "migrations of",
        "migration of",
        "why something changed about",
    )
    counts = {
        words: len(memory.recall_context(f"{words} the session token").history) for words in asked
    }
    assert all(counts.values()), counts
    return "each of the seed's words, in the singular and the plural"


@row("84", "the budget holds")
def budget(desk: Desk) -> str:
    memory = desk.shared.shop
    spent = [memory.recall_context(NAMED, budget=most).tokens for most in (120, 200, 400, 1000)]
    assert all(tokens <= most for tokens, most in zip(spent, (120, 200, 400, 1000), strict=True))
    refusal(InvalidInput, lambda: memory.recall_context("x token", budget=119))
    return f"{spent} of 120, 200, 400, 1,000; 119 is refused"


@row("84 once", "memories are deduplicated")
def deduplicated(desk: Desk) -> str:
    focus = "session token expiry refresh install queue jobs"
    items = desk.shared.shop.recall_context(focus, budget=4000).memories
    assert len({item.id for item in items}) == len({item.text for item in items}) == len(items)
    assert len(items) > 1
    return f"{len(items)} memories, no id and no text twice"


@row("88", "brief: strength and evidence")
def brief(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.observe(RIVER)
    said = " ".join(memory.recall_context("how is the turbine cooled").brief)
    assert "0 files" not in said
    assert "note" in said
    return said


@row("88 diary", "of a diary entry alone, too")
def brief_of_a_diary_entry(desk: Desk) -> str:
    package = diary_alone(desk)
    assert "0 files" not in " ".join(package.brief)
    return " ".join(package.brief)


def diary_alone(desk: Desk) -> RecallPackage:
    """The package of a focus that only a diary entry answers."""
    memory = desk.memory("minilm")
    memory.write_diary(
        "Looked at how the zebra formatter rounds; it was wrong for negative numbers."
    )
    return memory.recall_context("the zebra formatter rounds wrong")


@row("89", "primary targets: files, modules or records")
def targets(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("SessionToken must never be logged.", kind="decision")
    memory.write_diary("Worked on SessionToken logging; next: rotate.")
    focuses = (
        "the src/shop module",
        "package shop",
        "src/shop",
        "SessionToken logged decision",
        "continue SessionToken logging",
    )
    first = [
        target for focus in focuses for target in memory.recall_context(focus).primary_targets[:3]
    ]
    assert {"module", "decision"} <= {target.kind for target in first}
    assert all(target.path != target.kind for target in first)
    assert any(target.path == "" for target in first)
    return ", ".join(sorted({target.kind for target in first}))


@row("90", "memories: sections, modules, observations, diary entries")
def memories(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("SessionToken must never be logged.", kind="decision")
    memory.write_diary("Looked at how SessionToken is logged.")
    focuses = ("continue with SessionToken logged", "what is in the src/shop module")
    told = {
        item.kind
        for focus in (*focuses, "SessionToken logged")
        for item in memory.recall_context(focus).memories
    }
    assert {"section", "decision", "diary", "module"} <= told, told
    return ", ".join(sorted(told))


@row("90 diary", "a diary entry that matches an ordinary focus is among the memories")
def diary_for_any_focus(desk: Desk) -> str:
    memory = indexed(desk)
    memory.write_diary("Looked at how SessionToken is logged; the zebra formatter was wrong.")
    package = memory.recall_context("the zebra formatter of SessionToken")
    assert "diary" in {item.kind for item in package.memories}, kinds_of(package)
    return "beside the sections of files"


@row("91", "graph evidence: active relations")
def active(desk: Desk) -> str:
    package = desk.shared.shop.recall_context(NAMED)
    assert package.graph
    assert {relation.status for relation in package.graph} == {"active"}
    return f"{len(package.graph)} active relations"


@row("92", "history evidence where relevant")
def history_when_asked(desk: Desk) -> str:
    memory = indexed(desk)
    supersede(memory)
    assert not memory.recall_context("implement the session token").history
    assert memory.recall_context("why did the session token change").history
    return "not for a task of implementation"


@row("93", "quality: strong, partial, weak")
def quality(desk: Desk) -> str:
    focuses = (
        "refresh the SessionToken expiry in session_token.py",
        "jobs worker",
        "photosynthesis of orchids",
        "the shop worker of a clock and lunch with orchids",
    )
    labels = {focus: desk.shared.shop.recall_context(focus).quality for focus in focuses}
    assert set(labels.values()) == {"strong", "partial", "weak"}, labels
    return ", ".join(labels.values())


@row("95", "compact by default, source detail on request, over MCP too")
def detail(desk: Desk) -> str:
    plain = desk.shared.shop.recall_context(NAMED)
    full = desk.shared.shop.recall_context(NAMED, include_sources=True)
    assert not plain.primary_targets[0].signals
    assert len(full.primary_targets[0].signals) == 6
    assert len(full.graph) >= len(plain.graph)
    assert not any(item.signals for item in plain.memories)
    tools = desk.shared.all_tools
    tools.call("observe", text=RIVER, kind="decision")
    asked = {"focus": "turbine cooled by river water", "includeSources": True}
    assert tools.call("recall_context", **asked)["data"]["primary_targets"][0]["signals"]
    return "six signals and all relations with sources"


@row("86-93 surfaces", "the same package over HTTP and MCP")
def surfaces(desk: Desk) -> str:
    parts = {"brief", "primary_targets", "memories", "graph", "history", "quality"}
    indexed(desk, embedder="hashing").close()
    client = desk.client()
    focus = ["refresh the SessionToken", "JobQueue"]
    body = client.post("/v1/context/recall", json={"focus": focus, "budget": 500}).json()
    assert parts <= set(body)
    assert body["primary_targets"]
    refused = client.post("/v1/context/recall", json={"focus": "x token", "budget": 119})
    assert refused.status_code == 422
    tools = desk.shared.all_tools
    tools.call("observe", text=RIVER, kind="decision")
    package = tools.call("recall_context", focus=["turbine cooled", "river water"])["data"]
    assert parts <= set(package)
    assert package["quality"] != "weak"
    tools.refusal("recall_context", focus="turbine", budget=119)
    tools.call("recall_context", focus="turbine", budget=120)
    return "the six parts; a budget of 119 is refused, 120 is not"


@row("101-103", "strong: good evidence for more than one target")
def strong(desk: Desk) -> str:
    package = desk.shared.shop.recall_context("refresh the SessionToken expiry in session_token.py")
    assert package.quality == "strong"
    assert len(package.primary_targets) > 1
    alone = '"""Frobnicate the zorgle with quux and blip."""\n\n\ndef frobnicate_zorgle(): ...\n'
    memory = indexed(desk, {"a.py": alone})
    other = memory.recall_context("frobnicate the zorgle quux blip in a.py")
    assert paths(other) == ["a.py"]
    assert other.quality != "strong"
    return f"strong with {len(package.primary_targets)} targets, {other.quality} with one"


@row("101-103 partial", "partial: useful evidence, so the package is not empty")
def partial(desk: Desk) -> str:
    package = diary_alone(desk)
    assert package.quality == "weak" or package.primary_targets or package.memories, package.brief
    return f"{package.quality}: {len(package.memories)} memories"


@row("105", "the label is a warning to verify")
def warning(desk: Desk) -> str:
    package = desk.shared.shop.recall_context("how is a token extended by photosynthesis")
    assert package.quality == "partial"
    assert "verify" in package.brief[0]
    return package.brief[0]
