"""The target of questions about times: every call and surface that reads one.

In: a private folder. Out: a room. An input is one call: a home, a clock in a zone, a way to ask,
a question, options. It is answered, or refused with an error of ours for a bad argument; a question
for a time alone gets turns of that time, or a notice.
"""

from __future__ import annotations

import asyncio
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from pathlib import Path
from random import Random
from typing import Any, Final
from unittest.mock import patch
from zoneinfo import ZoneInfo

import mcp_types as types
from typer.testing import CliRunner

from anaphora import Memory, NewTurn, Recall, TurnHit
from anaphora.calls.caller import CallOrigin
from anaphora.errors import AnaphoraError, InvalidInput, NotFound
from anaphora.features.deep.evidence.scope import parse_moment
from anaphora.language.languages.language import language_of
from anaphora.language.times.told import told_days
from anaphora.recall.question import Question
from anaphora.surfaces.cli.app import app as cli_app
from anaphora.surfaces.mcp_server.server import ToolServer
from anaphora.surfaces.mcp_server.session import ServerSession
from anaphora.surfaces.mcp_server.tools import all_tools
from anaphora.testing import server_app
from anaphora.text.shown_times import in_speakers_zone

from .mutating import Mutator
from .questions import moment_text, question
from .rooms import Room, as_json, expect
from .servers import Agent, asked, request_bytes, well_answered

__all__ = ["times"]

_NOW: Final = datetime(2026, 11, 25, 12, tzinfo=UTC)
_ZONES: Final = (
    *("UTC", "Europe/Berlin", "Europe/Dublin", "America/Los_Angeles", "America/Sao_Paulo"),
    *("Australia/Lord_Howe", "Asia/Kathmandu", "Pacific/Apia", "Pacific/Kiritimati"),
    *("Africa/Casablanca", "America/St_Johns", "Asia/Tehran", "Africa/Monrovia"),
)
# Minutes and microseconds east of Greenwich.
_OFFSETS: Final = ((14 * 60, 0), (-12 * 60, 0), (345, 0), (1439, 59_999_999), (-1439, 0), (0, 1))
_NOWS: Final = (
    *("2026-11-25T12:00:00", "2026-11-25T00:00:00", "2026-11-25T23:59:59.999999"),
    *("2024-02-29T12:00:00", "2026-03-29T02:30:00", "2026-10-25T02:30:00", "2026-01-01T00:00:00"),
    *("2011-12-30T12:00:00", "1970-01-01T00:00:00", "1969-12-31T23:59:59", "2038-01-19T03:14:08"),
    *("0001-01-01T00:00:00", "0001-01-02T12:00:00", "0004-02-29T00:00:00", "2199-12-31T12:00:00"),
    *("2200-01-01T00:00:00", "9999-12-31T23:59:59.999999", "9999-12-30T12:00:00"),
)
_ANSWERED: Final = (InvalidInput, NotFound)
_CLI_SHARE: Final = 0.015

Ask = dict[str, Any]
"""One input: "home", "now", "zone", "way", "query", "options"."""


@dataclass(slots=True)
class _Clock:
    now: datetime = _NOW

    def __call__(self) -> datetime:
        return self.now


class _Caller:
    """A client of the tool server that may do everything and has no folders open."""

    def may(self, right: str) -> bool:
        return True

    def origin(self) -> CallOrigin:
        return CallOrigin("mcp")

    def can_name_folders(self) -> bool:
        return False

    async def folders(self) -> list[str]:
        return []

    async def tell(self, step: int, message: str) -> None:
        raise AssertionError("no call of these has steps")


def _turn_days() -> dict[str, tuple[tuple[datetime, str, str | None], ...]]:
    """The turns of each home: when, what, by whom."""
    return {
        "empty": (),
        "turn": ((_NOW - timedelta(days=1), "The plumber comes with the new boiler.", None),),
        "mixed": (
            (_NOW - timedelta(hours=2), "The dentist is tomorrow at nine.", "Mara"),
            (_NOW - timedelta(days=8), "On 2026-12-24 we close at noon.", "Mara"),
            (_NOW - timedelta(days=40), "We moved the queue to PostgreSQL.", "Ben"),
            (datetime(2024, 2, 29, 12, tzinfo=UTC), "A leap day, and the roof is mended.", "Ida"),
            (_NOW + timedelta(days=1), "This turn is from tomorrow.", None),
        ),
        "old": (
            (datetime(1970, 1, 1, tzinfo=UTC), "The epoch begins.", "Mara"),
            (datetime(1969, 12, 31, tzinfo=UTC), "The last day before the epoch.", None),
            (datetime(1, 1, 2, tzinfo=UTC), "The second day of all.", "Ben"),
        ),
        "far": (
            (datetime(2200, 1, 1, tzinfo=UTC), "The next century but one.", "Mara"),
            (datetime(2300, 6, 1, tzinfo=UTC), "The one after it.", None),
            (datetime(9999, 12, 30, tzinfo=UTC), "The last day but one.", "Ben"),
        ),
    }


