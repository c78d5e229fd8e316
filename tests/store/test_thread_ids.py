"""Which ids name a conversation, and which file each one gets."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from anaphora import ConversationStore
from anaphora.errors import InvalidId
from anaphora.store.threads.ids import (
    check_id,
    escaped_name,
    file_name,
    id_of,
    id_of_escaped,
    needs_content,
)

RESERVED = {"con", "prn", "aux", "nul", *(f"{d}{n}" for d in ("com", "lpt") for n in range(10))}


@pytest.mark.promise("threads.ids")
@pytest.mark.parametrize(
    "name", ["conv_00000581aa27f53869a9", "a", "a.json", "a-b_c.d", "a..b", "_"]
)
def test_plain_ids_are_their_own_file_names(name: str) -> None:
    """Ids as Neo makes them lie where Neo looks for them."""
    assert file_name(name) == f"{name}.json"


@pytest.mark.promise("threads.ids")
@pytest.mark.parametrize(
    "bad",
    ["", " ", "\t", "\u3000", ".", "..", "../x", "a/b", "a\\b", "/etc/passwd", "..\\x", "a\x00b",
     "a\nb", "a\x7f", "a\x85b", "a\ud800", "x" * 1025],
)  # fmt: skip
def test_ids_that_could_do_harm_are_refused(bad: str, tmp_path: Path) -> None:
    """Traversal, separators, control characters, lone surrogates and blanks raise InvalidId."""
    for store in (ConversationStore(tmp_path), ConversationStore(tmp_path, strict=True)):
        calls: list[Callable[[], object]] = [
            partial(store.append, bad, "user", "text"),
            partial(store.get, bad),
            partial(store.recent, bad),
            partial(store.delete, bad),
            partial(store.redact, bad, 0),
            partial(store.set_title, bad, "t"),
            partial(store.path, bad),
        ]
        for call in calls:
            with pytest.raises(InvalidId):
                call()
    assert list(tmp_path.iterdir()) == []


@given(st.text(st.characters(exclude_categories=("Cc", "Cs")), min_size=1, max_size=300))
def test_the_name_is_the_daemons_wherever_a_disk_can_hold_it(conversation_id: str) -> None:
    """The id and ".json"; an id whose name is too long gets one that ends in a hash."""
    assume(conversation_id.strip() and not set("/\\") & set(conversation_id))
    assume(conversation_id not in {".", ".."})
    name = file_name(conversation_id)
    fits = len(f"{conversation_id}.json.tmp".encode()) <= 255
    assert (name == f"{conversation_id}.json") is fits
    assert len(name.encode()) <= 251
    assert id_of(name) == conversation_id or needs_content(name)
    folder = escaped_name(conversation_id)
    assert folder == folder.lower()
    assert folder.isascii()
    assert not folder.startswith(".")
    assert folder.split(".")[0] not in RESERVED
    assert id_of_escaped(folder) == conversation_id or len(folder) > 150


@given(
    st.text("aA%.-_24éE\u0301 ", min_size=1, max_size=6),
    st.text("aA%.-_24éE\u0301 ", min_size=1, max_size=6),
)
def test_two_namespaces_never_share_a_folder(one: str, other: str) -> None:
    """Escaped names differ even on a disk that ignores case and normal forms."""
    try:
        names = [escaped_name(one), escaped_name(other)]
    except InvalidId:
        return
    folded = {unicodedata.normalize("NFC", name).casefold() for name in names}
    assert len(folded) == (1 if one == other else 2)


@pytest.mark.promise("threads.ids")
def test_ids_that_disks_confuse_are_kept_apart(tmp_path: Path) -> None:
    """Case, accents, reserved names, trailing dots and long ids: each its own thread."""
    ids = ["abc", "Abc", "ABC", "%41bc", "é", "e", "con", "CON", "nul.txt", "lpt1", "a."]
    ids += ["a ", " a", ".hidden", "a.json", "a.json.1", "x" * 300, "x" * 301, "漢字" * 100]
    ids += ["a:b", "a%-b", "*", "a?"]
    store = ConversationStore(tmp_path, strict=True)
    for conversation_id in ids:
        store.append(conversation_id, "user", f"text of {conversation_id}")
    assert {summary.conversation_id for summary in store.list()} == set(ids)
    assert {conversation_id for conversation_id, _ in store.files()} == set(ids)
    for conversation_id in ids:
        assert store.recent(conversation_id)[0].text == f"text of {conversation_id}"
        assert store.delete(conversation_id)
    assert store.list() == ()


@pytest.mark.promise("threads.ids")
def test_another_programs_file_is_found_under_its_id(tmp_path: Path) -> None:
    """A file that was written under an unescaped name is read and extended where it is."""
    record = '{"conversation_id":"My Chat","turns":[],"updated":"2026-01-01T00:00:00Z"}'
    (tmp_path / "My Chat.json").write_text(record)
    store = ConversationStore(tmp_path, strict=True)
    assert store.append("My Chat", "user", "hello")
    assert [path.name for path in tmp_path.glob("*.json")] == ["My Chat.json"]
    assert [summary.conversation_id for summary in store.list()] == ["My Chat"]
    assert store.recent("My Chat")[0].text == "hello"
    assert store.recent("my chat") == ()


@pytest.mark.promise("threads.bad_input")
def test_naughty_strings_as_ids(naughty: list[str], tmp_path: Path) -> None:
    """Every troublesome text either names a thread that is listed under it, or raises InvalidId."""
    store = ConversationStore(tmp_path, strict=True)
    worked = {}
    for text in naughty:
        try:
            check_id(text)
        except InvalidId:
            with pytest.raises(InvalidId):
                store.append(text, "user", "x")
            continue
        assert store.append(text, "user", f"text of {text}")
        # What looks the same is one.
        worked[unicodedata.normalize("NFC", text)] = text
    assert len(worked) > 200
    assert {summary.conversation_id for summary in store.list()} == worked.keys()
    for composed, text in worked.items():
        for form in (composed, text):
            assert store.recent(form)[-1].text == f"text of {text}"


@given(st.text(max_size=30))
def test_reading_a_name_never_fails(name: str) -> None:
    """Any file name either tells an id that leads back to it, or tells none."""
    conversation_id = id_of(name)
    if conversation_id is not None:
        assert name == file_name(conversation_id)
