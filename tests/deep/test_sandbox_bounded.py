"""What crosses the wall is plain, bounded and never costs more than its bound."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from anaphora.deep.sandbox.base import HostRefusal
from anaphora.deep.sandbox.crossing import (
    MAX_DEPTH,
    Oversized,
    copy_plain,
    read_call,
)

pytestmark = pytest.mark.internal

numbers = st.integers(-(2**63), 2**63 - 1) | st.floats(allow_nan=False, allow_infinity=False)
texts = st.text(max_size=20)
values = st.recursive(
    st.none() | st.booleans() | numbers | texts,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(texts, inner, max_size=4),
    max_leaves=20,
)


@given(values, st.integers(0, 200))
def test_text_never_exceeds_its_bound(value: object, chars: int) -> None:
    """Whatever passes has at most that many characters of text, keys included."""

    def text_in(part: object) -> int:
        if isinstance(part, str):
            return len(part)
        if isinstance(part, dict):
            return sum(len(k) + text_in(v) for k, v in part.items())
        return sum(map(text_in, part)) if isinstance(part, list) else 0

    try:
        assert text_in(copy_plain(value, chars)) <= chars
    except Oversized:
        assert text_in(value) > chars


@pytest.mark.parametrize(
    "line",
    [
        "[" * 100_000,
        '{"a":' * 100_000,
        "9" * 100_000,
        '["f", [' + "9" * 5000 + "], {}]",
        '["f", [NaN], {}]',
        '["f", [-Infinity], {}]',
        '["f", {}, []]',
        '["f", [], {}, {}]',
        "[1, [], {}]",
        "null",
        '["f", [' + "[" * (MAX_DEPTH + 2) + "]" * (MAX_DEPTH + 2) + "], {}]",
        '["f", [' + ",".join("0" * 1 for _ in range(30_000)) + "], {}]",
        '["f", [18446744073709551616], {}]',
    ],
    ids=range(13),
)
def test_hostile_lines_are_refused(line: str) -> None:
    """Depth, size, numbers without end and other shapes are refusals, not crashes."""
    with pytest.raises(HostRefusal):
        read_call(line, 1_000_000)


def test_shared_parts_are_counted_every_time() -> None:
    """A small value that unfolds without end is refused within the budget."""
    value: object = "a"
    for _ in range(15):
        value = [value] * 10
    with pytest.raises(Oversized, match=r"too many values|too much text"):
        copy_plain(value, 10**9)
    endless: list[object] = []
    endless.append(endless)
    with pytest.raises(Oversized, match="nested deeper"):
        copy_plain(endless, 100)
