"""Documents through the facade: read, found, replaced and forgotten."""

from __future__ import annotations

import io
import itertools
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest
from tests.conftest import Clock
from tests.document_files import docx, mail, pdf

from anaphora import Memory
from anaphora.errors import InvalidInput, NotFound, UnreadableDocument

LEASE = pdf(
    [
        ["The monthly rent is 1200 euros."],
        ["Either party may terminate the lease", "with three months of notice."],
    ],
    title="Lease of Harbour Street 4",
    bookmarks=[("Rent", 1), ("Termination", 2)],
)
HANDBOOK = docx(
    [
        ("Handbook", 1),
        ("Holidays", 2),
        ("Everybody has thirty days off each year.", 0),
        ("Travel", 2),
        ("Trains are booked by yourself.", 0),
    ],
    title="Staff handbook",
)
PAGE = b"""<!doctype html><html><head><title>Bread</title><style>p {color: red}</style></head>
<body><nav>Home</nav><h1>Bread</h1><p>Knead the dough for <b>ten</b>
minutes.</p><ul><li>flour<ol><li>rye</li><li>wheat</li></ol></li></ul>
<h2>Oven</h2><table><tr><th>Heat</th><td>230</td></tr></table><pre>a
  b</pre><script>steal()</script></body></html>"""


@pytest.fixture
def memory(tmp_path: Path, clock: Clock) -> Iterator[Memory]:
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as opened:
        yield opened


def places(memory: Memory, document: str) -> list[tuple[int | None, tuple[str, ...], str]]:
    return [(one.page, one.heading, one.text) for one in memory.document_sections(document)]


@pytest.mark.promise("documents.formats")
def test_a_pdf(memory: Memory, tmp_path: Path, clock: Clock) -> None:
    """Its pages under its bookmarks, and what it tells of itself."""
    (tmp_path / "lease.pdf").write_bytes(LEASE)
    done = memory.add_document(tmp_path / "lease.pdf", origin="mail of Ode", tags=["flat"])
    assert (done.action, done.problems, done.redacted, done.pending) == ("added", (), (), 0)
    kept = done.document
    assert kept == memory.document(kept.id) == memory.document((tmp_path / "lease.pdf").as_posix())
    assert (kept.title, kept.format, kept.pages) == ("Lease of Harbour Street 4", "pdf", 2)
    assert (kept.date, kept.added_at) == (datetime(2024, 3, 5, 12, tzinfo=UTC), clock())
    assert (kept.source, kept.tags, kept.size) == ("mail of Ode", ("flat",), len(LEASE))
    assert places(memory, kept.id) == [
        (1, ("Rent",), "The monthly rent is 1200 euros."),
        (
            2,
            ("Termination",),
            "Either party may terminate the lease\nwith three months of notice.",
        ),
    ]
    assert memory.document_file(kept.id) == LEASE


@pytest.mark.promise("documents.formats")
def test_a_word_document_and_a_page(memory: Memory) -> None:
    """Sections by headings; a heading with nothing under it stands with the next deeper one."""
    word = memory.add_document(HANDBOOK, name="handbook.docx").document
    assert (word.title, word.author) == ("Staff handbook", "Mara Lind")
    assert places(memory, word.id) == [
        (
            None,
            ("Handbook", "Holidays"),
            "Handbook\n\nHolidays\n\nEverybody has thirty days off each year.",
        ),
        (None, ("Handbook", "Travel"), "Travel\n\nTrains are booked by yourself."),
    ]
    page = memory.add_document(PAGE, name="bread.html").document
    assert page.title == "Bread"
    assert places(memory, page.id) == [
        (
            None,
            ("Bread",),
            "Bread\n\nKnead the dough for ten minutes.\n\n- flour\n  1. rye\n  2. wheat",
        ),
        (None, ("Bread", "Oven"), "Oven\n\nHeat | 230\n\na\n  b"),
    ]


