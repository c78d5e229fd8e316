"""`AsyncMemory` is `Memory`, awaited: the same methods, parameters, defaults and words."""

from __future__ import annotations

import inspect
from pathlib import Path
from typing import Any, get_type_hints

import pytest

from anaphora import AsyncMemory, ConversationStore, Memory

AsyncConversations = get_type_hints(AsyncMemory.conversations.fget)["return"]  # type: ignore[attr-defined]
PAIRS = [(Memory, AsyncMemory), (ConversationStore, AsyncConversations)]
# Instant in both: nothing is read or written before the view, or the registration, is used.
INSTANT = {"open", "scoped", "on"}


def public(kind: type) -> dict[str, Any]:
    return {
        name: inspect.getattr_static(kind, name) for name in dir(kind) if not name.startswith("_")
    }


def signature(kind: type, name: str) -> list[tuple[str, Any, Any, str]]:
    parameters = inspect.signature(getattr(kind, name)).parameters.values()
    return [(p.name, p.kind, p.default, str(p.annotation)) for p in parameters]


@pytest.mark.promise("async.parity")
@pytest.mark.parametrize(("sync", "mirror"), PAIRS, ids=lambda kind: kind.__name__)
def test_every_public_name_is_mirrored(sync: type, mirror: type) -> None:
    """What one class offers in public, the other does."""
    own = set(inspect.get_annotations(sync)) | {"directory", "namespace"}
    assert public(sync).keys() - public(mirror).keys() == set()
    assert public(mirror).keys() - public(sync).keys() <= own


@pytest.mark.promise("async.parity")
@pytest.mark.parametrize(
    ("sync", "mirror", "name"),
    [(s, m, name) for s, m in PAIRS for name in sorted(public(s)) if name in public(m)],
)
def test_every_method_has_the_same_parameters_and_words(
    sync: type, mirror: type, name: str
) -> None:
    """Names, kinds, defaults and types of parameters are the same, and so are docstrings."""
    one, other = public(sync)[name], public(mirror)[name]
    assert isinstance(one, property) == isinstance(other, property)
    assert inspect.getdoc(getattr(sync, name)) == inspect.getdoc(getattr(mirror, name))
    if isinstance(one, property):
        return
    assert signature(sync, name) == signature(mirror, name)
    function = getattr(other, "__func__", other)
    assert inspect.iscoroutinefunction(function) == (name not in INSTANT)


def test_opening_is_awaited_or_entered(tmp_path: Path) -> None:
    """What `open` returns can be awaited and can be entered."""
    opening = AsyncMemory.open(tmp_path, embedder="hashing")
    assert hasattr(opening, "__await__")
    assert hasattr(opening, "__aenter__")


def test_every_callback_runs_in_the_loop() -> None:
    """A parameter that takes a callback is one of those that `aio.py` knows."""
    found = {
        parameter.name
        for name, member in public(Memory).items()
        if not isinstance(member, property)
        for parameter in inspect.signature(getattr(Memory, name)).parameters.values()
        if "Callable" in str(parameter.annotation) or "Progress" in str(parameter.annotation)
    }
    assert found - {"clock"} == {"progress", "on_step"}
