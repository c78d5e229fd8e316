"""Recalling context: what a focus brings from files, notes, relations and the past."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.conftest import Clock
from tests.recall.context_desk import ContextDesk, context_desk
from tests.tokens import LEAST_BUDGET

from anaphora import RecallPackage, Vector, Vectors
from anaphora.errors import EmbeddingError, NotFound
from anaphora.testing import WordHashingEmbedder, run_cli

FILES = {
    "src/shop/sessions.py": '''"""Sessions of customers."""

from shop.retry import backoff


class Session:
    """Keeps a customer signed in."""

    def send(self, request):
        """Send a request, following redirects."""
        return backoff(request)

    def close(self):
        """End the session."""
''',
    "src/shop/retry.py": '''"""Trying again."""


def backoff(request):
    """Wait twice as long after each failure of the payment gateway."""
    return request
''',
    "src/shop/cart.py": '''"""What a customer wants to buy."""


def total(lines):
    """The sum of a cart in cents."""
    return sum(lines)
''',
    "tests/test_sessions.py": '''from shop.sessions import Session


def test_send_follows_redirects():
    """A redirect is followed."""
    assert Session().send(1) == 1
''',
    "docs/install.md": "# Install\n\nRun `pip install shop`.\n\n## On a server\n\nUse systemd.\n",
    "README.md": "# Shop\n\nA small web shop that sells tea.\n",
    "pyproject.toml": '[project]\nname = "shop"\ndependencies = ["requests"]\n',
    "config/rate-limit.json": '{"rate-limit": {"per-minute": 60}}\n',
}


@pytest.fixture
def desk(tmp_path: Path, clock: Clock) -> Iterator[ContextDesk]:
    with context_desk(tmp_path, clock) as desk:
        desk.add(tmp_path / "shop", FILES, "shop")
        yield desk


def paths(package: RecallPackage) -> list[str]:
    return [one.path for one in package.primary_targets]


@pytest.mark.promise("context.targets")
def test_a_focus_brings_the_file_that_defines_what_it_names(desk: ContextDesk) -> None:
    """The first target defines the named symbol, and its reason says so."""
    package = desk.recall("why does `Session.send` follow redirects twice")
    first = package.primary_targets[0]
    assert first.path == "src/shop/sessions.py"
    assert "Session" in first.title
    assert "defines `Session" in first.reason
    assert first.role == "code"
    assert package.quality in ("strong", "partial")
    assert package.brief[0].lower().startswith(package.quality)


@pytest.mark.parametrize(
    ("focus", "path"),
    [
        ("src/shop/retry.py", "src/shop/retry.py"),
        ("look into shop/retry.py please", "src/shop/retry.py"),
        ("retry.py", "src/shop/retry.py"),
        ("the rate-limit per minute", "config/rate-limit.json"),
        ("rate", "config/rate-limit.json"),
        ("test_sessions", "tests/test_sessions.py"),
        ("shop.cart total", "src/shop/cart.py"),
    ],
)
@pytest.mark.promise("context.whole_and_parts")
def test_paths_and_joined_words_match_whole_and_in_part(
    desk: ContextDesk, focus: str, path: str
) -> None:
    """A path, a file name, a hyphenated word and a part of it find what they are of."""
    assert paths(desk.recall(focus))[0] == path


@pytest.mark.promise("context.all_words")
def test_words_far_behind_the_beginning_count(desk: ContextDesk, tmp_path: Path) -> None:
    """A word at the end of a long note is found, and the excerpt shows it."""
    text = "We talked at length about the colours of the page. " * 30 + "Ship it with zstandard."
    desk.note(text, kind="decision")
    package = desk.recall("zstandard compression")
    (memory,) = package.memories
    assert "zstandard" in memory.text
    assert memory.kind == "decision"


@pytest.mark.promise("context.superseded")
def test_what_was_replaced_comes_only_as_history(desk: ContextDesk) -> None:
    """A superseded decision is never current; a focus that asks why shows it as history."""
    old = desk.note("Decision: store carts in Redis for speed.", kind="decision")
    desk.note("Decision: store carts in PostgreSQL.", kind="decision", supersedes=old)
    package = desk.recall("where do we store carts")
    texts = [one.text for one in package.memories]
    assert any("PostgreSQL" in text for text in texts)
    assert not any("Redis" in text for text in texts)
    assert package.history == ()
    asked = desk.recall("why did we change where we store carts")
    assert not any("Redis" in one.text for one in asked.memories)
    assert "Redis" in asked.history[0].text
    assert "replaced by" in asked.history[0].text
    assert asked.history[0].kind == "superseded_decision"


@pytest.mark.promise("context.diary")
def test_diary_entries_that_match_come_for_any_focus(desk: ContextDesk) -> None:
    """One that matches is a memory; beside files it is a target only where the focus goes on."""
    diary = desk.diary("Rewrote the cart total; rounding is still open.")
    plain = desk.recall("cart total rounding")
    assert [one.kind for one in plain.memories if one.id == diary] == ["diary"]
    assert plain.primary_targets
    assert diary not in [one.id for one in plain.primary_targets]
    resumed = desk.recall("continue the work on cart total rounding")
    assert diary in [one.id for one in resumed.primary_targets]
    other = desk.recall("payment provider")
    assert diary not in [one.id for one in other.memories]


@pytest.mark.promise("context.diary")
def test_a_diary_entry_alone_is_evidence(tmp_path: Path, clock: Clock) -> None:
    """Without a project the entry is target and memory, and the brief speaks of no files."""
    with context_desk(tmp_path, clock) as alone:
        diary = alone.diary("Looked at how the zebra formatter rounds negative numbers.")
        for focus in ("the zebra formatter rounds wrong", "ebra formatte"):
            package = alone.recall(focus)
            assert [one.id for one in package.memories] == [diary]
            assert [one.id for one in package.primary_targets] == [diary]
            assert "files" not in package.brief[0]


@pytest.mark.promise("context.evidence")
def test_a_package_in_which_nothing_fits_is_weak(tmp_path: Path, clock: Clock) -> None:
    """A label above weak stands only over evidence: the smallest budget has no room for any."""
    with context_desk(tmp_path, clock) as alone:
        alone.diary("Looked at how the zebra formatter rounds. " + "It takes a while. " * 60)
        assert alone.recall("zebra formatter rounds").quality == "partial"
        small = alone.recall("zebra formatter rounds", budget=LEAST_BUDGET)
        evidence = (*small.primary_targets, *small.memories)
        assert bool(evidence) == (small.quality != "weak")
        assert small.brief[0].startswith(small.quality.capitalize())


@pytest.mark.promise("context.history")
@pytest.mark.parametrize(
    "asked",
    ["prior work on", "replacements for", "a replacement of", "what replaces", "migrations of",
     "migrating", "what supersedes", "earlier attempts at", "rollbacks of", "decisions about"],
)  # fmt: skip
def test_every_form_of_a_word_that_asks_for_the_past_brings_history(
    desk: ContextDesk, asked: str
) -> None:
    """Singular or plural, verb or noun."""
    old = desk.note("Decision: store carts in Redis for speed.", kind="decision")
    desk.note("Decision: store carts in PostgreSQL.", kind="decision", supersedes=old)
    assert old in [one.id for one in desk.recall(f"{asked} where we store carts").history]


@pytest.mark.promise("context.history")
@pytest.mark.parametrize("asked", ["continuous integration of", "an invalid block of", "using"])
def test_words_that_only_look_like_the_past_bring_none(desk: ContextDesk, asked: str) -> None:
    """ "continuous" is no form of "continue" that asks to go on."""
    old = desk.note("Decision: store carts in Redis for speed.", kind="decision")
    desk.note("Decision: store carts in PostgreSQL.", kind="decision", supersedes=old)
    assert desk.recall(f"{asked} the store of carts").history == ()


@pytest.mark.promise("context.no_terms")
@pytest.mark.parametrize("focus", ["", "   ", "?!… —", "the of and", [], ["", " "]])
def test_a_focus_without_useful_terms_gives_an_empty_weak_package(
    desk: ContextDesk, focus: Any
) -> None:
    """Nothing that can be looked up gives nothing, and is said to be weak."""
    package = desk.recall(focus)
    assert package.quality == "weak"
    assert (package.primary_targets, package.memories, package.graph) == ((), (), ())
    assert package.brief[0].startswith("Weak")


@pytest.mark.promise("context.unrelated")
@pytest.mark.parametrize(
    "focus", ["quokka marsupial habitat", "量子力学の入門", "квантовая физика"]
)
def test_an_unrelated_focus_gives_nothing(desk: ContextDesk, focus: str) -> None:
    """A focus that shares no word with the project gets no target, even where vectors are near."""
    package = desk.recall(focus)
    assert package.quality == "weak"
    assert package.primary_targets == ()
    assert package.memories == ()


def test_a_part_of_a_word_is_found_by_a_lower_rung_and_said(desk: ContextDesk) -> None:
    """Where no word matches, a large part of one leads to a weak answer that says how."""
    package = desk.recall("redirec")
    assert package.quality == "weak"
    assert "src/shop/sessions.py" in paths(package)
    assert [one.part for one in package.degraded] == ["word index"]
    note = desk.note("The supercalifragilistic module must go.")
    package = desk.recall("calif-ragi califrag")
    assert [one.id for one in package.primary_targets] == [note]


def test_notes_tied_to_a_target_come_without_a_word_in_common(desk: ContextDesk) -> None:
    """A constraint that names a file by its path comes with that file."""
    note = desk.note("Never call `src/shop/retry.py` from a web handler.", kind="constraint")
    package = desk.recall("backoff payment gateway")
    assert paths(package)[0] == "src/shop/retry.py"
    assert note in [one.id for one in package.memories]


def test_relations_explain_what_was_found(desk: ContextDesk) -> None:
    """The graph near the targets is in the package, within two steps."""
    package = desk.recall("`Session` sending requests with backoff")
    pairs = {(one.subject, one.predicate, one.object) for one in package.graph}
    assert ("src/shop/sessions.py", "imports", "src/shop/retry.py") in pairs
    assert {one.depth for one in package.graph} <= {1, 2}


@pytest.mark.promise("context.sources")
def test_signals_come_only_with_sources(desk: ContextDesk) -> None:
    """The six signals of each target and memory are there when they are asked for."""
    plain = desk.recall("session send")
    assert not any(one.signals for one in plain.primary_targets)
    assert not any(one.signals for one in plain.memories)
    full = desk.recall("session send", include_sources=True)
    wanted = {"words", "meaning", "confidence", "recency", "size", "role_fit"}
    assert all(set(one.signals) == wanted for one in full.primary_targets)
    assert len(full.graph) >= len(plain.graph)
    assert full.tokens <= full.budget


@pytest.mark.promise("context.history")
def test_history_names_the_commits_and_renames_of_the_files(
    desk: ContextDesk, tmp_path: Path
) -> None:
    """A focus that asks what was before gets renames and commits of the files it is about."""
    root = tmp_path / "past"
    root.mkdir()
    git(root, "init", "-q")
    commit(root, {"old_names.py": "def wombat():\n    return 1\n" * 4}, "Count wombats")
    git(root, "mv", "old_names.py", "wombats.py")
    commit(root, {}, "Name the file after wombats")
    desk.add(root, {}, "past")
    package = desk.recall("what was wombats.py before, why was it renamed", project="past")
    assert any(one.kind == "rename" and one.subject == "old_names.py" for one in package.history)
    assert any(one.kind == "commit" for one in package.history)
    assert desk.recall("count in wombats.py", project="past").history == ()


def report(number: int) -> str:
    """One of many documents that differ in a number."""
    return (
        f"# Report {number}\n\nThe calibration of the spectrometer was done in the usual way, with "
        "the reference lamp and the dark frame, by the staff of the laboratory, and the result "
        f"{number} was within the limits of the specification.\n"
    )


@pytest.mark.promise("context.twins")
def test_one_of_many_copies_is_a_target(desk: ContextDesk, tmp_path: Path) -> None:
    """Of near-identical files the best one is a target and counts the others; all else has room."""
    others = {f"docs/other-{n}.md": f"# Lamp {n}\n\nThe spectrometer's lamp.\n" for n in range(3)}
    licence = "A licence of many words that each file begins with, all alike, for lawyers to read. "
    begun = {
        f"src/{name}.py": f'"""{licence * 3}"""\n\n\ndef {name}():\n    return "{name * 40}"\n' * 3
        for name in ("monochromator", "photodiode")
    }
    copies = {f"docs/report-{number}.md": report(number) for number in range(8)}
    desk.add(tmp_path / "lab", {**copies, **others, **begun}, "lab")
    package = desk.recall("calibration of the spectrometer lamp", project="lab")
    found = paths(package)
    assert len([path for path in found if path in copies]) == 1
    assert set(others) <= set(found)
    (first,) = [one for one in package.primary_targets if one.path in copies]
    assert first.reason.endswith("7 more files are nearly the same")
    both = paths(desk.recall("licence of monochromator and photodiode", project="lab"))
    assert set(begun) <= set(both)


@pytest.mark.promise("context.twins")
def test_editions_of_a_document_are_one_target(desk: ContextDesk, tmp_path: Path) -> None:
    """Kept versions and translations of a page are one target, which counts them, unless named."""
    pages = {
        "docs/client/links.md": "the last one of them sends it",
        "versioned_docs/version-10.x/client/links.md": "in those days each of them sent a part",
        "versioned_docs/version-9.x/client/links.md": "an array of which the end has no successor",
        "README-zh.md": "请求由链接传递",
        "README_ko.md": "요청은 링크를 지난다",
        "README.md": "see the pages",
    }
    said = "Links of the client pass a request on: "
    desk.add(tmp_path / "rpc", {path: said + text + ".\n" for path, text in pages.items()}, "rpc")
    package = desk.recall("how do links of the client pass a request on?", project="rpc")
    found = paths(package)
    assert len([path for path in found if path.endswith("client/links.md")]) == 1
    assert len([path for path in found if path.startswith("README")]) == 1
    assert any(
        "more in other versions or languages" in one.reason for one in package.primary_targets
    )
    for path in ("versioned_docs/version-9.x/client/links.md", "README-zh.md"):
        assert path in paths(desk.recall(f"links and requests in {path}", project="rpc"))


@pytest.mark.promise("context.twins")
def test_one_of_many_notes_is_a_target(desk: ContextDesk) -> None:
    """Notes that say nearly the same give one target as well, which counts them."""
    said = "the kiln must cool for two days and a night before anybody opens the door of it"
    for day in ("Monday", "Tuesday", "Friday"):
        desk.note(f"As of {day} {said}.", kind="constraint")
    found = desk.recall("how long must the kiln cool").primary_targets
    (target,) = [one for one in found if one.kind == "constraint"]
    assert target.reason.endswith("2 more notes are nearly the same")


MODULE = {
    "src/shop/__init__.py": '"""A shop for tea: carts, sessions, payment."""\n\nVERSION = 1\n',
    "src/shop/pay/README.md": "# Payment\n\nTalks to the gateway.\n",
    "src/shop/pay/gateway.py": "def charge(card):\n    return card\n",
}


@pytest.mark.promise("context.modules")
@pytest.mark.parametrize(
    ("focus", "folder", "title", "document"),
    [
        ("what does the src/shop module do?", "src/shop", "A shop for tea", "src/shop/__init__.py"),
        ("src/shop", "src/shop", "A shop for tea", "src/shop/__init__.py"),
        ("package shop", "src/shop", "A shop for tea", "src/shop/__init__.py"),
        ("what is in the `shop.pay` package", "src/shop/pay", "Payment", "src/shop/pay/README.md"),
        ("look into the directory src/shop/pay/", "src/shop/pay", "Payment",
         "src/shop/pay/README.md"),
    ],
)  # fmt: skip
def test_a_module_that_is_named_is_a_target_and_a_memory(
    desk: ContextDesk, tmp_path: Path, focus: str, folder: str, title: str, document: str
) -> None:
    """A folder that the focus names leads the targets, with its document among the memories."""
    desk.add(tmp_path / "shop", MODULE)
    package = desk.recall(focus, include_sources=True)
    first = package.primary_targets[0]
    assert (first.kind, first.path, first.project) == ("module", folder, "shop")
    assert first.title.startswith(title)
    assert "the focus names this module" in first.reason
    assert document in first.reason
    scores = [one.score for one in package.primary_targets]
    assert scores == sorted(scores, reverse=True)
    assert package.brief[1].startswith(f"Begin with {folder},")
    memory = package.memories[0]
    assert (memory.kind, memory.title, memory.path) == ("module", folder, document)
    assert title in memory.text
    assert (
        f"- {folder} {title}"
        in run_cli("project", "recall", focus, "--block", home=desk.memory.home).stdout
    )
    kinds = [one.kind for one in package.primary_targets]
    assert kinds.count("module") == 1
    assert document in paths(package)


@pytest.mark.promise("context.modules")
@pytest.mark.parametrize(
    "focus", ["total of a cart", "package manager", "src/nothing", "the module of modules"]
)
def test_a_module_that_is_not_named_is_no_target(
    desk: ContextDesk, tmp_path: Path, focus: str
) -> None:
    """Words that only look like a folder's name, or name none, make no module a target."""
    desk.add(tmp_path / "shop", MODULE)
    assert "module" not in [one.kind for one in desk.recall(focus).primary_targets]


