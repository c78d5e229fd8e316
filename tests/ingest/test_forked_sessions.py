"""What a session repeats of the one that it was forked from was said once, at its own time."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from .conftest import Home

Said = list[tuple[str, str]]
Tell = Callable[[str, str, str], list[str]]


def _timed_id(moment: str, number: int) -> str:
    digits = f"{int(datetime.fromisoformat(moment).timestamp() * 1000):012x}"
    return f"{digits[:8]}-{digits[8:]}-7000-8000-{number:012x}"


PARENT = _timed_id("2026-11-02T09:00:00+00:00", 1)
FORK = _timed_id("2026-11-20T15:00:00+00:00", 2)
GRANDCHILD = _timed_id("2026-11-22T15:00:00+00:00", 3)
OTHER = _timed_id("2026-11-23T15:00:00+00:00", 4)
BEFORE: Said = [
    ("user", "The staging port is 5433."),
    ("assistant", "Noted, staging listens on 5433."),
]
AFTER: Said = [
    ("user", "And the backups go to heron."),
    ("assistant", "Noted, the backups go to heron."),
]
OF_FORK: Said = [
    ("user", "List the colours of the logo."),
    ("assistant", "The logo is teal and cream."),
]
OF_GRANDCHILD: Said = [("user", "Who paints the wall?"), ("assistant", "Petra does, on Friday.")]
OF_OTHER: Said = [("user", "List the colours of the logo."), ("assistant", "Blue.")]


def record(ts: str, kind: str, payload: dict[str, Any]) -> str:
    return json.dumps({"timestamp": ts, "type": kind, "payload": payload})


def head(ts: str, session: str, **more: Any) -> str:
    payload = {"id": session, "timestamp": ts, "cwd": "/w/shop", "source": "cli", **more}
    return record(ts, "session_meta", payload)


def tell_item(ts: str, role: str, text: str) -> list[str]:
    kind = "input_text" if role == "user" else "output_text"
    content = [{"type": kind, "text": text}]
    return [record(ts, "response_item", {"type": "message", "role": role, "content": content})]


def tell_event(ts: str, role: str, text: str) -> list[str]:
    kind = "user_message" if role == "user" else "agent_message"
    return [record(ts, "event_msg", {"type": kind, "message": text})]


def tell_completed(ts: str, role: str, text: str) -> list[str]:
    kind = "UserMessage" if role == "user" else "AgentMessage"
    item = {"type": kind, "content": [{"type": "text", "text": text}]}
    return [record(ts, "event_msg", {"type": "item_completed", "item": item})]


def tell_both(ts: str, role: str, text: str) -> list[str]:
    return [*tell_event(ts, role, text), *tell_item(ts, role, text)]


def at_once(ts: str, said: Said, tell: Tell) -> list[str]:
    """Copied, all in the second that `ts` begins."""
    return [
        line
        for number, (role, text) in enumerate(said)
        for line in tell(f"{ts}.{20 + number:03}Z", role, text)
    ]


def by_and_by(day: str, said: Said, tell: Tell) -> list[str]:
    return [
        line
        for number, (role, text) in enumerate(said, 1)
        for line in tell(f"{day}:{number:02}:00Z", role, text)
    ]


def write(folder: Path, session: str, lines: Iterable[str]) -> Path:
    path = folder / f"rollout-2026-11-01T00-00-00-{session}.jsonl"
    path.write_text("".join(f"{line}\n" for line in lines))
    return path


def write_family(folder: Path, tell: Tell, heads: bool) -> dict[str, Path]:
    """A parent, a fork of it, a fork of the fork, and another fork of the parent."""

    def copied(day: str, *sessions: str) -> list[str]:
        return [head(f"{day}:00:00.010Z", session) for session in sessions] if heads else []

    return {
        "parent": write(
            folder,
            PARENT,
            [
                head("2026-11-02T09:00:00Z", PARENT),
                *by_and_by("2026-11-02T09", BEFORE + AFTER, tell),
            ],
        ),
        "fork": write(
            folder,
            FORK,
            [
                head("2026-11-20T15:00:00Z", FORK, forked_from_id=PARENT),
                *copied("2026-11-20T15", PARENT),
                *at_once("2026-11-20T15:00:00", BEFORE, tell),
                *by_and_by("2026-11-20T15", OF_FORK, tell),
            ],
        ),
        "grandchild": write(
            folder,
            GRANDCHILD,
            [
                head("2026-11-22T15:00:00Z", GRANDCHILD, forked_from_id=FORK),
                *copied("2026-11-22T15", FORK, PARENT),
                *at_once("2026-11-22T15:00:00", BEFORE + OF_FORK, tell),
                *by_and_by("2026-11-22T15", OF_GRANDCHILD, tell),
            ],
        ),
        "other": write(
            folder,
            OTHER,
            [
                head("2026-11-23T15:00:00Z", OTHER, forked_from_id=PARENT),
                *copied("2026-11-23T15", PARENT),
                *at_once("2026-11-23T15:00:00", BEFORE + AFTER, tell),
                *by_and_by("2026-11-23T15", OF_OTHER, tell),
            ],
        ),
    }


OWN = {
    "parent": BEFORE + AFTER,
    "fork": BEFORE + OF_FORK,
    "grandchild": BEFORE + OF_FORK + OF_GRANDCHILD,
    "other": BEFORE + AFTER + OF_OTHER,
}
ORDERS = (
    "parent fork",
    "fork parent",
    "fork",
    "fork grandchild parent",
    "parent fork grandchild other",
    "other fork parent",
    "fork other",
    "grandchild fork parent",
    "grandchild fork other parent",
    "grandchild parent fork",
    "grandchild parent",
    "grandchild other fork parent",
    "parent grandchild other fork",
    "other grandchild fork parent",
)


def turns_of(home: Home) -> list[tuple[str, datetime]]:
    return [
        (turn.text, turn.ts)
        for summary in home.store.list()
        if (thread := home.store.get(summary.conversation_id)) is not None
        for turn in thread.turns
    ]


@pytest.mark.parametrize("heads", [True, False], ids=["with heads", "ids alone"])
@pytest.mark.parametrize("tell", [tell_both, tell_item, tell_event, tell_completed])
@pytest.mark.parametrize("order", ORDERS)
def test_a_fork_of_codex_repeats_nothing(
    home: Home, tmp_path: Path, order: str, tell: Tell, heads: bool
) -> None:
    """In any order of files, one import each; what came in first with a fork gets its own time."""
    family, names = write_family(tmp_path, tell, heads), order.split()
    for name in names:
        home.take(family[name])
    once = Counter(text for name in names for _, text in set(OWN[name]))
    # The other fork was told the same as the first, by the user.
    expected = Counter(dict.fromkeys(once, 1))
    if {"fork", "other"} <= {*names}:
        expected[OF_OTHER[0][1]] = 2
    turns = turns_of(home)
    assert Counter(text for text, _ in turns) == expected
    times = {text: ts for text, ts in turns if (("user", text) in BEFORE)}
    own = datetime(2026, 11, 2, 9, "parent" in names, tzinfo=UTC)
    assert times == {BEFORE[0][1]: own}
    assert all(home.take(family[name]).added == 0 for name in names)


def test_a_fork_in_the_order_of_a_folder(home: Home, tmp_path: Path) -> None:
    """One import, an archived fork before its parent."""
    (tmp_path / "c" / "archived_sessions").mkdir(parents=True)
    (tmp_path / "c" / "sessions").mkdir()
    family = write_family(tmp_path, tell_both, heads=True)
    family["fork"].rename(tmp_path / "c" / "archived_sessions" / family["fork"].name)
    family["parent"].rename(tmp_path / "c" / "sessions" / family["parent"].name)
    report = home.take(tmp_path / "c")
    assert (report.conversations, report.added, report.known) == (1, 6, 2)
    assert [ts.day for _, ts in turns_of(home)].count(20) == 2


def test_what_was_forgotten_does_not_come_back_with_a_fork(home: Home, tmp_path: Path) -> None:
    family = write_family(tmp_path, tell_both, heads=True)
    home.take(family["parent"])
    (parent,) = [summary.conversation_id for summary in home.store.list()]
    home.store.redact(parent, 0)
    home.take(family["fork"])
    assert BEFORE[0][1] not in [text for text, _ in turns_of(home)]
    home.store.delete(parent)
    home.take(family["other"])
    assert BEFORE[1][1] not in [text for text, _ in turns_of(home)]
    assert OF_OTHER[1][1] in [text for text, _ in turns_of(home)]


TURN = _timed_id("2026-11-05T10:00:00+00:00", 9)
TIMED: tuple[tuple[str, list[str], datetime], ...] = (
    ("its turn", [record("2026-11-20T15:00:00.015Z", "turn_context", {
        "turn_id": TURN})], datetime(2026, 11, 5, 10, tzinfo=UTC)),
    ("its turn's start", [record("2026-11-20T15:00:00.015Z", "event_msg", {
        "type": "task_started", "turn_id": "7", "started_at": 1793959200})],
        datetime.fromtimestamp(1793959200, UTC)),
    ("its parent", [], datetime(2026, 11, 2, 9, tzinfo=UTC)),
)  # fmt: skip


@pytest.mark.parametrize(("lines", "moment"), [one[1:] for one in TIMED], ids=[o[0] for o in TIMED])
def test_a_fork_without_its_parent_has_the_best_time_that_it_tells(
    home: Home, tmp_path: Path, lines: list[str], moment: datetime
) -> None:
    first = head("2026-11-20T15:00:00Z", FORK, forked_from_id=PARENT)
    copied = at_once("2026-11-20T15:00:00", BEFORE, tell_both)
    said = by_and_by("2026-11-20T15", OF_FORK, tell_both)
    home.take(write(tmp_path, FORK, [first, *lines, *copied, *said]))
    assert [ts for _, ts in turns_of(home)] == [
        moment,
        moment,
        datetime(2026, 11, 20, 15, 1, tzinfo=UTC),
        datetime(2026, 11, 20, 15, 2, tzinfo=UTC),
    ]


def test_what_is_said_at_once_after_a_fork_is_of_the_fork(home: Home, tmp_path: Path) -> None:
    """A turn that began after the fork ends what is repeated, without any pause."""
    own_turn = {"type": "task_started", "turn_id": _timed_id("2026-11-20T15:00:00.300+00:00", 9)}
    lines = [
        head("2026-11-20T15:00:00Z", FORK, forked_from_id=PARENT),
        *at_once("2026-11-20T15:00:00", BEFORE, tell_both),
        record("2026-11-20T15:00:00.310Z", "event_msg", own_turn),
        *tell_both("2026-11-20T15:00:00.320Z", "user", OF_FORK[0][1]),
    ]
    home.take(write(tmp_path, FORK, lines))
    assert [ts.day for _, ts in turns_of(home)] == [2, 2, 20]


@pytest.mark.parametrize(
    "more",
    [
        {"source": {"subagent": {"thread_spawn": {"parent_thread_id": PARENT, "depth": 1}}}},
        {"source": {"subagent": "review"}},
        {"source": {"subagent": {"other": "guardian"}}},
        {"source": {"internal": "memory_consolidation"}},
        {"thread_source": "subagent", "forked_from_id": PARENT},
    ],
)
def test_an_agent_that_codex_started_is_no_talk(
    home: Home, tmp_path: Path, more: dict[str, Any]
) -> None:
    lines = [
        head("2026-11-20T15:00:00Z", FORK, **more),
        *at_once("2026-11-20T15:00:00", BEFORE, tell_both),
        *by_and_by("2026-11-20T15", OF_FORK, tell_both),
    ]
    report = home.take(write(tmp_path, FORK, lines))
    assert (report.added, dict(report.left_out)) == (0, {"sidechain": 4})


def test_a_resumed_session_adds_what_is_new(home: Home, tmp_path: Path) -> None:
    """The same id, the file written anew at the moment of going on."""
    home.take(
        write(tmp_path, PARENT, [
            head("2026-11-02T09:00:00Z", PARENT), *by_and_by("2026-11-02T09", BEFORE, tell_both),
        ])
    )  # fmt: skip
    again = [
        head("2026-11-20T15:00:00Z", PARENT),
        *at_once("2026-11-20T15:00:00", BEFORE, tell_both),
        *by_and_by("2026-11-20T15", AFTER, tell_both),
    ]
    report = home.take(write(tmp_path, PARENT, again))
    assert (report.added, report.known) == (2, 2)
    assert [ts.day for _, ts in turns_of(home)] == [2, 2, 20, 20]


@pytest.mark.parametrize("order", ["parent fork", "fork parent"])
def test_a_fork_of_claude_code_with_new_ids_repeats_nothing(
    home: Home, tmp_path: Path, order: str
) -> None:
    def line(session: str, number: int, role: str, text: str, **more: Any) -> str:
        parent = f"{session}-{number - 1}" if number else None
        return json.dumps({
            "type": role, "uuid": f"{session}-{number}", "parentUuid": parent, "cwd": "/w",
            "sessionId": session, "timestamp": f"2026-11-02T09:{number:02}:00Z",
            "message": {"role": role, "content": text}, **more,
        })  # fmt: skip

    origin = [{"sessionId": "aa", "messageUuid": f"aa-{number}"} for number in range(2)]
    files = {
        "parent": [line("aa", n, *said) for n, said in enumerate(BEFORE + AFTER)],
        "fork": [
            *(line("bb", n, *said, forkedFrom=origin[n]) for n, said in enumerate(BEFORE)),
            *(line("bb", n, *said) for n, said in enumerate(OF_FORK, 2)),
        ],
    }
    for name in (*order.split(), *order.split()):
        path = tmp_path / f"{name}.jsonl"
        path.write_text("\n".join(files[name]) + "\n")
        home.take(path)
    texts = sorted(text for text, _ in turns_of(home))
    assert texts == sorted(text for _, text in BEFORE + AFTER + OF_FORK)


@pytest.mark.parametrize("order", ["first second", "second first"])
def test_a_session_of_gemini_that_went_on_under_another_id_repeats_nothing(
    home: Home, tmp_path: Path, order: str
) -> None:
    """Its messages' ids are those of the first; short ones say nothing, and are of each session."""

    def session(key: str, said: Said, of: str) -> str:
        head = {"sessionId": key, "projectHash": "h", "startTime": "2026-11-02T09:00:00Z"}
        messages = [
            {"id": f"{number:08}{of}", "type": {"user": "user"}.get(role, "gemini"),
             "content": text, "timestamp": f"2026-11-02T09:{number:02}:00Z"}
            for number, (role, text) in enumerate(said)
        ]  # fmt: skip
        return json.dumps({**head, "messages": messages})

    for of, count in (("-1111-4111-8111-111111111111", 4), ("", 6)):
        files = {"first": BEFORE, "second": BEFORE + OF_FORK}
        before = len(turns_of(home))
        for name in order.split():
            path = tmp_path / f"session-{name}.json"
            path.write_text(session(f"{name}{of}", files[name], of))
            home.take(path)
        assert len(turns_of(home)) - before == count