def _fill(memory: Memory, turns: Sequence[tuple[datetime, str, str | None]]) -> None:
    for number, (ts, text, speaker) in enumerate(turns):
        turn = NewTurn("user", text, ts=ts, speaker=speaker)
        memory.conversations.extend(f"c{number % 2}", [turn])
    if len(turns) > 1:
        memory.remember("My rent is 950 euros.", created_at=turns[-1][0])
        memory.remember(
            "My rent is 1,020 euros since 2026-10-01.", path="home.rent", tags=("home",)
        )
        memory.remember("The lease ends.", type="episodic", created_at=turns[0][0])


@dataclass(slots=True)
class _Place:
    """One home with everything that answers from it."""

    home: Path
    memory: Memory
    clock: _Clock
    tools: ToolServer
    rest: Any
    secret: str


@contextmanager
def times(folder: Path, shared: Path | None) -> Iterator[Room]:
    """Homes without anything, with a turn, with dates, before 1971 and after 2199."""
    with ExitStack() as stack:
        stack.enter_context(patch.dict(os.environ, ANAPHORA_EMBEDDER="hashing"))
        stack.enter_context(patch.dict(os.environ, ANAPHORA_RESIDENT="0"))
        places = {
            name: _opened(stack, folder / name, turns) for name, turns in _turn_days().items()
        }
        runner = stack.enter_context(asyncio.Runner())
        asker = _Asker(places, runner, stack, folder / "stdio")
        yield Room(_CALLS, asker.check, _made)
        expect(asker.calls > 0, "nothing was asked")


def _opened(stack: ExitStack, home: Path, turns: Sequence[Any]) -> _Place:
    clock = _Clock()
    memory = stack.enter_context(Memory.open(home, embedder="hashing", clock=clock))
    _fill(memory, turns)
    secret = memory.tokens.create("all", namespaces=("*",)).secret
    session = ServerSession(lambda: memory, clock=clock)
    tools = ToolServer(session, tuple(all_tools()), started=None, roots=False)
    return _Place(home, memory, clock, tools, server_app(memory, page=None), secret)


class _Asker:
    """Makes the call that an input names."""

    def __init__(
        self, places: Mapping[str, _Place], runner: asyncio.Runner, stack: ExitStack, stdio: Path
    ) -> None:
        self._places, self._runner, self._stack, self._stdio = places, runner, stack, stdio
        self._agent: Agent | None = None
        self.calls = 0

    def check(self, data: bytes) -> None:
        """Ask; whatever is raised but an error for a bad argument fails."""
        ask = _read(data)
        if ask is None:
            return
        self.calls += 1
        place = self._places[ask["home"]]
        with _local_zone(ask["zone"]):
            place.clock.now = _clock_time(ask["now"], ask["zone"])
            try:
                _WAYS[ask["way"]](self, place, ask["query"], ask["options"])
            except AnaphoraError as error:
                expect(isinstance(error, _ANSWERED), repr(error))

    def recall(self, place: _Place, query: str, options: Ask) -> None:
        """Lasting memories."""
        given = _taken(options, "top_k", "mode", "min_confidence")
        well_formed(place.memory.recall(query, as_of=_moment(options.get("since")), **given))

    def conversation(self, place: _Place, query: str, options: Ask) -> None:
        """Turns, of all conversations or of one."""
        given = _taken(options, "top_k", "mode", "min_confidence", "speaker", "role")
        found = place.memory.recall_conversation(
            options.get("conversation_id"), query, **given, **_limits(options)
        )
        well_formed(found)
        if not given.keys() & {"min_confidence", "mode", "speaker", "role"} and not options:
            _of_its_time(found, query, place)

    def search(self, place: _Place, query: str, options: Ask) -> None:
        """Everything."""
        given = _taken(options, "top_k", "min_confidence", "speaker", "kinds", "tags", "project")
        well_formed(place.memory.search(query, **given, **_limits(options)))

    def context(self, place: _Place, query: str, options: Ask) -> None:
        """A package for a task, and what a session begins with."""
        if options.get("top_k"):
            place.memory.warm_up(query, project=options.get("project"))
        else:
            place.memory.recall_context(query, project=options.get("project"))

    def scope(self, place: _Place, query: str, options: Ask) -> None:
        """The bounds of a deep question."""
        end = bool(options.get("top_k"))
        at = parse_moment("since", options.get("since", query), place.clock(), end=end)
        expect(at is None or at.astimezone(UTC).year > 0, at)

    def tool(self, place: _Place, query: str, options: Ask) -> None:
        """A tool of the MCP server, with arguments as a client sends them."""
        name, arguments = _tool_call(query, options)
        params = types.CallToolRequestParams(name=name, arguments=arguments)
        result = self._runner.run(place.tools.call_tool(_Caller(), params))
        (content,) = result.content
        expect(isinstance(content, types.TextContent) and bool(content.text), result)
        expect(bool(result.is_error) != (result.structured_content is not None), result)

    def stdio(self, place: _Place, query: str, options: Ask) -> None:
        """The same over the standard input of a server that is a process."""
        if self._agent is None:
            self._agent = self._started()
        name, arguments = _tool_call(query, options)
        call = json.dumps({"name": name, "arguments": arguments}, ensure_ascii=False)
        # No UTF-8 has a lone surrogate: a line with one is no message, and is answered without id.
        params = json.loads(call.encode("utf-8", "replace"))
        told = self._agent.ask(f"call {self.calls}", "tools/call", params)
        expect(bool(told["result"]["content"][0]["text"]), told)

    def _started(self) -> Agent:
        with Memory.open(self._stdio / "home", embedder="hashing") as memory:
            _fill(memory, _turn_days()["mixed"])
        agent = Agent(self._stdio)
        self._stack.callback(agent.close)
        client = {"protocolVersion": "2025-06-18", "capabilities": {}}
        agent.ask("begin", "initialize", {**client, "clientInfo": {"name": "f", "version": "1"}})
        agent.say(b'{"jsonrpc":"2.0","method":"notifications/initialized"}')
        return agent

    def http(self, place: _Place, query: str, options: Ask) -> None:
        """A request to the HTTP API."""
        line, body = _request(query, options)
        data = request_bytes(line, body)
        status, headers, answer = self._runner.run(asked(place.rest, data, place.secret))
        well_answered(data, status, headers, answer)

    def command(self, place: _Place, query: str, options: Ask) -> None:
        """The command line."""
        words = ["recall", "conversation recall", "memory recall"][options.get("top_k", 0) % 3]
        given = [] if words == "memory recall" else _switches(options)
        line = ["--home", str(place.home), *words.split(), *given, "--", query]
        done = CliRunner().invoke(cli_app, line)
        if isinstance(done.exception, AnaphoraError):
            raise done.exception
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        expect(done.exit_code in {0, 2}, done.output)
        expect("Traceback" not in done.output, done.output)


