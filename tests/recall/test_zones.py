"""Days of questions are the user's, and shown times say their zone."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from zoneinfo import ZoneInfo

import pytest
from tests.commands import run_command
from tests.surfaces.rest_desk import served

from anaphora import Memory, render_recall
from anaphora.errors import InvalidInput

LOS_ANGELES = ZoneInfo("America/Los_Angeles")
BERLIN = ZoneInfo("Europe/Berlin")
# In UTC it is already the 25th.
EVENING = datetime(2026, 11, 24, 17, 30, tzinfo=LOS_ANGELES)
SAID = {
    "tiles": datetime(2026, 11, 23, 19, tzinfo=LOS_ANGELES),
    "plumber": datetime(2026, 11, 24, 9, tzinfo=LOS_ANGELES),
    "invoice": datetime(2026, 11, 24, 16, 30, tzinfo=LOS_ANGELES),
}
TEXTS = {
    "tiles": "We picked the green tiles for the bathroom.",
    "plumber": "The plumber comes at four with the new boiler.",
    "invoice": "The electrician will bring the invoice.",
}


def tell(memory: Memory, said: dict[str, datetime]) -> None:
    for name, ts in said.items():
        text = TEXTS.get(name, f"Something about {name}.")
        memory.conversations.append("w", "user", text, ts=ts)


def names(memory: Memory, question: str, said: dict[str, datetime]) -> set[str]:
    hits = memory.recall_conversation(None, question, top_k=20).hits
    found = {memory.conversations.get(hit.conversation_id).turns[hit.index].text for hit in hits}  # type: ignore[union-attr]
    return {name for name in said if TEXTS.get(name, f"Something about {name}.") in found}


@pytest.fixture
def open_memory(tmp_path: Path) -> Iterator[Callable[..., Memory]]:
    opened: list[Memory] = []

    def make(now: datetime, **options: object) -> Memory:
        options = {"embedder": "hashing", "warm": False, "clock": lambda: now, **options}
        opened.append(Memory.open(tmp_path / f"home{len(opened)}", **options))  # type: ignore[arg-type]
        return opened[-1]

    yield make
    for memory in opened:
        memory.close()


WAYS = ["argument", "variable", "TZ", "TZ with a colon", "a file", "the clock", "its bare offset"]


@pytest.mark.parametrize("way", WAYS)
def test_today_and_yesterday_are_the_users(
    way: str, open_memory: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever says the zone: a setting, the environment, or the clock that a program passes."""
    now, options = EVENING.astimezone(UTC), {}
    if way == "argument":
        options = {"timezone": "America/Los_Angeles"}
    elif way == "variable":
        monkeypatch.setenv("ANAPHORA_TIMEZONE", "America/Los_Angeles")
    elif way == "the clock":
        now = EVENING
    elif way == "its bare offset":
        now = EVENING.astimezone(timezone(timedelta(hours=-8)))
    else:
        value = {"TZ": "", "TZ with a colon": ":", "a file": "/usr/share/zoneinfo/"}[way]
        monkeypatch.setenv("TZ", f"{value}America/Los_Angeles")
    memory = open_memory(now, **options)
    assert memory.local_time.utcoffset() == timedelta(hours=-8)
    tell(memory, SAID)
    for question, wanted in (
        ("what did we say today?", {"plumber", "invoice"}),
        ("what did I say yesterday?", {"tiles"}),
        ("what happened on 23 November?", {"tiles"}),
        ("what happened on 2026-11-24?", {"plumber", "invoice"}),
        ("was ist gestern passiert?", {"tiles"}),
        ("de quoi avons-nous parlé hier ?", {"tiles"}),
        ("¿qué pasó ayer?", {"tiles"}),
        ("昨日何を話しましたか？", {"tiles"}),
        ("what happened on 25 November 2026?", set()),
    ):
        assert names(memory, question, SAID) == wanted, question
    silent = memory.recall_conversation(None, "what happened on 22 November?")
    assert [notice[:32] for notice in silent.notices] == ["nothing was said on 2026-11-22 ("]


