"""Thread files: which file an id gets, and every byte in it."""

from __future__ import annotations

import json
import unicodedata
from collections.abc import Callable
from datetime import UTC, datetime, timedelta, timezone
from functools import partial
from pathlib import Path

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from anaphora import ConversationStore, Thread, Turn
from anaphora.errors import InvalidId
from anaphora.store.threads.gojson import (
    NotAThread,
    canonical_time,
    decode,
    encode,
    escape,
    format_time,
    nanoseconds,
    read_time,
    utc_text,
)
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


# Half of the characters are the ones that the rule is about, and the ones its codes are made of.


T1 = "2026-03-01T09:55:37.5Z"
TEXTS = st.text(st.characters(exclude_categories=()))
TIMES = st.datetimes(
    datetime(2, 1, 1),  # noqa: DTZ001 - hypothesis adds the zone
    datetime(9998, 1, 1),  # noqa: DTZ001
    timezones=st.integers(-1439, 1439).map(lambda m: timezone(timedelta(minutes=m))),
)


@pytest.mark.promise("threads.go_bytes")
def test_go_files_round_trip(go_threads: list[Path]) -> None:
    """Every file that Go wrote gives the same bytes after decoding and encoding."""
    assert len(go_threads) == 12
    for file in go_threads:
        data = file.read_bytes()
        assert encode(decode(data)) == data


@pytest.mark.promise("threads.go_bytes")
def test_an_append_to_a_go_file_adds_what_go_would(go_threads: list[Path], tmp_path: Path) -> None:
    """Appending keeps every byte before the end of the turns and equals encoding the whole."""
    for file in go_threads:
        data = file.read_bytes()
        (tmp_path / file.name).write_bytes(data)
        store = ConversationStore(tmp_path, strict=True)
        for text in ("a <b> & c", "\u2028 \x00 \x7f 🧠"):
            store.append(file.stem, "assistant", text, intent_id="neo_1")
        written = (tmp_path / file.name).read_bytes()
        thread = decode(written)
        assert encode(thread) == written
        assert written.startswith(data[: data.rindex(b'],"updated"')])
        assert thread.turns[-2].text == "a <b> & c"


@pytest.mark.parametrize(
    ("text", "written"),
    [
        ("<>&", r'"\u003c\u003e\u0026"'),
        ("\u2028\u2029", r'"\u2028\u2029"'),
        ('"\\/', r'"\"\\/"'),
        ("\n\r\t\b\f", r'"\n\r\t\b\f"'),
        ("\x00\x01\x1f\x7f", '"\\u0000\\u0001\\u001f\x7f"'),
        ("é🧠\ufffd", '"é🧠\ufffd"'),
        ("\\u003c", r'"\\u003c"'),
        ("a\ud83d", r'"a\ud83d"'),
    ],
)
@pytest.mark.promise("threads.go_bytes")
def test_strings_are_escaped_as_go_does(text: str, written: str) -> None:
    """Each kind of character is written as Go writes it; lone halves survive as escapes."""
    assert escape(text) == written


@given(TEXTS, TEXTS, TIMES)
def test_any_turn_round_trips(text: str, title: str, when: datetime) -> None:
    """Whatever the text, the title and the time, decoding gives back what was encoded."""
    stamp = format_time(when)
    text, title = json.loads(json.dumps([text, title]))  # what JSON can tell apart
    turn = Turn("user", text, read_time(stamp), stamp)
    thread = Thread("c", (turn,), read_time(T1), T1, title)
    data = encode(thread)
    assert decode(data) == thread
    assert json.loads(data)["turns"][0]["text"] == text
    assert read_time(stamp) == when


@given(TIMES, st.integers(0, 999))
def test_nanoseconds_are_exact(when: datetime, extra: int) -> None:
    """Instants compare by nanosecond, whatever their offset, and survive the way to UTC."""
    text = format_time(when.replace(microsecond=123456)).replace("123456", f"123456{extra:03d}")
    text = canonical_time(text)
    assert nanoseconds(utc_text(text)) == nanoseconds(text)
    assert nanoseconds(text) % 1000 == extra
    assert utc_text(text).endswith("Z")


