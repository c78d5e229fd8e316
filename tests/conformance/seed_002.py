"""Recall over a project: a compact package for a task, with its reasons and how far to trust it."""

from __future__ import annotations

from tests.conformance.desk import Counting, Desk
from tests.conformance.table import Seed

from anaphora import Memory
from anaphora.values.projects import RecallPackage

SEED = Seed("002", "recall and retrieval")
row = SEED.row

SESSION = '''"""Tokens that a signed-in session carries."""
from shop.clock import now


class SessionToken:
    """A token with its expiry; refresh() makes it last longer."""

    def refresh(self) -> None:
        """Put the expiry an hour from now."""
        self.expiry = now() + 3600
'''
FILES = {
    "README.md": "# Shop\n\nA shop with signed-in sessions and a job queue.\n",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = ["redis"]\n',
    "src/shop/__init__.py": '"""The shop: sessions, a clock and a queue of jobs."""\n',
    "src/shop/session_token.py": SESSION,
    "src/shop/clock.py": (
        '"""The time."""\n\n\ndef now() -> float:\n    """Seconds."""\n    return 0.0\n'
    ),
    "src/shop/queue_postgres.py": (
        '"""The job queue, kept in PostgreSQL."""\n\n\nclass JobQueue:\n'
        '    """Jobs wait here until a worker takes them."""\n'
    ),
    "tests/test_session_token.py": (
        "from shop.session_token import SessionToken\n\n\n"
        "def test_refresh() -> None:\n    SessionToken().refresh()\n"
    ),
    "docs/sessions.md": (
        "# Sessions\n\nHow the expiry of a session token is extended.\n\n"
        "## Installing\n\nRun `pip install shop` to set up sessions.\n"
    ),
}
SESSION_FILE = "src/shop/session_token.py"


def indexed(
    desk: Desk, files: dict[str, str] | None = None, embedder: object = "hashing"
) -> Memory:
    """A memory that has indexed a project."""
    memory = desk.memory(embedder)
    memory.index_project(desk.project(files or FILES), name="shop")
    return memory


def paths(package: RecallPackage) -> list[str]:
    """The places to look at first."""
    return [target.path for target in package.primary_targets]


def text_of(package: RecallPackage) -> str:
    """All words of a package's answers."""
    return " ".join(
        [*package.brief, *(m.text for m in package.memories), *(h.text for h in package.history)]
    )


@row("18", "a focus gives a compact package")
def compact(desk: Desk) -> str:
    package = indexed(desk).recall_context("refresh the session token's expiry")
    assert package.primary_targets
    assert 0 < package.tokens <= 2000
    return f"{package.tokens} tokens"


@row("20", "recall chooses, ranks, trims and explains")
def explains(desk: Desk) -> str:
    package = indexed(desk).recall_context("refresh the session token's expiry")
    assert package.primary_targets[0].path == SESSION_FILE
    assert all(target.reason for target in package.primary_targets)
    return package.primary_targets[0].reason


@row("37", "one or more focus statements")
def statements(desk: Desk) -> str:
    package = indexed(desk).recall_context(["refresh the SessionToken", "the JobQueue's worker"])
    assert {SESSION_FILE, "src/shop/queue_postgres.py"} <= set(paths(package))
    return "two statements, both served"


@row("37 terms", "the focus is broken into terms, and the intent inferred")
def terms(desk: Desk) -> str:
    focus = indexed(desk).recall_context("test the SessionToken refresh").focus
    assert "tests" in focus.intents
    assert focus.terms
    return f"{', '.join(focus.terms)}; {', '.join(focus.intents)}"


@row("39", "the intent shapes the evidence")
def intents(desk: Desk) -> str:
    memory = indexed(desk)
    first = {
        asked: paths(memory.recall_context(asked))[0]
        for asked in (
            "documentation of session token expiry",
            "tests of the session token refresh",
            "implement the session token refresh",
        )
    }
    assert list(first.values()) == [
        "docs/sessions.md",
        "tests/test_session_token.py",
        SESSION_FILE,
    ]
    return "documentation, tests, code: each its own first target"


@row("41", "no useful terms: no evidence")
def no_terms(desk: Desk) -> str:
    memory = indexed(desk)
    for asked in ("the of and", "??? ---", "\u200b"):
        package = memory.recall_context(asked)
        assert not package.primary_targets
        assert not package.memories
        assert package.quality == "weak"
    return "empty, weak"