def test_a_setting_wins_over_the_clock_and_the_clock_over_the_environment(
    open_memory: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """UTC as the zone of a clock says nothing of the user."""
    monkeypatch.setenv("TZ", "Asia/Tokyo")
    assert open_memory(EVENING).local_time.tzinfo == LOS_ANGELES
    for utc in (UTC, ZoneInfo("UTC"), ZoneInfo("Etc/UTC"), timezone(timedelta(0))):
        local = open_memory(EVENING.astimezone(utc)).local_time
        assert (local.tzinfo, local) == (ZoneInfo("Asia/Tokyo"), EVENING)
    monkeypatch.setenv("ANAPHORA_TIMEZONE", "Europe/Berlin")
    assert open_memory(EVENING).local_time.tzinfo == BERLIN
    assert open_memory(EVENING, timezone="Asia/Kolkata").local_time.hour == 7
    # A clock that tells the machine's time by its offset has the machine's zone.
    monkeypatch.delenv("ANAPHORA_TIMEZONE")
    monkeypatch.setenv("TZ", "Europe/Berlin")
    bare = open_memory(datetime(2026, 7, 1, 9, tzinfo=timezone(timedelta(hours=2))))
    assert bare.local_time.tzinfo == BERLIN


@pytest.mark.parametrize("name", ["Mars/Olympus", "Berlin", "America", "../etc/passwd", "x" * 300])
def test_a_zone_that_is_not_known_is_refused_by_name(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The error names the setting and what it was; what only `TZ` says is passed over."""
    with pytest.raises(InvalidInput, match="timezone: expected the IANA name") as caught:
        Memory.open(tmp_path, timezone=name)
    assert caught.value.value.strip("'")[:5] == name[:5]
    monkeypatch.setenv("ANAPHORA_TIMEZONE", name)
    with pytest.raises(InvalidInput, match="ANAPHORA_TIMEZONE: expected"):
        Memory.open(tmp_path)
    monkeypatch.delenv("ANAPHORA_TIMEZONE")
    monkeypatch.setenv("TZ", name)
    with Memory.open(tmp_path, embedder="hashing", warm=False) as memory:
        assert isinstance(memory.local_time.tzinfo, ZoneInfo)


DAYS = [
    # An hour after midnight in July; the days on which clocks change, of 23 and 25 hours; a zone
    # of half an hour; one that changes at midnight; the line of dates.
    ("Europe/Berlin", "2026-07-15T00:30", 24),
    ("Europe/Berlin", "2026-03-29T12:00", 23),
    ("Europe/Berlin", "2026-10-25T12:00", 25),
    ("America/New_York", "2026-11-01T23:30", 25),
    ("Asia/Kolkata", "2026-05-01T04:00", 24),
    ("America/Havana", "2026-03-08T12:00", 23),
    ("America/Havana", "2026-11-01T12:00", 25),
    ("Pacific/Kiritimati", "2026-05-01T08:00", 24),
    ("Pacific/Pago_Pago", "2026-05-01T20:00", 24),
]


@pytest.mark.parametrize(("zone", "wall", "hours"), DAYS)
def test_a_day_is_as_long_as_it_is_there(
    zone: str, wall: str, hours: int, open_memory: Callable[..., Memory]
) -> None:
    """What was said in its first and last minute is of that day, what was said beside it is not."""
    now = datetime.fromisoformat(wall).replace(tzinfo=ZoneInfo(zone)).astimezone(UTC)
    memory = open_memory(now, timezone=zone)
    midnight = memory.local_time.replace(hour=0, minute=0)
    begin = midnight.astimezone(UTC)
    end = begin + timedelta(hours=hours)
    minute = timedelta(minutes=1)
    said = {
        "the end of yesterday": begin - minute,
        "the first minute": begin + minute,
        "the last minute": end - minute,
        "the next day": end + minute,
    }
    tell(memory, said)
    today = {"the first minute", "the last minute"}
    assert names(memory, "what did we say today?", said) == today
    assert names(memory, f"what happened on {wall[:10]}?", said) == today
    assert names(memory, "what did we say yesterday?", said) == {"the end of yesterday"}


def run(home: Path, *words: str, zone: str = "America/Los_Angeles") -> tuple[int, str, str]:
    environ = {"ANAPHORA_EMBEDDER": "hashing", "ANAPHORA_READER": "off", "PATH": "", "TZ": zone}
    environ["HOME"] = str(home)
    done = run_command("--home", home, *words, environ=environ)
    return done.returncode, done.stdout, done.stderr


@pytest.fixture
def home(tmp_path: Path) -> Path:
    with Memory.open(tmp_path / "home", embedder="hashing", warm=False) as memory:
        # 17:59 on the 24th in Los Angeles.
        ts = datetime(2026, 11, 25, 1, 59, tzinfo=UTC)
        memory.conversations.append("w", "user", TEXTS["tiles"], ts=ts)
    return tmp_path / "home"


BOUNDS = [
    (("--since", "2026-11-24", "--until", "2026-11-24"), True),
    (("--until", "2026-11-24"), True),
    (("--until", "24 November 2026"), True),
    (("--since", "2026-11-24"), True),
    (("--since", "20261124", "--until", "2026-W48-2"), True),
    (("--until", "2026-W48"), True),
    (("--since", "2026-11-25"), False),
    (("--until", "2026-11-23"), False),
    (("--since", "2026-11-24T17:59", "--until", "2026-11-24T18:00"), True),
    (("--until", "2026-11-24T17:59"), False),
    (("--since", "2026-11-25T00:00:00Z"), True),
    (("--since", "2026-11-24T17:59:00-08:00"), True),
]


@pytest.mark.parametrize(("bounds", "found"), BOUNDS)
def test_bounds_are_whole_days_of_the_user(
    bounds: tuple[str, ...], found: bool, home: Path
) -> None:
    """A date is a day there, its end included; a time is a moment, there or at its own offset."""
    for command in (("recall",), ("conversation", "recall")):
        _, out, err = run(home, *command, "green tiles", *bounds)
        assert ("green tiles" in out) is found, (command, out, err)
        assert not found or "2026-11-24 17:59 -08:00" in out


def test_the_same_over_http(home: Path) -> None:
    """Dates and times with an offset; anything else is refused."""
    with served(home, timezone="America/Los_Angeles") as (client, _):
        for path in ("/v1/search", "/v1/conversations/recall"):
            for given, count in (
                ({"since": "2026-11-24", "until": "2026-11-24"}, 1),
                ({"until": "2026-11-23"}, 0),
                ({"since": "2026-11-25"}, 0),
                ({"since": "2026-11-25T00:00:00Z"}, 1),
                ({"until": "2026-11-25T01:59:00Z"}, 0),
            ):
                told = client.post(path, json={"query": "green tiles", **given}).json()
                assert len(told["hits"]) == count, (path, given)
                # For programs times stay as they are kept.
                assert all(hit["ts"] == "2026-11-25T01:59:00Z" for hit in told["hits"])
            for wrong in ("2026-11-31", "2026-11-24T10:00:00", "24 November", 5):
                body = {"query": "tiles", "since": wrong}
                assert client.post(path, json=body).status_code == 422, wrong


@pytest.mark.parametrize(
    "bounds",
    [
        ("--since", "2026-11-25", "--until", "2026-11-24"),
        ("--since", "2026-11-25T10:00", "--until", "2026-11-25T09:00"),
        ("--until", "9999-12-31"),
        ("--since", "sometime"),
    ],
)
def test_an_error_shows_what_was_given(bounds: tuple[str, ...], home: Path) -> None:
    """As it was given, not as Python has it."""
    code, _, err = run(home, "recall", "green tiles", *bounds)
    assert code == 2
    assert bounds[-1] in err
    assert "datetime" not in err


def test_an_error_of_the_facade_shows_times_in_their_usual_form(
    open_memory: Callable[..., Memory],
) -> None:
    memory = open_memory(EVENING)
    memory.conversations.append("w", "user", "Tea.")
    with pytest.raises(InvalidInput, match=r"given 2026-11-24T17:30:00-08:00\)"):
        memory.recall_conversation(None, "tea", since=EVENING, until=EVENING)


def test_notices_name_days_of_the_user(home: Path) -> None:
    for bounds, words in (
        (("--since", "2026-11-20", "--until", "2026-11-20"), "nothing was said on 2026-11-20"),
        (
            ("--since", "2026-11-20", "--until", "2026-11-21"),
            "nothing was said from 2026-11-20 to 2026-11-21",
        ),
        (("--until", "2026-11-20"), "nothing was said until 2026-11-20"),
        (("--since", "2027-01-01"), "nothing was said since 2027-01-01"),
        (("--since", "2027-01-01T10:00"), "nothing was said since 2027-01-01 10:00 -08:00"),
    ):
        _, _, err = run(home, "conversation", "recall", "green tiles", *bounds)
        assert err.strip() == f"note: {words}"


@pytest.mark.parametrize(
    ("zone", "shown"),
    [
        ("America/Los_Angeles", "2026-11-24 17:59 -08:00"),
        ("Europe/Berlin", "2026-11-25 02:59 +01:00"),
        ("Asia/Kolkata", "2026-11-25 07:29 +05:30"),
        ("UTC", "2026-11-25 01:59 UTC"),
        ("Europe/London", "2026-11-25 01:59 UTC"),
    ],
)
def test_shown_times_say_their_zone(zone: str, shown: str, home: Path) -> None:
    """Of turns in every command, JSON has them in UTC; a block has days of the user."""
    for words in (("recall", "green tiles"), ("conversation", "show", "w")):
        assert shown in run(home, *words, zone=zone)[1]
        assert "2026-11-25T01:59:00Z" in run(home, *words, "--json", zone=zone)[1]
    assert shown in run(home, "conversation", "list", zone=zone)[1]
    block = run(home, "conversation", "recall", "green tiles", "--block", zone=zone)[1]
    assert f"#0, {shown[:10]})" in block


def test_a_block_has_the_days_of_whoever_reads_it(
    open_memory: Callable[..., Memory], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Outside of a call the environment says whose they are."""
    memory = open_memory(EVENING)
    ts = datetime(2026, 11, 25, 1, 59, tzinfo=UTC)
    memory.conversations.append("w", "user", TEXTS["tiles"], ts=ts)
    hits = memory.recall_conversation(None, "green tiles").hits
    assert "(2026-11-25)" in render_recall(hits)
    monkeypatch.setenv("ANAPHORA_TIMEZONE", "America/Los_Angeles")
    assert "(2026-11-24)" in render_recall(hits)


def test_turns_keep_the_offset_at_which_they_were_said(
    open_memory: Callable[..., Memory], tmp_path: Path
) -> None:
    """That of the user's clock, one that was given, one of an import, in all that is recalled."""
    memory = open_memory(EVENING)
    memory.conversations.append("now", "user", "The kettle whistles.")
    tokyo = datetime(2026, 11, 20, 9, tzinfo=ZoneInfo("Asia/Tokyo"))
    memory.conversations.append("then", "user", "The heron waits.", ts=tokyo)
    line = {"role": "user", "text": "The larch is bare.", "ts": "2026-11-19T20:00:00+05:30"}
    (tmp_path / "chat.jsonl").write_text(json.dumps({"conversation_id": "import", **line}))
    memory.import_(tmp_path / "chat.jsonl")
    for words, text in (
        ("kettle", "2026-11-24T17:30:00-08:00"),
        ("heron", "2026-11-20T09:00:00+09:00"),
        ("larch", "2026-11-19T20:00:00+05:30"),
    ):
        hit = memory.recall_conversation(None, words).hits[0]
        assert hit.ts.isoformat() == text
        thread = memory.conversations.get(hit.conversation_id)
        assert thread is not None
        assert (thread.turns[0].ts_text, thread.turns[0].ts.isoformat()) == (text, text)
        (found,) = [one for one in memory.search(words).hits if words in one.text]
        assert found.ts is not None
        assert found.ts.isoformat() == text