_Way = Callable[[_Asker, _Place, str, Ask], None]
_WAYS: Final[Mapping[str, _Way]] = {
    "recall": _Asker.recall,
    "recall_conversation": _Asker.conversation,
    "search": _Asker.search,
    "context": _Asker.context,
    "scope": _Asker.scope,
    "mcp": _Asker.tool,
    "stdio": _Asker.stdio,
    "rest": _Asker.http,
    "cli": _Asker.command,
}
_OFTEN: Final = (
    "recall_conversation",
    "search",
    "mcp",
    "rest",
    "recall",
    "scope",
    "context",
    "stdio",
)
_SHARES: Final = (25, 25, 20, 18, 5, 4, 2, 1)


def well_formed(found: Recall[Any]) -> None:
    """An answer whose parts are what they are said to be."""
    expect(all(one.strip() == one != "" for one in found.notices), found)
    expect(not (found.hits and found.nearest), found)


def _of_its_time(found: Recall[TurnHit], query: str, place: _Place) -> None:
    """A question for a time alone: turns of that time or that name a day of it, or a notice."""
    asked = Question.read(query, place.clock())
    spans = asked.times
    if len(query) > 200 or not asked.asks_time_alone:
        return
    for hit in found:
        named = Question.read(hit.text, place.clock()).times
        moments = (hit.ts, *(time.start for time in named))
        of_its_time = any(one.start <= at < one.end for one in spans for at in moments)
        meant = told_days(hit.text, in_speakers_zone(hit.ts), language_of(hit.text))
        of_its_day = any(
            start < one.end.replace(tzinfo=None) and one.start.replace(tzinfo=None) < end
            for one in spans
            for start, end in meant
        )
        expect(of_its_time or of_its_day, (query, hit, spans))
    expect(bool(found.hits or found.notices) or place.home.name == "empty", (query, found))


def _taken(options: Ask, *names: str) -> dict[str, Any]:
    return {name: options[name] for name in names if name in options}


def _limits(options: Ask) -> dict[str, Any]:
    return {name: _moment(options.get(name)) for name in ("since", "until")}


def _moment(text: object) -> datetime | None:
    """A text as Python's callers give it: a datetime, or nothing where it is none."""
    try:
        at = datetime.fromisoformat(str(text))
    except ValueError:
        return None
    return at if at.tzinfo else at.replace(tzinfo=timezone(timedelta(hours=14)))


