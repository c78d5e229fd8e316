"""Inputs made worse: bytes in, bytes out, the same ones for the same seed.

In: one input, and others to take pieces from. Out: the input with one to six changes, in the places
where JSON has its tokens or at any byte. It knows JSON well enough to cut out a whole value, and
nothing of what the values mean. It never looks at a disk or a clock.
"""

from __future__ import annotations

import random
import re
from collections.abc import Callable, Sequence

__all__ = ["Mutator"]

_TOKEN = re.compile(rb'"(?:[^"\\\n]|\\.){0,2000}+"|-?\d[\d.eE+-]*|true|false|null|[\[\]{}]')
_LONGEST = 1 << 20
_WINDOW = 60_000
_DEPTHS = (3, 17, 33, 64, 200, 480, 900, 985, 1_100, 5_000, 100_000)

NUMBERS: tuple[bytes, ...] = (
    b"0", b"-0", b"-1", b"0.5", b"1e-400", b"1e308", b"1e999", b"-1e999", b"NaN", b"Infinity",
    b"-Infinity", b"2147483648", b"4294967296", b"9007199254740993", b"9223372036854775807",
    b"9223372036854775808", b"-9223372036854775809", b"1714478400", b"-62135596801",
    b"253402300800", b"1714478400000", b"1714478400000000000", b"9" * 40, b"9" * 400, b"9" * 4_300,
    b"9" * 4_301, b"01", b"1.", b"+1", b"0x10", b"3.0",
)  # fmt: skip
TEXTS: tuple[bytes, ...] = (
    b'""', b'" "', b'"\\u0000"', b'"\\ud800"', b'"\\udc00\\ud800"', b'"\\ud83d\\ude00"',
    b'"\xed\xa0\x80"', b'"\xff\xfe"', b'"\xc0\xaf"', b'"\xef\xbb\xbf"', b'"\xe2\x80\xa8"',
    b'"\\u202e\\u200b\\ufeff"', b'"a\\u0301\\u0327"', b'"\\u0085\\u001b[31m"', b'"."', b'".."',
    b'"../../etc/passwd"', b'"con"', b'"a/b\\\\c"', b'"%00"', b'"%2e%2e%2f"', b'"~"', b'"-rf"',
    b'"2026-04-30T12:00:00Z"', b'"0000-01-01T00:00:00Z"', b'"0001-01-01T00:00:00+23:59"',
    b'"9999-12-31T23:59:59-23:59"', b'"2026-02-30T25:61:61Z"', b'"2026-04-30"', b'"10000-01-01"',
    b'"1714478400"', b'"1e999"', b'"nan"', b'"true"', b'"null"', b'"user"', b'"tool"',
    b'"assistant"', b'"system"', b'"{\\"a\\":1}"', b'"' + b"x" * 5_000 + b'"',
    b'"' + b"\\u0001" * 300 + b'"', b'"' + "\U0001f469\u200d\U0001f4bb".encode() * 60 + b'"',
)  # fmt: skip
OTHERS: tuple[bytes, ...] = (
    b"null", b"true", b"false", b"[]", b"{}", b"[[]]", b"[null]", b'{"":null}', b'[1,"a",{}]',
    b'{"a":1,"a":2}', b'{"text":"a"}', b'{"parts":[]}', b'{"eq":null}', b'{"AND":[]}',
)  # fmt: skip
_BYTES: tuple[bytes, ...] = (
    b"\x00", b"\xff", b"\xc3", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xff\xfe", b"\n", b"\r\n", b"\r",
    b'"', b"\\", b"{", b"}", b"[", b"]", b",", b":", b",,", b'\\u', b'\\ud800', b"\xe2\x80\xa8",
    b"PK\x03\x04", b"/*", b"\x1f\x8b", b"-", b"e+", b"<&>", b"%", b"\t", b"\x0b", b"\x1a",
)  # fmt: skip