def test_the_beginning_of_a_modules_document_is_its_memory(
    desk: ContextDesk, tmp_path: Path
) -> None:
    """Found by its words alone, the document of a folder comes as that module."""
    desk.add(tmp_path / "shop", MODULE)
    kinds = {one.path: one.kind for one in desk.recall("who talks to the gateway").memories}
    assert kinds["src/shop/pay/README.md"] == "module"
    assert kinds["src/shop/pay/gateway.py"] == "section"


@pytest.mark.promise("context.targets")
def test_notes_have_no_path_that_is_none(desk: ContextDesk) -> None:
    """A note without a source has no path: its kind, id and first words say what it is."""
    note = desk.note("Carts are kept for a fortnight.", kind="decision")
    target = next(o for o in desk.recall("carts for a fortnight").primary_targets if o.id == note)
    assert (target.path, target.kind) == ("", "decision")
    assert target.title == "Carts are kept for a fortnight."


@pytest.mark.parametrize("count", [1, 3])
def test_the_brief_of_notes_alone_speaks_of_notes(tmp_path: Path, clock: Clock, count: int) -> None:
    """Where no file holds a word of the focus the brief counts the notes that do."""
    places = ("cellar", "attic", "garden")[:count]
    with context_desk(tmp_path, clock) as desk:
        for place in places:
            desk.note(f"Oolong is stored in the {place}.")
        (first, *_) = desk.recall("where is oolong stored").brief
    said = "a note holds" if count == 1 else "3 notes hold"
    assert f"no file, but {said} words of the focus" in first
    assert "0 files" not in first