def _tool_call(query: str, options: Ask) -> tuple[str, Ask]:
    names = ("recall", "recall", "recall_conversation", "recall_memory", "warm_up")
    name = names[options.get("top_k", 0) % len(names)]
    if name == "warm_up":
        return name, {"topic": query}
    given = {"question": query, **_taken(options, "speaker", "since", "until", "kinds")}
    if name == "recall_memory":
        given = {"question": query}
    if name == "recall_conversation":
        given |= _taken(options, "role")
        given.pop("kinds", None)
    return name, given | {"topK": max(1, options.get("top_k", 3))}


def _request(query: str, options: Ask) -> tuple[str, Ask]:
    lines = ("/v1/search", "/v1/search", "/v1/conversations/recall", "/v1/recall", "/v1/context")
    line = lines[options.get("top_k", 0) % len(lines)]
    if line == "/v1/context":
        return f"POST {line}", {"focus": [query], "budget": 500}
    if line == "/v1/recall":
        return f"POST {line}", {"query": query} | _taken(options, "top_k", "mode")
    names = ["speaker", "since", "until", "top_k", "min_confidence"]
    names += ["kinds", "tags"] if line == "/v1/search" else ["role", "mode"]
    return f"POST {line}", {"query": query} | _taken(options, *names)


def _switches(options: Ask) -> list[str]:
    names = ("since", "until", "speaker")
    return [f"--{name}={options[name]}" for name in names if name in options]


def _clock_time(text: str, zone: str) -> datetime:
    return datetime.fromisoformat(text).replace(tzinfo=_zone(zone))


def _zone(name: str) -> tzinfo:
    if name in _ZONES:
        return ZoneInfo(name)
    minutes, rest = _OFFSETS[int(name)]
    return timezone(timedelta(minutes=minutes, microseconds=rest))


@contextmanager
def _local_zone(name: str) -> Iterator[None]:
    """The zone of the machine, which free words for `since` are read in."""
    try:
        with patch.dict(os.environ, TZ=name if name in _ZONES else "UTC"):
            time.tzset()
            yield
    finally:
        time.tzset()


def _read(data: bytes) -> Ask | None:
    """The call that an input is; None where damage has made it none."""
    try:
        ask = json.loads(data)
        kinds = {"home": str, "now": str, "zone": str, "way": str, "query": str, "options": dict}
        whole = all(isinstance(ask[name], kind) for name, kind in kinds.items())
        known = ask["way"] in _WAYS and ask["home"] in _turn_days()
        _clock_time(ask["now"], ask["zone"])
    except (ValueError, LookupError, TypeError, RecursionError):
        return None
    return ask if whole and known else None


def _made(mutator: Mutator, corpus: Sequence[bytes]) -> bytes:
    """A call with a question made anew."""
    random = mutator.random
    way = random.choices(_OFTEN, _SHARES)[0] if random.random() >= _CLI_SHARE else "cli"
    plain = random.random() < 0.5
    zones = (*_ZONES, *map(str, range(len(_OFFSETS))))
    return json.dumps({
        "home": random.choice(tuple(_turn_days())),
        "now": _NOWS[0] if plain else random.choice(_NOWS),
        "zone": "UTC" if plain and random.random() < 0.5 else random.choice(zones),
        "way": way,
        "query": question(random),
        "options": {} if random.random() < 0.5 else _options(random),
    }).encode()  # fmt: skip


def _options(random: Random) -> Ask:
    values: Mapping[str, Callable[[], Any]] = {
        "since": lambda: moment_text(random),
        "until": lambda: moment_text(random),
        "speaker": lambda: random.choice(("Mara", "mara", "Nobody", " ", "Ben", "May")),
        "role": lambda: random.choice(("user", "assistant", "other", "king")),
        "mode": lambda: random.choice(("hybrid", "words", "vector")),
        "top_k": lambda: random.choice((0, 1, 2, 3, 4, 5, 6, 50)),
        "min_confidence": lambda: random.choice((0, 0.0, 0.5, 1, 2)),
        "conversation_id": lambda: random.choice(("c0", "c1", "nobody", "")),
        "kinds": lambda: random.sample(("memory", "note", "turn", "document", "tool_call"), 2),
        "tags": lambda: random.choice((["home"], ["x"], [])),
        "project": lambda: random.choice(("p", "", "tomorrow")),
    }
    chosen = random.sample(sorted(values), random.choice((1, 1, 2, 3, 5)))
    return {name: values[name]() for name in chosen}


def _call(way: str, query: str, home: str = "turn", **options: Any) -> Ask:
    return {
        "home": home,
        "now": _NOWS[0],
        "zone": "UTC",
        "way": way,
        "query": query,
        "options": options,
    }


_CALLS: Final = as_json(*(_call(way, "what happens tomorrow?") for way in _WAYS))
