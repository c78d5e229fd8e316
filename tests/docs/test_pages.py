"""Every block of every page runs, in its order, and prints what the page says."""

from __future__ import annotations

import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, nullcontext
from functools import cache
from pathlib import Path

import pytest
from tests.adapters.frameworks import FRAMEWORKS
from tests.commands import program_folder
from tests.deep.openai_server import OpenAIServer
from tests.docs.pages import anchors, blocks, links
from tests.docs.running import ROOT, Shown, World, commands

DOCS = ROOT / "docs"
PAGES = sorted(
    page for page in DOCS.rglob("*.md") if page.parent.name not in {"decisions", "reference"}
)
# Those about a framework that is not installed here run where it is (`python -m tools.adapters`).
ELSEWHERE = {one.page for one in FRAMEWORKS if not one.is_installed}
# Pages whose blocks run here; the README's run in processes of their own (tests/test_readme.py).
RUN = [page for page in PAGES if blocks(page.read_text("utf-8")) and page.name not in ELSEWHERE]
DOCUMENTATION = sorted(DOCS.rglob("*.md"))
LINKING = [*DOCUMENTATION, *sorted(ROOT.glob("*.md")), ROOT / "examples" / "README.md"]
# What cannot be run where the tests run. Nothing else is left out.
NOT_RUN = 18


def named(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


@contextmanager
def a_model() -> Iterator[dict[str, str]]:
    """An OpenAI-compatible server on the loopback in the place of the one the page names."""
    with OpenAIServer() as server:
        server.route = None
        server.says(*MODEL_SAYS)
        yield {"127.0.0.1:8080": server.url.removeprefix("http://").removesuffix("/v1")}


# What a good model would write for the question of docs/how-to/local-model.md.
MODEL_SAYS = (
    """```python
found = []
for session in list_sessions():
    for turn in load_transcript(session["id"], 0, session["turns"]):
        if "queue" in turn["text"].lower():
            found.append(turn["id"])
print(found)
```""",
    """```python
submit(f"Twice: {', '.join(found)}", found)
```""",
    """```python
submit("NOT_FOUND", [])
```""",
)


@contextmanager
def a_keychain() -> Iterator[dict[str, str]]:
    """A keychain in memory: the machine's own is not for tests."""
    keyring = pytest.importorskip("keyring")
    from tests.docs.keychain import MemoryKeychain

    before = keyring.get_keyring()
    keyring.set_keyring(MemoryKeychain())
    try:
        yield {}
    finally:
        keyring.set_keyring(before)


@pytest.mark.enable_socket
@pytest.mark.timeout(180)
@pytest.mark.promise("docs.run")
@pytest.mark.parametrize("page", RUN, ids=named)
def test_the_page_runs(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    """Every command and program of the page works, and what the page shows is what it prints."""
    text = page.read_text("utf-8")
    special = {"local-model.md": a_model, "encryption.md": a_keychain}.get(page.name, nullcontext)
    shown: list[Shown] = []
    with special() as instead:
        world = World(tmp_path / "work", dict(instead or {}), first=program_folder())
        if page.name == "postgresql.md":
            url: str = request.getfixturevalue("postgresql_url")
            usual = "postgresql+psycopg://anaphora:secret@db.example.org/anaphora"
            world.instead[usual] = url.replace("postgresql://", "postgresql+psycopg://")
        (tmp_path / "work").mkdir()
        with world.entered():
            for block in blocks(text):
                offset = text.index("\n", _line_start(text, block.line)) + 1
                shown += world.run(block, offset)
    wrong = [one for one in shown if one.trouble]
    if wrong and request.config.getoption("--rewrite", default=False):
        _rewrite(page, text, wrong)
        return
    assert not wrong, "\n\n".join(one.trouble for one in wrong)


def _line_start(text: str, line: int) -> int:
    at = 0
    for _ in range(line - 1):
        at = text.index("\n", at) + 1
    return at


def _rewrite(page: Path, text: str, wrong: list[Shown]) -> None:
    for one in sorted(wrong, key=lambda one: -one.place[0]):
        begin, end = one.place
        by_hand = not end or "\n…\n" in f"\n{one.shown}"
        assert not by_hand, f"change this by hand:\n{one.trouble}"
        text = text[:begin] + one.renewed + text[end:]
    page.write_text(text, "utf-8")


@cache
def repository() -> frozenset[Path]:
    """Every file that git has or would take, and their folders."""
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    )
    files = [ROOT / name for name in listed.stdout.split("\0") if name]
    return frozenset(files).union(*(file.parents for file in files))


@pytest.mark.skipif(not (ROOT / ".git").exists(), reason="this is not a repository")
@pytest.mark.promise("docs.links")
@pytest.mark.parametrize("page", LINKING, ids=named)
def test_links_lead_somewhere(page: Path) -> None:
    """Every link of the page leads to a file, picture or heading that is in the repository."""
    for link in links(page.read_text("utf-8")):
        if link.startswith(("http://", "https://", "mailto:")):
            continue
        where, _, anchor = link.partition("#")
        target = page if not where else (page.parent / where).resolve()
        assert target in repository(), f"{named(page)} links to {link}"
        if anchor:
            assert anchor in anchors(target.read_text("utf-8")), f"{named(page)}: no {link}"


@pytest.mark.promise("docs.links")
def test_every_page_is_reached() -> None:
    """From the README every page can be reached by links."""
    reached: set[Path] = set()
    waiting = [ROOT / "README.md"]
    while waiting:
        page = waiting.pop()
        if page in reached:
            continue
        reached.add(page)
        for link in links(page.read_text("utf-8")):
            target = (page.parent / link.partition("#")[0]).resolve()
            if "://" not in link and target.suffix == ".md" and target.exists():
                waiting.append(target)
            if "://" not in link and target.is_dir():
                waiting += target.glob("*.md")
    assert [named(page) for page in DOCUMENTATION if page not in reached] == []


@pytest.mark.promise("docs.run")
def test_little_is_left_out() -> None:
    """What is not run says why, and is not more than is known here."""
    left_out = [
        (named(page), block.said)
        for page in PAGES
        for block in blocks(page.read_text("utf-8"))
        if block.note == "not run"
    ]
    assert all(len(why) > 15 for _, why in left_out)
    assert len(left_out) <= NOT_RUN, left_out


def test_commands_and_their_outputs_are_told_apart() -> None:
    """Behind `$ ` stands a command, below it what it prints; without any `$ ` all are commands."""
    found = commands("$ one \\\n  more\nfirst\n\nsecond\n$ two\n")
    assert [(one.line, one.shown) for one in found] == [
        ("one more", "first\n\nsecond\n"),
        ("two", None),
    ]
    assert [one.line for one in commands("one\n\ntwo\n")] == ["one", "two"]


@pytest.mark.parametrize(
    ("shown", "printed", "agree"),
    [
        ("a … c\n", "a b c\n", True),
        ("a\n…\nd\n", "a\nb\nc\nd\n", True),
        ("score 0.51\n", "score 0.52\n", True),
        ("score 0.51\n", "score 0.62\n", False),
        ("a\n", "b\n", False),
        ("a\n", "a\nb\n", False),
    ],
)
def test_outputs_are_compared(shown: str, printed: str, agree: bool) -> None:
    """All but what is left open must be the same, decimals within two hundredths."""
    assert (Shown(shown, printed, (0, 0)).trouble == "") is agree