@row("45", "retrieval memory of sections, modules, observations, diary")
def kinds(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("The session token's expiry is an hour by decision.", kind="decision")
    memory.write_diary("Extended the expiry of the session token.")
    found = {
        m.kind for m in memory.recall_context("continue with the session token expiry").memories
    }
    found |= {t.kind for t in memory.recall_context("the src/shop module").primary_targets}
    assert {"section", "decision", "diary", "module"} <= found
    return ", ".join(sorted(found))


@row("47", "exact vocabulary: symbols, paths, commands, decisions, words")
def vocabulary(desk: Desk) -> str:
    memory = indexed(desk)
    for asked, path in (
        ("SessionToken", SESSION_FILE),
        ("src/shop/queue_postgres.py", "src/shop/queue_postgres.py"),
        ("pip install shop", "docs/sessions.md"),
    ):
        assert paths(memory.recall_context(asked))[0].startswith(path)
    return "a symbol, a path, a command: each found and named in the reason"


@row("47 meaning", "meaning re-ranks what words found")
def meaning(desk: Desk) -> str:
    memory = indexed(desk, embedder="minilm")
    memory.ready()
    found = memory.recall_context("refresh the session token", include_sources=True)
    assert found.primary_targets[0].signals["meaning"] > 0
    assert not memory.recall_context("photosynthesis of orchids").primary_targets
    return (
        f"meaning {found.primary_targets[0].signals['meaning']:.2f}; without a common word nothing"
    )


@row("49", "without embeddings, words go on")
def without_vectors(desk: Desk) -> str:
    memory = indexed(desk, embedder=Counting(lambda text: True))
    package = memory.recall_context("refresh the SessionToken expiry")
    assert paths(package)[0] == SESSION_FILE
    assert package.degraded
    return str(package.degraded[0])


@row("53", "older search surfaces as a fallback")
def fallback(desk: Desk) -> str:
    package = indexed(desk).recall_context("ostgre")
    assert package.degraded
    assert "postgre" in (text_of(package) + " ".join(paths(package))).lower()
    return f"a part of a word: found by a scan, {package.degraded[0]}"


@row("55", "then observations and diary directly")
def notes_directly(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("The CalibrationTable is read at the start.")
    memory.write_diary("Wrote the FrobnicatorHandler.")
    assert "CalibrationTable" in text_of(memory.recall_context("alibrationtabl"))
    assert "FrobnicatorHandler" in text_of(memory.recall_context("robnicatorHandle"))
    return "a part of a word that only a note or a diary entry has: found"


@row("55 recall", "diary entries are found by recall")
def diary_found(desk: Desk) -> str:
    memory = desk.memory("minilm")
    text = "Looked at how the zebra formatter rounds; it was wrong for negative numbers."
    memory.write_diary(text, subject="zebra formatter")
    for kinds in (("note",), ("memory", "note", "turn", "file")):
        assert [h.text for h in memory.search("zebra formatter rounds wrong", kinds=kinds)] == [
            text
        ]
    assert [h.text for h in memory.recall("zebra formatter rounds wrong")] == [text]
    return "among notes"


@row("57", "nothing is invented")
def nothing_invented(desk: Desk) -> str:
    package = indexed(desk).recall_context("photosynthesis of orchids in greenhouses")
    assert (package.primary_targets, package.memories, package.quality) == ((), (), "weak")
    return "empty, weak"


def signal(desk: Desk, name: str) -> float:
    """A signal of the first target."""
    memory = indexed(desk)
    package = memory.recall_context("refresh the SessionToken expiry", include_sources=True)
    return package.primary_targets[0].signals[name]


@row("65", "signal: lexical match")
def signal_words(desk: Desk) -> str:
    assert signal(desk, "words") > 0
    return f"words {signal(desk, 'words'):.2f}"


@row("66", "signal: semantic closeness")
def signal_meaning(desk: Desk) -> str:
    assert signal(desk, "meaning") > 0
    return f"meaning {signal(desk, 'meaning'):.2f}"


@row("67", "signal: confidence")
def signal_confidence(desk: Desk) -> str:
    memory = desk.memory()
    memory.observe("The turbine is cooled by water from the lake.", importance=1)
    memory.observe("The turbine is cooled by water from the river.", importance=5)
    found = memory.recall_context("how is the turbine cooled", include_sources=True).memories
    assert "river" in found[0].text
    return f"importance 5 before 1: {dict(found[0].signals).get('confidence')}"


@row("68", "signal: recency")
def signal_recency(desk: Desk) -> str:
    memory = desk.memory()
    memory.observe("The turbine is cooled by water from the lake.")
    desk.later(days=660)
    memory.observe("The turbine is cooled by water from the river.")
    found = memory.recall_context("how is the turbine cooled", include_sources=True).memories
    assert "river" in found[0].text
    return "22 months apart: the fresh one first"


@row("69", "signal: size cost")
def signal_size(desk: Desk) -> str:
    memory = desk.memory()
    memory.observe("The turbine is cooled by water. " + "And a long story beside it. " * 900)
    memory.observe("The turbine is cooled by water from the river.")
    found = memory.recall_context("how is the turbine cooled", include_sources=True).memories
    assert "river" in found[0].text
    return "a note of 5,000 words stands behind a short one"


@row("70", "signal: role and intent fit")
def signal_role(desk: Desk) -> str:
    memory = indexed(desk)
    found = memory.recall_context("tests of the session token refresh", include_sources=True)
    assert found.primary_targets[0].role == "test"
    return "a question about tests: a test first"


@row("72", "near-duplicates do not drown the rest")
def pruned(desk: Desk) -> str:
    same = "# Turbine cooling\n\nThe turbine is cooled by water from the river, at night too.\n"
    files = {f"docs/copy_{n}.md": same + f"\nCopy {n}.\n" for n in range(8)}
    files["src/turbine_cooling.py"] = '"""How the turbine is cooled."""\n\n\nclass Cooling: ...\n'
    found = paths(indexed(desk, files).recall_context("how the turbine is cooled by water"))
    copies = [path for path in found if path.startswith("docs/copy_")]
    assert len(copies) <= 2
    assert "src/turbine_cooling.py" in found
    return f"eight copies: {len(copies)} among the targets, the code beside it"


@row("76", "entities are found, relations expanded")
def graph(desk: Desk) -> str:
    package = indexed(desk).recall_context("refresh the SessionToken expiry", include_sources=True)
    predicates = {relation.predicate for relation in package.graph}
    assert {"imports", "defines"} & predicates
    return ", ".join(sorted(predicates))


@row("78", "a sparse graph: recall works from retrieval alone")
def sparse(desk: Desk) -> str:
    memory = desk.memory()
    memory.observe("The turbine is cooled by water from the river.")
    assert memory.recall_context("how is the turbine cooled").memories
    return "no project, one note: it comes"


@row("80", "the graph is led by retrieval")
def graph_led(desk: Desk) -> str:
    package = indexed(desk).recall_context("refresh the SessionToken expiry", include_sources=True)
    found = {*paths(package), "SessionToken", "src/shop"}
    assert any(r.subject in found or r.object in found for r in package.graph)
    return "relations of what the text found"


@row("80 history", "replaced, superseded and invalidated relations where asked")
def history(desk: Desk) -> str:
    memory = indexed(desk)
    old = memory.observe("The session token lasts a day.", kind="decision")
    memory.observe("The session token lasts an hour.", kind="decision", supersedes=old.id)
    package = memory.recall_context("why did the decision on the session token change before")
    assert any("a day" in one.text for one in package.history)
    return package.history[0].kind


@row("80 words", "prior work, replacements, migrations, why something changed bring history")
def history_words(desk: Desk) -> str:
    memory = indexed(desk)
    old = memory.observe("The session token lasts a day.", kind="decision")
    memory.observe("The session token lasts an hour.", kind="decision", supersedes=old.id)
    for asked in (
        "prior work on",
        "replacements for",
        "replacement of",
        "migrations of",
        "migration of",
        "why something changed about",
    ):
        assert memory.recall_context(f"{asked} the session token").history, asked
    return "each of the seed's words"


@row("84", "the budget holds")
def budget(desk: Desk) -> str:
    memory = indexed(desk)
    for asked in (120, 200, 400):
        package = memory.recall_context("refresh the SessionToken expiry", budget=asked)
        assert package.tokens <= asked
    return "120, 200, 400: never over"


@row("88", "brief: strength and evidence")
def brief(desk: Desk) -> str:
    memory = desk.memory()
    memory.observe("The turbine is cooled by water from the river.")
    said = " ".join(memory.recall_context("how is the turbine cooled").brief)
    assert "0 files" not in said
    assert "note" in said
    return said


@row("89", "primary targets: files, modules or records")
def targets(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("SessionToken must never be logged.", kind="decision")
    found = [
        target
        for asked in ("the src/shop module", "package shop", "SessionToken logged decision")
        for target in memory.recall_context(asked).primary_targets
    ]
    assert "module" in {target.kind for target in found}
    assert all(target.path != target.kind for target in found)
    return ", ".join(sorted({target.kind for target in found}))


@row("90", "memories: sections, modules, observations, diary entries")
def memories(desk: Desk) -> str:
    memory = indexed(desk)
    memory.observe("SessionToken must never be logged.", kind="decision")
    memory.write_diary("Looked at how SessionToken is logged.")
    found = {
        one.kind
        for asked in ("continue with SessionToken logged", "what is in the src/shop module")
        for one in memory.recall_context(asked).memories
    }
    assert {"section", "decision", "diary", "module"} <= found
    return ", ".join(sorted(found))


@row("90 diary", "diary entries are selected for an ordinary focus that matches them")
def diary_selected(desk: Desk) -> str:
    memory = indexed(desk)
    memory.write_diary("Looked at how SessionToken is logged; the zebra formatter was wrong.")
    package = memory.recall_context("the zebra formatter of SessionToken")
    assert "diary" in {one.kind for one in package.memories}
    return "beside sections and modules"


@row("91", "graph evidence: active relations")
def active(desk: Desk) -> str:
    package = indexed(desk).recall_context("refresh the SessionToken expiry")
    assert package.graph
    assert {relation.status for relation in package.graph} == {"active"}
    return f"{len(package.graph)} active relations"


@row("92", "history evidence where relevant")
def history_when_asked(desk: Desk) -> str:
    memory = indexed(desk)
    old = memory.observe("The session token lasts a day.", kind="decision")
    memory.observe("The session token lasts an hour.", kind="decision", supersedes=old.id)
    assert not memory.recall_context("implement the session token").history
    return "not for a task of implementation"


@row("93", "quality: strong, partial, weak")
def quality(desk: Desk) -> str:
    memory = indexed(desk)
    labels = [
        memory.recall_context(asked).quality
        for asked in (
            "refresh the SessionToken expiry in session_token.py",
            "photosynthesis of orchids",
        )
    ]
    assert labels == ["strong", "weak"]
    return "strong; weak"


@row("95", "compact by default, source detail on request")
def detail(desk: Desk) -> str:
    memory = indexed(desk)
    asked = "refresh the SessionToken expiry"
    plain = memory.recall_context(asked)
    full = memory.recall_context(asked, include_sources=True)
    assert not plain.primary_targets[0].signals
    assert len(full.primary_targets[0].signals) == 6
    assert len(full.graph) >= len(plain.graph)
    return "six signals and all relations with sources"


@row("101-103", "strong: good evidence for more than one target")
def strong(desk: Desk) -> str:
    memory = indexed(desk)
    package = memory.recall_context("refresh the SessionToken expiry in session_token.py")
    assert package.quality == "strong"
    assert len(package.primary_targets) > 1
    return f"strong with {len(package.primary_targets)} targets"


@row("101-103 partial", "partial: useful evidence, never an empty package")
def partial(desk: Desk) -> str:
    memory = desk.memory("minilm")
    memory.write_diary("Looked at how the zebra formatter rounds; it was wrong below zero.")
    package = memory.recall_context("the zebra formatter rounds wrong")
    assert package.quality == "weak" or package.memories or package.primary_targets
    assert "0 files" not in " ".join(package.brief)
    return f"{package.quality}: {package.brief[0]}"


@row("105", "the label is a warning to verify")
def warning(desk: Desk) -> str:
    package = indexed(desk).recall_context("how is a token extended by photosynthesis")
    assert package.quality == "partial"
    assert "verify" in package.brief[0]
    return package.brief[0]
