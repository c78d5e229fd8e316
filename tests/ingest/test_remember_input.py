"""What may be remembered, what is refused, and what is taken out before anything is stored."""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Any

import pytest

from anaphora import Memory, NewMemory
from anaphora.errors import InvalidInput

from .memory_desk import Desk

NAIVE = datetime(2026, 1, 1)  # noqa: DTZ001 - what must be refused
DEEP: dict[str, Any] = {}
for _ in range(150):
    DEEP = {"x": DEEP}
BAD: list[tuple[str, dict[str, Any]]] = [
    ("text", {"text": ""}), ("text", {"text": " \n"}), ("text", {"text": None}),
    ("text", {"text": b"x"}), ("type", {"type": "fact"}), ("type", {"type": None}),
    ("tags", {"tags": "a"}), ("tags", {"tags": ["a", ""]}), ("tags", {"tags": [1]}),
    ("tags", {"tags": {"a": 1}}), ("tags", {"tags": 3}),
    ("payload", {"payload": [10**5000]}), ("payload", {"payload": "x"}),
    ("payload", {"payload": {1: 2}}),
    ("payload.a", {"payload": {"a": float("nan")}}), ("payload.a[1]", {"payload": {"a": [1, {2}]}}),
    ("payload.a.b", {"payload": {"a": {"b": float("inf")}}}),
    ("payload.n", {"payload": {"n": 10**5000}}), ("payload.x.x.x", {"payload": DEEP}),
    ("path", {"path": ""}), ("path", {"path": " a"}), ("path", {"path": "a\nb"}),
    ("path", {"path": "a\x00"}), ("path", {"path": "a" * 1025}), ("path", {"path": 1}),
    ("path", {"path": "\ud800"}), ("category", {"category": " "}), ("source", {"source": 1}),
    ("created_at", {"created_at": NAIVE}), ("expires_at", {"expires_at": NAIVE}),
    ("expires_at", {"expires_at": "2026-01-01"}), ("turn_index", {"turn_index": -1}),
    ("turn_index", {"turn_index": True}), ("parent", {"parent": ""}),
    ("conversation_id", {"conversation_id": 1}),
]  # fmt: skip


@pytest.mark.promise("remember.bad_input")
@pytest.mark.parametrize(("place", "fields"), BAD, ids=[str(n) for n in range(len(BAD))])
def test_bad_input_names_its_place(tmp_path: Path, clock: Any, place: str, fields: Any) -> None:
    """What cannot be remembered is `InvalidInput` with the field, alone and among others."""
    given = {"text": "x"} | fields
    with Memory.open(tmp_path / "home", embedder="hashing", clock=clock, warm=False) as memory:
        with pytest.raises(InvalidInput) as caught:
            memory.remember(**given)
        assert caught.value.what.startswith(place)
        with pytest.raises(InvalidInput) as caught:
            memory.remember_many([NewMemory("good"), NewMemory(**given)])
        assert caught.value.what.startswith(f"items[1].{place}")
    assert not (tmp_path / "home").exists()


def test_what_looks_odd_is_kept(desk: Desk) -> None:
    """Big numbers, empty containers, tuples and odd paths are kept as JSON values."""
    payload: dict[str, Any] = {
        "big": 10**3000,
        "none": None,
        "empty": [{}, []],
        "t": (1, -0.0),
        "": "",
        "b": False,
    }
    done = desk.say("x", payload=payload, path=".env/..\\Ünïcode 日本 a..b")
    assert desk.get(done.id).payload == payload | {"t": [1, -0.0]}
    assert desk.get(done.id).path == ".env/..\\Ünïcode 日本 a..b"