@pytest.mark.promise("documents.formats")
def test_a_mail_with_what_is_attached(memory: Memory) -> None:
    """Head, body and attachments, each under its name; a picture is a problem with its name."""
    offer = pdf([["The new roof costs 18500 euros in slate."]])
    inner = mail("Before", "The old offer was dearer.")
    data = mail(
        "Offer for the roof",
        "Our offer is attached.",
        [("offer.pdf", offer), ("photo.jpg", b"\xff\xd8\xff\xe0"), ("before.eml", inner)],
        html="<p>Our offer is attached.</p>",
    )
    done = memory.add_document(data, name="offer.eml")
    kept = done.document
    assert (kept.title, kept.author) == ("Offer for the roof", "Mara Lind <mara@example.org>")
    assert kept.date == datetime(2025, 6, 2, 7, 30, tzinfo=UTC)
    assert [(one.place, one.reason.split(",")[0]) for one in done.problems] == [
        ("attachment photo.jpg", "it is a picture")
    ]
    found = places(memory, kept.id)
    assert found[0][2].startswith("From: Mara Lind <mara@example.org>\nTo: Ode Farr")
    assert (None, (), "Our offer is attached.") in found
    assert (1, ("offer.pdf",), "The new roof costs 18500 euros in slate.") in found
    assert (None, ("before.eml",), "The old offer was dearer.") in found


@pytest.mark.promise("documents.formats")
def test_text_is_kept_verbatim(memory: Memory) -> None:
    """Sections are ranges of one text, none too long; together they are all of it."""
    paragraphs = [
        f"Paragraph {n} says {n * 7919 % 1000}. " + "More of it. " * 40 for n in range(40)
    ]
    text = "# Notes\n\n" + "\n\n".join(paragraphs) + "\n\n## End\n\n    kept   as it is\n"
    kept = memory.add_document(text.encode(), name="notes.md").document
    sections = memory.document_sections(kept.id)
    assert all(len(one.text) <= 3_000 for one in sections)
    assert [one.number for one in sections] == list(range(1, kept.sections + 1))
    assert sections[-1].heading == ("Notes", "End")
    assert sections[-1].text == "## End\n\n    kept   as it is"
    said = "".join(one.text for one in sections)
    assert "".join(said.split()) == "".join(text.split())
    assert all(a.end <= b.start for a, b in itertools.pairwise(sections))
    assert sections[-1].end == kept.characters
    latin = memory.add_document("Größe: 3 m".encode("cp1252"), name="size.txt")
    assert [one.reason for one in latin.problems] == ["it is not UTF-8; read as Windows-1252"]
    assert places(memory, latin.document.id) == [(None, (), "Größe: 3 m")]


def locked() -> bytes:
    from pypdf import PdfReader, PdfWriter

    writer = PdfWriter(clone_from=PdfReader(io.BytesIO(LEASE)))
    writer.encrypt("a password", algorithm="RC4-128")
    out = io.BytesIO()
    writer.write(out)
    return out.getvalue()


def bomb() -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("word/document.xml", b"<w:document/>")
    data = out.getvalue()
    # Where the directory of the archive says how large its only member is.
    at = data.index(b"PK\x01\x02") + 24
    return data[:at] + (500_000_000).to_bytes(4, "little") + data[at + 4 :]


LAUGHS = '<!DOCTYPE w [<!ENTITY a "ha"><!ENTITY b "&a;&a;&a;&a;">]>'