def test_projects_are_apart_or_together(desk: ContextDesk, tmp_path: Path) -> None:
    """One project's question is answered from it alone; without a name all are asked."""
    desk.add(tmp_path / "other", {"tea.py": "def session():\n    return 'oolong'\n"}, "other")
    assert paths(desk.recall("session", project="other")) == ["tea.py"]
    assert "tea.py" not in paths(desk.recall("session", project="shop"))
    both = desk.recall("session oolong")
    assert {one.project for one in both.primary_targets} == {"shop", "other"}
    assert sorted(both.projects) == ["other", "shop"]
    with pytest.raises(NotFound, match="project"):
        desk.recall("session", project="nowhere")


def test_a_namespace_without_projects_says_so(tmp_path: Path, clock: Clock) -> None:
    """With nothing indexed the package is weak, empty, and tells why."""
    with context_desk(tmp_path, clock) as desk:
        package = desk.recall("session")
        assert package.quality == "weak"
        assert "no project" in package.brief[0]
        assert desk.warm_up().shape == ()


NASTY = [
    '"unterminated AND (session OR NEAR/3 *:*',
    "path:src/shop/*.py^4 -cart +session~2",
    "session\x00send \ud800 'quoted' {[}]",
    "SELECT * FROM section; DROP TABLE section; --",
    "session " * 7_000,
]


