"""What is passed wrongly is refused in our words: tests made from the public signatures."""

from __future__ import annotations

import asyncio
import inspect
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import NoneType, UnionType
from typing import Any, Literal, Union, get_args, get_origin

import pytest

from anaphora import AsyncMemory, ConversationStore, Embedder, Memory, ModelRole, NewMemory, NewTurn
from anaphora.errors import AnaphoraError, InvalidInput, NotFound
from anaphora.store.db.engine import open_database
from anaphora.store.threads.conversations import Conversations
from anaphora.store.threads.sidecar import Sidecar
from anaphora.store.threads.sql_store import SqlConversationStore
from anaphora.store.tokens import Tokens

STORES = (ConversationStore, SqlConversationStore)
TYPES = {"Embedder": Embedder, "ModelRole": ModelRole, "Sidecar": Sidecar}
LONG = "x" * 5_000
VALUES: tuple[Any, ...] = (
    *(None, True, False, -1, 0, 3, 10**30, -(10**30), 10**5000, 2.5, math.nan, math.inf),
    *("x", "", " ", "\0", "\ud800", LONG, "~nobody-of-this-name/x", b"x", object()),
    *([], [1], ["x"], [None], {}, {1: 2}, {"x": 1}, (), {"x"}, range(3), datetime(2026, 1, 1)),  # noqa: DTZ001
    *(datetime(2026, 1, 1, tzinfo=UTC), Path("x"), NewTurn("user", "x"), 3 + 4j),
)


def is_nan(value: object) -> bool:
    return isinstance(value, float) and math.isnan(value)


def fits(said: Any, value: Any) -> bool:
    """Whether a value is of the type that an annotation says; text is no list of texts here."""
    origin, parts = get_origin(said), get_args(said)
    if said is Any or said in (ModelRole, Embedder):
        return said is Any or isinstance(value, str)
    if origin in (Union, UnionType):
        return any(fits(part, value) for part in parts)
    if said in (None, NoneType):
        return value is None
    if origin is Literal:
        return isinstance(value, str) and value in parts
    if origin in (Iterable, Sequence):
        plain = isinstance(value, str | bytes | Mapping) or not isinstance(value, Iterable)
        return not plain and all(fits(parts[0], one) for one in value)
    if said in (int, float):
        kinds = (int,) if said is int else (int, float)
        return isinstance(value, kinds) and not isinstance(value, bool) and not is_nan(value)
    if origin is Mapping:
        return isinstance(value, Mapping)
    if "Callable" in str(origin):
        return callable(value)
    return isinstance(value, origin or said)


def methods(kind: type) -> Iterator[str]:
    for name in dir(Conversations if kind in STORES else kind):
        if not name.startswith("_") and callable(getattr(kind, name, None)):
            yield name


def parameters(kind: type, name: str) -> dict[str, tuple[Any, bool]]:
    """The parameters of a method: what their annotation says, and whether they must be given."""
    function = inspect.unwrap(getattr(kind, name))
    function = getattr(function, "__func__", function)
    function = inspect.unwrap(function)
    values = f"{function.__globals__['__package__']}.values"
    # A feature's own types are loaded when its calls are made.
    own = vars(import_module(values)) if find_spec(values) else {}
    hints = {}
    for one, parameter in inspect.signature(function).parameters.items():
        if one not in ("self", "cls") and parameter.kind is not parameter.VAR_KEYWORD:
            said = eval(parameter.annotation, {**own, **function.__globals__, **TYPES})
            hints[one] = (said, parameter.default is parameter.empty)
    return hints


def good(name: str, said: Any) -> Any:
    """Something that a parameter takes."""
    if name == "event":
        return "recall"
    if "Callable" in str(get_origin(said)):
        return lambda *_: None
    usual = ("x", 3, ["x"], [NewTurn("user", "x")], NewTurn)
    return next(v for v in (*usual, *get_args(said)) if fits(said, v))


@pytest.fixture
def somewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The present folder is the test's own."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def made(kind: type, place: Path) -> Any:
    if kind in (Memory, Tokens):
        memory = Memory.open(place / "home", embedder="hashing", warm=False)
        return memory if kind is Memory else memory.tokens
    if kind is SqlConversationStore:
        return SqlConversationStore(open_database(place / "truth.db"), "default")
    return ConversationStore(place / "threads", strict=True)


CASES = [
    (kind, name)
    for kind in (Memory, *STORES, Tokens)
    for name in methods(kind)
    if parameters(kind, name)
]


@pytest.mark.promise("calls.wrong_types")
@pytest.mark.parametrize(
    ("kind", "name"), CASES, ids=lambda one: one if isinstance(one, str) else one.__name__
)
def test_a_wrong_type_is_invalid_input_that_names_it(
    kind: type, name: str, somewhere: Path
) -> None:
    """Whatever is passed for a parameter, what comes out is an answer or an error of ours."""
    owner = made(kind, somewhere)
    wanted = parameters(kind, name)
    call = getattr(owner, name)
    for one, (said, _) in wanted.items():
        given = {n: good(n, s) for n, (s, needed) in wanted.items() if needed}
        for value in VALUES:
            if fits(said, value):
                if (name, one) not in {("open", "encrypt"), ("close", "timeout")}:
                    # `read_file` stands for a file, and says so.
                    with suppress(AnaphoraError, FileNotFoundError):
                        done = call(**given | {one: value})
                        if name == "open":
                            done.close()
                continue
            with pytest.raises(InvalidInput) as refused:
                call(**given | {one: value})
            assert refused.value.what.replace(" ", "_").startswith(one), (one, value)
    if kind is Memory:
        owner.close()