@pytest.mark.promise("documents.hostile")
@pytest.mark.parametrize(
    ("name", "make", "reason"),
    [
        ("locked.pdf", locked, "needs a password"),
        ("torn.pdf", lambda: LEASE[:200], "damaged"),
        ("empty.pdf", lambda: pdf([[], []]), "pages are pictures"),
        ("bomb.docx", bomb, "unpacks to 500,000,000"),
        ("laughs.docx", lambda: docx([("x", 0)], before=LAUGHS), "declares entities"),
        ("torn.docx", lambda: HANDBOOK[:400], "damaged"),
        ("old.doc", lambda: b"\xd0\xcf\x11\xe0" + bytes(600), "Office 97"),
        ("program", lambda: b"\x7fELF\x02\x01\x00\x00", "no PDF, DOCX, HTML"),
        ("nothing.txt", lambda: b" \n", "empty"),
        ("blank.html", lambda: b"<html><script>1</script></html>", "no text"),
    ],
)
def test_what_cannot_be_read(
    memory: Memory, name: str, make: Callable[[], bytes], reason: str
) -> None:
    """The error names the file and says why; nothing is kept of it."""
    with pytest.raises(UnreadableDocument, match=reason) as caught:
        memory.add_document(make(), name=name)
    assert name in str(caught.value)
    assert memory.documents(history=True) == ()


@pytest.mark.promise("documents.hostile")
def test_mails_in_mails_and_nested_pages(memory: Memory, tmp_path: Path) -> None:
    """Depth harms nobody: too many mails in one another are refused, elements are only text."""
    data = mail("0", "innermost")
    for number in range(1, 9):
        data = mail(str(number), "around", [("inner.eml", data)])
    with pytest.raises(UnreadableDocument, match="nested more than"):
        memory.add_document(data, name="mails.eml")
    deep = b"<div>" * 20_000 + b"still read" + b"</div>" * 20_000
    page = memory.add_document(deep, name="deep.html").document
    assert places(memory, page.id) == [(None, (), "still read")]
    for missing in (tmp_path / "not there.pdf", tmp_path):
        with pytest.raises(UnreadableDocument, match="cannot be read"):
            memory.add_document(missing)
    with pytest.raises(InvalidInput, match="name"):
        memory.add_document(b"text")
    with pytest.raises(InvalidInput, match="name"):
        memory.add_document(b"text", name=" ")


@pytest.mark.promise("documents.found")
def test_found_by_every_lane(memory: Memory) -> None:
    """Search, a task's package, and deep recall's evidence name document, page and heading."""
    kept = memory.add_document(LEASE, name="lease.pdf", tags=["flat"]).document
    memory.add_document(HANDBOOK, name="handbook.docx")
    memory.conversations.append_user("monday", "We painted the kitchen green.")
    question = "With how many months of notice may we terminate the lease?"
    for kinds in (("document",), ("memory", "note", "turn", "file", "document")):
        hits = memory.search(question, kinds=kinds, min_confidence=0).hits
        hit = next(one for one in hits if one.kind == "document")
        assert (hit.kind, hit.id) == ("document", f"{kept.id}#2")
        assert hit.title == "Lease of Harbour Street 4, page 2, Termination"
        assert hit.ts == kept.date
    assert memory.document(hit.id) == kept
    tagged = memory.search("days off each year", tags=["flat"], min_confidence=0)
    assert {one.id.partition("#")[0] for one in tagged.hits} <= {kept.id}
    assert not memory.search(question, until=datetime(2020, 1, 1, tzinfo=UTC), kinds=["document"])
    assert not memory.search(question, kinds=["memory"]).hits
    package = memory.recall_context("terminate the lease with notice")
    target = package.primary_targets[0]
    assert (target.kind, target.id) == ("document", f"{kept.id}#2")
    assert package.memories[0].title == "Lease of Harbour Street 4, page 2, Termination"
    deep = memory.deep_recall("terminate lease notice")
    source = next(one for one in deep.sources if one.kind == "document")
    assert (source.role, source.id) == (hit.title, f"memory:{kept.id}#2")
    assert "three months" in source.text


def test_documents_stand_for_themselves(memory: Memory, clock: Clock) -> None:
    """A later invoice replaces no earlier one, and age takes nothing from either."""
    for month, total in (("January", 120), ("February", 140)):
        text = f"Invoice of {month}. The total is {total} euros."
        memory.add_document(text.encode(), name=f"{month}.txt")
        clock.advance(days=400)
    hits = memory.search("What is the total of the invoice?", min_confidence=0).hits
    assert len(hits) == 2
    assert all(hit.current and not hit.versions for hit in hits)