@pytest.mark.promise("context.any_focus")
@pytest.mark.parametrize("focus", NASTY)
def test_operators_quotes_and_fifty_kilobytes_are_just_words(desk: ContextDesk, focus: str) -> None:
    """A focus of any shape is answered like any other."""
    package = desk.recall(focus)
    assert package.tokens <= package.budget
    if "session" in focus:
        assert "src/shop/sessions.py" in paths(package)


@pytest.mark.promise("context.degrades")
def test_without_vectors_words_answer_and_say_so(tmp_path: Path, clock: Clock) -> None:
    """An embedder that fails leaves words; sections without vectors yet are counted."""
    with context_desk(tmp_path, clock, embedder=Failing()) as desk:
        desk.add(tmp_path / "shop", FILES, "shop", embed=False)
        package = desk.recall("session send redirects")
        assert paths(package)[0] == "src/shop/sessions.py"
        assert [one.part for one in package.degraded] == ["embeddings"]
    with context_desk(tmp_path / "two", clock) as desk:
        desk.add(tmp_path / "shop", {}, "shop", embed=False)
        package = desk.recall("session send redirects")
        assert paths(package)[0] == "src/shop/sessions.py"
        assert any("no vector yet" in one.reason for one in package.degraded)


FOCUS_WORDS = """session send cart total why before retry.py rate-limit install Session.close
    decide redis `backoff` customer tea continue README src/shop/cart.py zebra"""