class Mutator:
    """Changes inputs. Two with one seed, given the same, do the same."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def choose(self, corpus: Sequence[bytes]) -> bytes:
        """An input out of the corpus, changed; one time in fifty as it is."""
        data = self.random.choice(corpus)
        return data if self.random.random() < 0.02 else self.change(data, corpus)

    def change(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        """The input with one to six changes; never more than a megabyte of it."""
        data = data[:_LONGEST]
        for _ in range(self.random.choice((1, 1, 1, 2, 3, 6))):
            in_json = self.random.random() < 0.75
            data = (self._in_json if in_json else self._in_bytes)(data, corpus)[:_LONGEST]
        return data

    def hostile(self, key: bytes = b'"a"') -> bytes:
        """A JSON value that some reader or other does not expect."""
        kind = self.random.random()
        if kind < 0.35:
            return self.random.choice(NUMBERS)
        if kind < 0.75:
            return self.random.choice(TEXTS)
        if kind < 0.9:
            return self.random.choice(OTHERS)
        return self._nested(key)

    def _nested(self, key: bytes) -> bytes:
        depth = self.random.choice(_DEPTHS)
        form = self.random.randrange(3)
        if form == 0:
            return b"[" * depth + b"]" * depth
        if form == 1:
            return (b"{" + key + b":") * depth + b"1" + b"}" * depth
        return (b"[{" + key + b":") * depth + b'"a"' + b"}]" * depth

    def _in_json(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        found = self._value(data)
        if found is None:
            return self._in_bytes(data, corpus)
        start, end, key = found
        value = data[start:end]
        change: Callable[[], bytes] = self.random.choice(
            (
                lambda: self.hostile(key),
                lambda: self.hostile(key),
                lambda: self.hostile(key),
                lambda: self._other(corpus),
                lambda: self._other((data,)),
                lambda: value + b"," + value,
                lambda: value + b"," + key + b":" + self.hostile(key),
                lambda: b"[" + value + b"]",
                lambda: b"{" + key + b":" + value + b"}",
                lambda: b'"' + value.replace(b"\\", b"\\\\").replace(b'"', b'\\"') + b'"',
                lambda: self._longer(value),
            )
        )
        return data[:start] + change() + data[end:]

    def _value(self, data: bytes) -> tuple[int, int, bytes] | None:
        """Where some value lies, and the key before it. Looks at a window of a long input."""
        at = self.random.randrange(max(1, len(data) - 2_000)) if len(data) > 4_000 else 0
        tokens = list(_TOKEN.finditer(data, at, at + 8_000))
        if not tokens:
            return None
        index = self.random.randrange(len(tokens))
        token = tokens[index]
        while token[0] in (b"]", b"}") and index > 0:
            index -= 1
            token = tokens[index]
        key = next((t[0] for t in reversed(tokens[:index]) if t[0][:1] == b'"'), b'"a"')
        end = token.end()
        if token[0] in (b"[", b"{"):
            depth = 0
            for later in _TOKEN.finditer(data, token.start(), token.start() + _WINDOW):
                depth += (later[0] in (b"[", b"{")) - (later[0] in (b"]", b"}"))
                if depth == 0:
                    end = later.end()
                    break
        return token.start(), end, key

    def _other(self, corpus: Sequence[bytes]) -> bytes:
        data = self.random.choice(corpus)
        found = self._value(data)
        return self.hostile() if found is None else data[found[0] : found[1]][:20_000]

    def _longer(self, value: bytes) -> bytes:
        if value[:1] != b'"':
            return value
        at = self.random.randrange(1, len(value))
        return value[:at] + self.random.choice(TEXTS)[1:-1] + value[at:]

    def _in_bytes(self, data: bytes, corpus: Sequence[bytes]) -> bytes:
        if not data:
            return self.hostile()
        at = self.random.randrange(len(data))
        to = min(len(data), at + self.random.choice((1, 2, 8, 60, 1_000)))
        other = self.random.choice(corpus)
        cut, bit = self.random.randrange(len(other) + 1), 1 << self.random.randrange(8)
        change: Callable[[], bytes] = self.random.choice(
            (
                lambda: data[:at] + bytes([data[at] ^ bit]) + data[at + 1 :],
                lambda: data[:at] + bytes([self.random.randrange(256)]) + data[at + 1 :],
                lambda: data[:at] + self.random.choice(_BYTES) + data[at:],
                lambda: data[:at] + data[to:],
                lambda: data[:to] + data[at:to] * self.random.choice((1, 2, 40)) + data[to:],
                lambda: data[:at],
                lambda: data[:at] + other[cut : cut + 4_000] + data[at:],
                lambda: data[:at] + other[cut:],
                lambda: self._lines(data),
            )
        )
        return change()

    def _lines(self, data: bytes) -> bytes:
        """Lines in another order, some twice, some left out."""
        lines = data.splitlines(keepends=True)
        if len(lines) > 1 and self.random.random() < 0.5:
            return b"".join(self.random.choices(lines, k=min(len(lines), 60)))
        self.random.shuffle(lines)
        return b"".join(lines)