@pytest.mark.promise("documents.versions")
def test_versions(memory: Memory, clock: Clock) -> None:
    """Known bytes are kept once; a changed file takes its place, and the old one is in history."""
    first = memory.add_document(LEASE, name="lease.pdf").document
    for name in ("lease.pdf", "copy of lease.pdf"):
        again = memory.add_document(LEASE, name=name)
        assert (again.action, again.document) == ("known", first)
    dearer = pdf([["The monthly rent is 1350 euros from May on."]], title="Lease")
    done = memory.add_document(dearer, name="lease.pdf")
    second = done.document
    assert (done.action, second.supersedes) == ("replaced", first.id)
    assert memory.documents() == (second,)
    assert memory.stats().documents == 1
    assert [one.id for one in memory.document_history("lease.pdf")] == [first.id, second.id]
    past = memory.document(first.id)
    assert (past.superseded_by, past.replaced_at) == (second.id, clock())
    assert memory.document_file(first.id) == LEASE
    assert "1200" in memory.document_sections(first.id)[0].text
    hits = memory.search("How much is the monthly rent?", min_confidence=0).hits
    assert [one.id for one in hits] == [f"{second.id}#1"]
    focus = memory.recall_context("the monthly rent")
    assert [one.id for one in focus.primary_targets] == [f"{second.id}#1"]
    # The old bytes are a new version again.
    assert memory.add_document(LEASE, name="lease.pdf").action == "replaced"
    assert len(memory.document_history("lease.pdf")) == 3


@pytest.mark.promise("documents.secrets")
def test_secrets(memory: Memory, tmp_path: Path) -> None:
    """They are taken out of the text; the file, which has them still, is not kept unasked."""
    text = b"The password: hunter2-Xq81kkP for the router.\n"
    done = memory.add_document(text, name="router.txt")
    assert done.redacted
    assert not done.document.file_kept
    with pytest.raises(NotFound):
        memory.document_file(done.document.id)
    held = b"".join(one.read_bytes() for one in (tmp_path / "home").rglob("*") if one.is_file())
    assert b"hunter2-Xq81kkP" not in held
    kept = memory.add_document(text + b"more", name="second.txt", keep_file=True).document
    assert memory.document_file(kept.id) == text + b"more"
    bare = memory.add_document(b"No secret at all.", name="third.txt", keep_file=False).document
    assert not bare.file_kept


def bytes_of(home: Path) -> bytes:
    return b"".join(path.read_bytes() for path in home.rglob("*") if path.is_file())


@pytest.mark.promise("documents.forgotten")
@pytest.mark.promise("forget.bytes")
def test_forgetting(tmp_path: Path, clock: Clock) -> None:
    """Every version, section, vector and file goes from every byte of the home."""
    many = b"\n".join(b"# Game %d\n\nThe move was zugzwang.\n" % number for number in range(150))
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        memory.add_document(many, name="games.md")
        memory.search("zugzwang")
        memory.recall_context("zugzwang")
    # So many are on the disk of both indexes when the home is opened again.
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock) as memory:
        assert memory.forget(memory.documents()[0].id).count == 1
        assert b"zugzwang" not in bytes_of(tmp_path / "home")
        forget_what_is_cited(memory, tmp_path)