@pytest.mark.promise("calls.wrong_types")
def test_the_asynchronous_facade_refuses_the_same(somewhere: Path) -> None:
    """`AsyncMemory` refuses each value that `Memory` refuses, with the same name."""

    async def awaited(call: Any, given: dict[str, Any]) -> None:
        done = call(**given)
        if inspect.isawaitable(done):
            await done

    async def asked(memory: AsyncMemory, name: str) -> None:
        wanted = parameters(AsyncMemory, name)
        given = {n: good(n, s) for n, (s, needed) in wanted.items() if needed}
        for one, (said, _) in wanted.items():
            for value in VALUES:
                if not fits(said, value):
                    with pytest.raises(InvalidInput) as refused:
                        await awaited(getattr(memory, name), given | {one: value})
                    assert refused.value.what.replace(" ", "_").startswith(one), (one, value)

    async def all_of_them() -> None:
        async with AsyncMemory.open(somewhere / "home", embedder="hashing", warm=False) as memory:
            for name in methods(AsyncMemory):
                await asked(memory, name)

    asyncio.run(all_of_them())


@pytest.mark.promise("calls.wrong_types")
@pytest.mark.parametrize(
    ("items", "place"),
    [
        ([1], "items[0]"),
        (["fine", None], "items[1]"),
        (["fine", {"text": "x", "colour": "red"}], "items[1].colour"),
        ([{"tags": ["x"]}], "items[0].text"),
        (["fine", {"text": "x", "tags": "one"}], "items[1].tags"),
        (["fine", "fine", " "], "items[2].text"),
        ([NewMemory("x"), NewMemory("x", turn_index=-1)], "items[1].turn_index"),
        ([{"text": "x", "redact": 1}], "items[0].redact"),
        ("one text", "items"),
        ({"text": "x"}, "items"),
    ],
)
def test_one_of_many_is_named_by_its_place(items: Any, place: str, somewhere: Path) -> None:
    """What cannot be remembered among many is named, and none of them is kept."""
    with Memory.open(somewhere / "home", embedder="hashing") as memory:
        with pytest.raises(InvalidInput) as refused:
            memory.remember_many(items)
        assert refused.value.what == place
        assert f"{place}: " in str(refused.value)
        assert len(memory.list()) == 0


@pytest.mark.promise("remember.many")
def test_many_are_texts_mappings_and_values(somewhere: Path) -> None:
    """A text, a mapping of fields and a `NewMemory` are remembered alike, from any iterable."""
    with Memory.open(somewhere / "home", embedder="hashing") as memory:
        given = ("The kettle is blue", {"text": "Tea", "tags": ["x"]}, NewMemory("Milk", path="m"))
        done = memory.remember_many(one for one in given)
        kept = [memory.get(one.id) for one in done]
    assert [(one.text, one.tags, one.path) for one in kept] == [
        ("The kettle is blue", (), None),
        ("Tea", ("x",), None),
        ("Milk", (), "m"),
    ]


@pytest.mark.promise("calls.not_found")
def test_a_parent_that_is_not_there(somewhere: Path) -> None:
    """A memory derived from one that is not there, or is forgotten, is not kept."""
    with Memory.open(somewhere / "home", embedder="hashing") as memory:
        for remembered in (
            lambda: memory.remember("x", parent="nope"),
            lambda: memory.remember_many(["y", NewMemory("x", parent="nope")]),
        ):
            with pytest.raises(NotFound) as missing:
                remembered()
            assert (missing.value.kind, missing.value.id) == ("memory", "nope")
        assert len(memory.list()) == 0
        one = memory.remember("The kettle is blue")
        child = memory.remember("So is the cup", parent=one.id)
        assert memory.get(child.id).parent == one.id
        memory.forget(one.id, soft=True)
        with pytest.raises(NotFound):
            memory.remember("And the plate", parent=one.id)


@pytest.mark.promise("recall.exclude")
def test_one_text_is_excluded_as_one(somewhere: Path) -> None:
    """`exclude` with one text leaves out the turn of that text, and refuses what is no text."""
    with Memory.open(somewhere / "home", embedder="hashing") as memory:
        for text in ("the port is 5433", "the port was 5432"):
            memory.conversations.append_user("c", text)
        found = memory.recall_conversation("c", "port", exclude="the port is 5433 ")
        assert [hit.text for hit in found] == ["the port was 5432"]
        for wrong in ([1], None, [None], b"x"):
            with pytest.raises(InvalidInput) as refused:
                memory.recall_conversation("c", "port", exclude=wrong)  # type: ignore[arg-type]
            assert refused.value.what.startswith("exclude")
        given = iter(["the port is 5433", "the port was 5432"])
        assert len(memory.recall_conversation("c", "port", exclude=given)) == 0
