"""docs/scale.md: sizes of servers, what follows for many users, and what bends the curves."""

from __future__ import annotations

from tools.claims.model import Claim, Value
from tools.claims.sources import at, constant, default, derived, figure

__all__ = ["SCALE"]

_SERVERS = "several_servers"
_USERS = 1e7
_MEMORIES, _TURNS = 300, 3_000
_BUSIEST = 1_160
_CORES = 2

_MEMORY = figure(_SERVERS, "PostgreSQL, indexes of tables included: each memory")
_VECTOR = figure(_SERVERS, "of these its vectors")
_TURN = figure(_SERVERS, "PostgreSQL, indexes of tables included: each turn")
_INDEX_TURN = figure(_SERVERS, "a server's index: each turn")
_INDEX_MEMORY = figure(_SERVERS, "a server's index: each memory")
_RECALLS = figure("rest_load", "16 connections, 2 processes: requests a second", ".0f")
_TEXTS = derived(
    ".0f",
    lambda many, share: many / share,
    figure("remembering", "remember_many"),
    figure("remembering", "remember_many, share of raw embedding speed"),
)


def _terabytes(each: Value, count: float, form: str = ".1f") -> Value:
    return derived(form, lambda size: size * count * _USERS / 1e12, each)


_EACH_USER = derived(
    ".1f",
    lambda turn, memory: (_TURNS * turn + _MEMORIES * memory) / 1e6,
    _INDEX_TURN,
    _INDEX_MEMORY,
)


def _claim(name: str, words: str, **values: Value) -> Claim:
    return Claim(f"scale.{name}", (words,), values, page="docs/scale.md")


SCALE: tuple[Claim, ...] = (
    _claim(
        "memory",
        "({dimensions} × float16) and indexes included | {memory} bytes, {vector} of them the"
        " vector |",
        dimensions=at("embedders", "embedders", "minilm", "dimensions", form=".0f"),
        memory=_MEMORY,
        vector=_VECTOR,
    ),
    _claim("turn", "a turn in PostgreSQL | {turn} bytes |", turn=_TURN),
    _claim("index_turn", "a turn in a server's index | {turn} bytes |", turn=_INDEX_TURN),
    _claim("index_memory", "a memory in a server's index | {memory} bytes |", memory=_INDEX_MEMORY),
    _claim(
        "resident",
        "a process with 100,000 memories open | {size} MB |",
        size=figure("memory_speed_100000", "resident memory", ".0f"),
    ),
    _claim(
        "recalls",
        "recalls a second, over HTTP, at 10,000 memories | {rate} by two processes on two cores"
        " that also ran the client |",
        rate=_RECALLS,
    ),
    _claim("texts", "texts embedded a second, two cores | {rate} |", rate=_TEXTS),
    _claim(
        "question",
        "the embedding of a question | {time} ms of one core |",
        time=figure("rest_load", "one embedding (ms, p50)", ".1f"),
    ),
    _claim(
        "database",
        "**Database**: {memories} TB of memories ({vectors} TB of it vectors) and {turns} TB of"
        " turns: {whole} TB, twice that with a replica",
        memories=_terabytes(_MEMORY, _MEMORIES),
        vectors=_terabytes(_VECTOR, _MEMORIES),
        turns=_terabytes(_TURN, _TURNS, ".0f"),
        whole=derived(
            ".0f",
            lambda *sizes: sum(sizes),
            _terabytes(_MEMORY, _MEMORIES),
            _terabytes(_TURN, _TURNS),
        ),
    ),
    _claim(
        "processors",
        "measured, {rate} recalls a second and core; at half load, {half}. Writes cost about as"
        " much (one embedding each), so the busiest hour needs {cores} cores.",
        rate=derived(".0f", lambda rate: rate / _CORES, _RECALLS),
        half=derived(".0f", lambda rate: rate / _CORES / 2, _RECALLS),
        cores=derived(".0f", lambda rate: _BUSIEST / (rate / _CORES / 2), _RECALLS),
    ),
    _claim(
        "index_disk",
        "**Index disk**: {each} MB for each user that a server has served. With sticky namespaces a"
        " million active users need {each} TB of disposable data",
        each=_EACH_USER,
    ),
    _claim(
        "arrival",
        "without an index costs {seconds} s of two cores",
        seconds=derived(".0f", lambda rate: _TURNS / rate, _TEXTS),
    ),
    _claim(
        "vectors",
        "{share} % of a memory's bytes",
        share=derived(".0f", lambda vector, memory: 100 * vector / memory, _VECTOR, _MEMORY),
    ),
    _claim(
        "sticky",
        "Three servers on one machine answered {sticky} requests a second so, and {robin} with"
        " round"
        " robin",
        sticky=figure(_SERVERS, "sticky by namespace, no kills: requests a second", ".0f"),
        robin=figure(_SERVERS, "round robin, no kills: requests a second", ".0f"),
    ),
    _claim(
        "open",
        "A process keeps {count} namespaces open",
        count=constant("container.home:OPEN_NAMESPACES"),
    ),
    _claim(
        "timeouts",
        "Each write transaction sets `lock_timeout` {lock} s and"
        " `idle_in_transaction_session_timeout` {idle} s for itself",
        lock=constant("store.db.faults:BUSY_SECONDS"),
        idle=constant("store.db.faults:IDLE_SECONDS"),
    ),
    _claim(
        "retried",
        "the write starts again, for up to {lock} s",
        lock=constant("store.db.faults:BUSY_SECONDS"),
    ),
    _claim(
        "request_timeout",
        "check again after its timeout ({seconds} s)",
        seconds=default("surfaces.rest.options:ServerOptions", "seconds"),
    ),
    _claim(
        "clocks",
        "With differences of up to {minutes} minutes, whatever is said last",
        minutes=constant(
            "store.records.rules:CLOCKS_APART",
            "word",
            take=lambda apart: apart.total_seconds() / 60,
        ),
    ),
    _claim(
        "curve",
        "so that none is left: {large} s at 100,000 after two, {largest} s at a million. A million"
        " is opened in {opened} s",
        large=at("curve", "sizes", "100000", "close_ms", form=".0f", times=0.001),
        largest=at("curve", "sizes", "1000000", "close_ms", form=".0f", times=0.001),
        opened=at("curve", "sizes", "1000000", "open_ms", form=".0f", times=0.001),
    ),
    _claim(
        "scanned",
        "a question reads one byte a number of every vector, {large} MB at 100,000 and {largest} MB"
        " at a million",
        large=at("embedders", "embedders", "minilm", "dimensions", form=".0f", times=0.1),
        largest=at("embedders", "embedders", "minilm", "dimensions", form=".0f", times=1),
    ),
)