def forget_what_is_cited(memory: Memory, tmp_path: Path) -> None:
    words = [b"zugzwang", b"quixotry", b"Zugzwang", b"chessplan"]
    memory.add_document(
        b"The first zugzwang of the game. IBAN DE89370400440532013000", name="chessplan.txt"
    )
    kept = memory.add_document(
        b"Then quixotry, and zugzwang again. IBAN DE89370400440532013000", name="chessplan.txt"
    ).document
    fact = memory.remember("Pay to the IBAN DE89370400440532013000.")
    assert memory.search("quixotry zugzwang", min_confidence=0).hits
    assert memory.recall_context("quixotry").primary_targets
    assert memory.deep_recall("What was quixotry in the zugzwang?").sources
    assert all(word in bytes_of(tmp_path / "home") for word in words[:2])
    # What still holds a number of it is told, both ways round.
    told = memory.forget(fact.id, dry_run=True)
    assert ("document", f"{kept.id}#1") in {(one.kind, one.id) for one in told.surviving}
    would = memory.forget(kept.id, dry_run=True)
    assert would.count == 2
    # Its own sections do not survive it.
    assert ("memory", fact.id) in {(one.kind, one.id) for one in would.surviving}
    assert "document" not in {one.kind for one in would.surviving}
    done = memory.forget(kept.id)
    assert (done.count, done.ids[0]) == (2, kept.id)
    assert ("memory", fact.id) in {(one.kind, one.id) for one in done.surviving}
    assert memory.documents(history=True) == ()
    assert not memory.search("quixotry zugzwang", kinds=["document"], min_confidence=0).hits
    assert not memory.recall_context("quixotry").primary_targets
    with pytest.raises(NotFound):
        memory.document(kept.id)
    with pytest.raises(NotFound):
        memory.forget(kept.id)
    assert not [word for word in words if word in bytes_of(tmp_path / "home")]


@pytest.mark.promise("documents.forgotten")
def test_forgetting_with_a_way_back(memory: Memory) -> None:
    """Undoably forgotten, it is found no more, and comes back with its sections and file."""
    kept = memory.add_document(LEASE, name="lease.pdf").document
    assert memory.forget(kept.id, undoable=True).count == 1
    assert memory.documents() == ()
    assert not memory.search("monthly rent", min_confidence=0).hits
    assert memory.undo_forget(kept.id) == (kept.id,)
    assert memory.document_file(kept.id) == LEASE
    assert memory.search("monthly rent", min_confidence=0).hits


@pytest.mark.promise("documents.travel")
@pytest.mark.parametrize("form", ["clear", "sealed", "server"])
def test_homes_of_every_kind(
    tmp_path: Path, clock: Clock, form: str, request: pytest.FixtureRequest
) -> None:
    """A sealed home has no word of it on its disk; a backup brings it back; so does a server."""
    url = request.getfixturevalue("postgresql_url") if form == "server" else None
    home, words = tmp_path / "home", (b"Harbour", b"notice", b"lease", b"%PDF")
    with Memory.open(
        home,
        database=url,
        encrypt="file" if form == "sealed" else None,
        embedder="hashing",
        clock=clock,
    ) as memory:
        kept = memory.add_document(LEASE * 1, name="lease.pdf").document
        assert memory.search("monthly rent", min_confidence=0).hits[0].id == f"{kept.id}#1"
        assert memory.recall_context("monthly rent").primary_targets[0].id == f"{kept.id}#1"
        assert memory.document_file(kept.id) == LEASE
        sections = memory.document_sections(kept.id)
        memory.backup(tmp_path / "backup.zip")
        if form == "sealed":
            held = bytes_of(home)
            assert not [word for word in words if word in held]
    if form != "clear":
        return
    Memory.restore(tmp_path / "backup.zip", tmp_path / "other")
    with Memory.open(tmp_path / "other", embedder="hashing", clock=clock) as memory:
        assert memory.document_sections(kept.id) == sections
        assert memory.document_file(kept.id) == LEASE
        assert memory.search("monthly rent", min_confidence=0).hits


