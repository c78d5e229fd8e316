"""Answers of others, read up to a bound: of bytes, of what they unpack to, and of time."""

from __future__ import annotations

import json
import time
import zlib
from collections.abc import Iterable, Iterator
from typing import Any, Final, Protocol

MOST_BYTES: Final = 64 << 20
"""Bytes of one answer or entry, unpacked."""
_MOST_VALUES: Final = 4_000_000
"""Values in one JSON text: each takes some twenty times the memory of its shortest form."""
_PIECE: Final = 1 << 20
_WITH_HEADER: Final = 32 + zlib.MAX_WBITS


class Unbounded(ValueError):
    """It is larger, slower or nested deeper than an answer can be."""


class _Response(Protocol):
    """What of an HTTP answer is read here."""

    @property
    def headers(self) -> Any:
        """Its headers."""

    def iter_raw(self) -> Iterator[bytes]:
        """Its bytes as they come."""


def pieces_of(
    response: _Response, seconds: float, most: int | None = MOST_BYTES
) -> Iterator[bytes]:
    """An HTTP answer in pieces, unpacked, while no bound is passed.

    Raises Unbounded, for a packing that is not known, too.
    """
    packing = str(response.headers.get("content-encoding", "identity")).strip().lower()
    length = str(response.headers.get("content-length", "0"))
    if most is not None and length.isdecimal() and len(length) < 20 and int(length) > most:
        raise Unbounded(f"its answer has more than {most >> 20} MiB")
    if packing not in ("identity", "", "gzip", "x-gzip", "deflate"):
        raise Unbounded("its answer is packed in a way that is not known")
    end, size = time.monotonic() + seconds, 0
    raw = response.iter_raw()
    for piece in raw if packing in ("identity", "") else _unpacked(raw):
        size += len(piece)
        if most is not None and size > most:
            raise Unbounded(f"its answer has more than {most >> 20} MiB")
        if time.monotonic() > end:
            raise Unbounded(f"its answer was not whole after {seconds:g} s")
        yield piece


def _unpacked(raw: Iterable[bytes]) -> Iterator[bytes]:
    unpacking = zlib.decompressobj(_WITH_HEADER)
    for piece in raw:
        packed_bytes = piece
        try:
            while packed_bytes and not unpacking.eof:
                yield unpacking.decompress(packed_bytes, _PIECE)
                packed_bytes = unpacking.unconsumed_tail
        except zlib.error as error:
            raise Unbounded("its answer cannot be unpacked") from error
        if unpacking.eof:
            # What follows the end of the packed data is no part of the answer.
            return


def read_json(data: bytes) -> Any:
    """The JSON in these bytes. ValueError for none, or for more or deeper than can be held."""
    if len(data) > MOST_BYTES:
        raise Unbounded(f"it has more than {MOST_BYTES >> 20} MiB")
    if sum(map(data.count, (b",", b"[", b"{"))) > _MOST_VALUES:
        raise Unbounded("it has too many values")
    try:
        return json.loads(data, parse_constant=_refuse_constant)
    except RecursionError as error:
        raise Unbounded("it is nested too deeply") from error


def _refuse_constant(name: str) -> Any:
    raise ValueError(f"{name} is no number of JSON")