FOCUSES = st.lists(st.sampled_from(FOCUS_WORDS.split()), max_size=8).map(" ".join)


@pytest.mark.promise("context.in_truth")
@settings(
    max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(FOCUSES, st.integers(LEAST_BUDGET, 2_500), st.booleans())
def test_everything_in_a_package_stands_in_truth(
    desk: ContextDesk, focus: str, budget: int, sources: bool
) -> None:
    """Targets and excerpts are lines of the files, within the budget, the same every time."""
    note = "The tea must be `src/shop/cart.py` proof."
    desk.once(note, "constraint")
    package = desk.recall(focus, budget=budget, include_sources=sources)
    assert package.tokens <= budget
    assert desk.recall(focus, budget=budget, include_sources=sources) == package
    for target in package.primary_targets:
        if target.start_line is not None and target.end_line is not None:
            lines = FILES[target.path].count("\n")
            assert 1 <= target.start_line <= target.end_line <= lines
    for memory in package.memories:
        if memory.kind == "section":
            assert memory.path is not None
            assert memory.start_line is not None
            lines_of = FILES[memory.path].split("\n")
            shown = "\n".join(lines_of[memory.start_line - 1 : memory.end_line])
            assert memory.text == shown
        else:
            assert memory.text in note


class Failing(WordHashingEmbedder):
    """An embedder that can embed nothing."""

    def embed(self, texts: Any) -> list[Vectors]:
        raise EmbeddingError("out of order")

    def embed_query(self, text: str) -> Vector:
        raise EmbeddingError("out of order")


def write(root: Path, files: dict[str, str]) -> Path:
    for path, text in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(text, encoding="utf-8")
    return root


def git(root: Path, *given: str) -> None:
    who = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
    subprocess.run(["git", *who, *given], cwd=root, check=True, capture_output=True)


def commit(root: Path, files: dict[str, str], subject: str) -> None:
    write(root, files)
    git(root, "add", "-A")
    git(root, "commit", "-qm", subject)


def test_rendering_is_for_reading(desk: ContextDesk) -> None:
    """The text names places with lines and marks what was recalled; why is told on a screen."""
    why = run_cli("project", "recall", "session send", "--why", home=desk.memory.home).stdout
    assert sum(1 + len(line) // 100 for line in why.splitlines()) <= 40
    assert "words +" in why
    text = run_cli("project", "recall", "session send", "--block", home=desk.memory.home).stdout
    assert "- src/shop/sessions.py:" in text
    assert "\n| " in text