@pytest.mark.promise("documents.travel")
def test_an_export(memory: Memory, tmp_path: Path, clock: Clock) -> None:
    """Versions, sections and files come back under their ids; a second import changes nothing."""
    first = memory.add_document(LEASE, name="lease.pdf", tags=["flat"], origin="Ode").document
    clock.advance(days=1)
    dearer = pdf([["The monthly rent is 1350 euros."]], title="Lease")
    second = memory.add_document(dearer, name="lease.pdf").document
    bare = memory.add_document(b"Kept as text.", name="bare.txt", keep_file=False).document
    gone = memory.add_document(b"To be forgotten.", name="gone.txt").document
    assert memory.export(tmp_path / "all.jsonl").documents == 4
    memory.forget(gone.id)
    # Where it was forgotten it stays away.
    assert memory.import_(tmp_path / "all.jsonl").documents_added == 0
    with Memory.open(tmp_path / "other", embedder="hashing", clock=clock) as other:
        own = other.add_document(HANDBOOK, name="handbook.docx").document
        report = other.import_(tmp_path / "all.jsonl")
        assert (report.documents_added, report.documents_known, report.problems) == (4, 0, ())
        again = other.import_(tmp_path / "all.jsonl")
        assert (again.documents_added, again.documents_known, again.problems) == (0, 4, ())
        assert other.document_history("lease.pdf") == memory.document_history("lease.pdf")
        assert other.document_sections(first.id) == memory.document_sections(first.id)
        assert other.document_file(first.id) == LEASE
        assert other.document_file(second.id) == dearer
        assert not other.document(bare.id).file_kept
        assert {one.id for one in other.documents()} == {own.id, second.id, bare.id, gone.id}
        hits = other.search("monthly rent", kinds=["document"], min_confidence=0).hits
        assert hits[0].id == f"{second.id}#1"
        assert other.add_document(dearer, name="elsewhere.pdf").document.id == second.id


@pytest.mark.promise("documents.travel")
def test_a_home_that_is_encrypted_later(tmp_path: Path, clock: Clock) -> None:
    """Encrypting takes the text and the file along, and decrypting gives them back."""
    pytest.importorskip("cryptography")
    from anaphora import keys

    home = tmp_path / "home"
    with Memory.open(home, embedder="hashing", clock=clock) as memory:
        kept = memory.add_document(LEASE, name="lease.pdf").document
        sections = memory.document_sections(kept.id)
    keys.encrypt(home, kept="file")
    assert b"Harbour" not in bytes_of(home)
    assert b"%PDF" not in bytes_of(home)
    for undo in (False, True):
        if undo:
            keys.decrypt(home)
        with Memory.open(home, embedder="hashing", clock=clock) as memory:
            assert memory.document(kept.id) == kept
            assert memory.document_sections(kept.id) == sections
            assert memory.document_file(kept.id) == LEASE
            assert memory.search("monthly rent", kinds=["document"], min_confidence=0).hits
            assert memory.add_document(LEASE, name="again.pdf").action == "known"


def test_vectors_come_later(memory: Memory) -> None:
    """Left to `ready`, words alone find a document until then; a rebuilt index finds it, too."""
    done = memory.add_document(LEASE, name="lease.pdf", embed=False)
    assert done.pending == 2
    assert memory.search("notice terminate", kinds=["document"], min_confidence=0).hits
    assert memory.ready()
    assert memory.add_document(LEASE, name="lease.pdf").pending == 0
    assert memory.search("notice terminate", kinds=["document"], min_confidence=0).hits


@pytest.mark.promise("documents.forgotten")
def test_the_audit_trail_names_documents(memory: Memory) -> None:
    """What was added, replaced, read, found and forgotten is told by id, once for a document."""
    memory.audit.on()
    first = memory.add_document(LEASE, name="lease.pdf").document
    second = memory.add_document(b"# Lease\n\nNew.", name="lease.pdf").document
    memory.document(second.id)
    hit = memory.search("Lease", kinds=["document"], min_confidence=0).hits[0]
    memory.forget(second.id)
    told = [
        (one.action, one.lane, set(one.ids))
        for one in memory.audit.show(limit=50)
        if one.lane in ("document", "document_section", "everything")
    ]
    assert ("remembered", "document", {first.id}) in told
    assert ("changed", "document", {first.id}) in told
    assert ("read", "document", {second.id}) in told
    assert ("recalled", "everything", {hit.id}) in told
    assert ("forgotten", "document", {first.id, second.id}) in told
    assert memory.audit.verify().problem is None