@pytest.mark.parametrize(
    ("given_text", "written"),
    [
        ("2026-01-01T00:00:00.500Z", "2026-01-01T00:00:00.5Z"),
        ("2026-01-01T00:00:00.000Z", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00+00:00", "2026-01-01T00:00:00Z"),
        ("2026-01-01T00:00:00.1234567891-05:30", "2026-01-01T00:00:00.123456789-05:30"),
        ("2026-01-01T5:00:00Z", "2026-01-01T05:00:00Z"),
    ],
)
def test_times_are_written_as_go_does(given_text: str, written: str) -> None:
    """Go cuts trailing zeros, keeps nine digits, and writes Z for no offset."""
    assert canonical_time(given_text) == written


@pytest.mark.parametrize(
    "text",
    ["", "2026-01-01", "2026-13-01T00:00:00Z", "2026-02-30T00:00:00Z", "2026-01-01T24:00:00Z",
     "2026-01-01T00:00:60Z", "2026-01-01 00:00:00Z", "2026-01-01T00:00:00", "0000-13-01T00:00:00Z"],
)  # fmt: skip
def test_times_that_go_refuses_are_refused(text: str) -> None:
    """What is no RFC 3339 time to Go is none here."""
    with pytest.raises(ValueError, match=r"."):
        read_time(text)


FOREIGN = {
    "spaces": '{\n  "conversation_id": "f",\n  "turns": [\n    {"role": "user", "text": "é one", '
    '"ts": "%s", "mood": 1}\n  ],\n  "updated": "%s",\n  "more": [1e400]\n}\n',
    "order": '{"updated":"%s","turns":[{"ts":"%s","text":"é one","role":"user","mood":1}],'
    '"more":[1e400],"conversation_id":"f"}',
    "twice": '{"turns":[],"conversation_id":"f","turns":[{"role":"user","text":"é one","ts":"%s",'
    '"mood":1}],"updated":"%s","more":[1e400]}',
    "case": '{"Conversation_ID":"f","TURNS":[{"Role":"user","TEXT":"no","Text":"é one","ts":"%s",'
    '"mood":1}],"Updated":"%s","more":[1e400]}',
}


@pytest.mark.parametrize("layout", FOREIGN)
@pytest.mark.promise("threads.go_bytes")
def test_other_layouts_are_read_and_extended(layout: str, tmp_path: Path) -> None:
    """A file of another program's layout is read as Go would, and members unknown to Go stay."""
    data = (FOREIGN[layout] % (T1, T1)).encode()
    path = tmp_path / "f.json"
    path.write_bytes(data)
    store = ConversationStore(tmp_path, strict=True)
    assert [turn.text for turn in store.recent("f")] == ["é one"]
    for text in ("two", "three"):
        assert store.append("f", "user", text)
    assert [turn.text for turn in store.recent("f")] == ["é one", "two", "three"]
    assert b'"mood"' in path.read_bytes()
    assert b"[1e400]" in path.read_bytes()
    if layout == "spaces":
        end = data.index(b"\n  ],") + 3
        assert path.read_bytes().startswith(data[:end])
        assert path.read_bytes().endswith(b'"more": [1e400]\n}\n')
    assert store.set_title("f", "Named")
    assert b'"mood"' in path.read_bytes()
    assert b"[1e400]" in path.read_bytes()


@pytest.mark.promise("threads.go_bytes")
def test_broken_utf8_is_not_touched_by_an_append(tmp_path: Path) -> None:
    """Bytes that are no UTF-8 stay as they are when turns are added after them."""
    start = b'{"turns":[{"text":"\xc3\xa9\xff\xe2\x82","ts":"2026-03-01T09:55:37Z"}'
    (tmp_path / "f.json").write_bytes(start + b'],"updated":"2026-03-01T09:55:37Z"}')
    store = ConversationStore(tmp_path, strict=True)
    assert store.append_user("f", "two")
    assert store.append_user("f", "three")
    assert (tmp_path / "f.json").read_bytes().startswith(start + b',{"role":"user","text":"two"')
    assert [turn.text for turn in store.recent("f")] == ["é\ufffd\ufffd\ufffd", "two", "three"]


@pytest.mark.parametrize(
    ("data", "texts"),
    [
        (b"null", []),
        (b" {} ", []),
        (b'{"turns":null,"title":null,"updated":null}', []),
        (b'{"turns":[null,{"text":null}]}', ["", ""]),
        (b'{"turns":[{"text":"\xff\xe2\x82"}]}', ["\ufffd\ufffd\ufffd"]),
    ],
)
def test_nulls_and_broken_utf8_read_as_in_go(data: bytes, texts: list[str]) -> None:
    """Null leaves a field empty, and each byte that is not UTF-8 is one U+FFFD."""
    assert [turn.text for turn in decode(data).turns] == texts


@pytest.mark.parametrize(
    "data",
    [b"", b"[]", b"1", b'"x"', b'{"turns":{}}', b'{"turns":[1]}', b'{"turns":[[]]}', b'{"title":1}',
     b'{"turns":[{"text":1}]}', b'{"turns":[{"ts":""}]}', b'{"updated":"now"}', b"{}{}", b"{} x",
     b'{"a":NaN}', b'{"a":-Infinity}', b'\xef\xbb\xbf{}', b'{"a":1,}', b'{"turns":[{},]}', b"{,}",
     b'{"a" 1}', b'{"a":"\x01"}', b"{'a':1}", b'{"conversation_id":"x","turns":[{"role":"us'],
)  # fmt: skip
def test_what_go_refuses_is_refused(data: bytes) -> None:
    """Bytes that Go would not read as a record raise NotAThread and nothing else."""
    with pytest.raises(NotAThread):
        decode(data)


@settings(max_examples=300)
@given(
    st.binary(max_size=40)
    | st.text(st.sampled_from('{}[]",:tu rns0null\\'), max_size=30).map(str.encode)
)
def test_no_bytes_raise_anything_else(data: bytes) -> None:
    """Any bytes at all either read as a thread or raise NotAThread."""
    try:
        decode(data)
    except NotAThread:
        return


def test_deep_nesting_is_refused() -> None:
    """Nesting deeper than the reader can follow is an unreadable file, not a crash."""
    deep = b'{"x":' + b"[" * 100_000 + b"]" * 100_000 + b"}"
    with pytest.raises(NotAThread, match="deep"):
        decode(deep)


def test_an_empty_thread_is_written_as_go_does() -> None:
    """Go writes a list that was never filled as null, and leaves empty strings out."""
    empty = Thread("c", (), datetime(2026, 1, 1, tzinfo=UTC), "2026-01-01T00:00:00Z")
    assert encode(empty) == b'{"conversation_id":"c","turns":null,"updated":"2026-01-01T00:00:00Z"}'
