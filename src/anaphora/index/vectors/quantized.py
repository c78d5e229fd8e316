"""Short forms of many vectors: what can be near is found without reading them whole.

`Quantized` keeps a byte a number: an approximate cosine of every part with a query, and how far
from the exact one it can be at most. Whoever asks computes exactly all that could be among the
best: an answer is that of an exact scan, from a quarter of the memory that one reads. The sums are
those of ONNX Runtime's whole-number matrix product, in one thread: several would wait for each
other where other programs want the processors too.
The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.

`Projected` keeps each vector by its leading directions, as a principal component analysis of some
of them does, and by the length of what is left of it, a byte a number: which pairs can be
close is found without multiplying them out.
The bound, for x = a + b and q = c + d with a, c along the leading directions and b, d across them:
x·q ≤ a·c + |b| |d|, by Cauchy-Schwarz. It is itself one product, of a number more than directions,
and what their codes can be off by is added to it as above.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.onnx import onnx_runtime
from anaphora.index.vectors.matrix import products_of

BLOCKS: Final = (16_384, 4_096)
"""Parts that are packed together: as many of the first as there are (6 MB of 384 dimensions), of
what is left of the second, and then the rest. As they become more, the last ones are packed anew:
each some four times."""

# Parts at a time: what is needed to make their codes takes 15 MB of 384 dimensions.
_CODE_STEP: Final = 2048
_PART_MOST: Final = 127
# Products of processors without VNNI are added in pairs in 16 bits: 2 · 128 · 127 fits there.
_QUERY_MOST: Final = 64
# What the float32 arithmetic around the whole numbers can add.
_CODE_ROUNDING: Final = 1e-5

Floats = NDArray[np.float32]


class Quantized:
    """Codes of a growing number of parts. One thread takes them in, others may ask meanwhile."""

    def __init__(self) -> None:
        self._blocks: tuple[_Block, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def take_some(self, parts: Floats) -> bool:
        """Take in more of `parts` (unit vectors), a block at most; False where none are left.

        Those that are here are the first of them.
        """
        start, kept = 0, 0
        for size in _sizes(len(parts), BLOCKS):
            if kept < len(self._blocks) and len(self._blocks[kept]) == size:
                start, kept = start + size, kept + 1
                continue
            self._blocks = (*self._blocks[:kept], _pack(parts[start : start + size]))
            return start + size < len(parts)
        return False

    def approximate(self, vector: Floats) -> tuple[Floats, float]:
        """The approximate cosine of each part with a unit vector; the product, for any other.

        None is further than the second value from the exact one.
        """
        blocks = self._blocks
        scale = np.float32(max(float(np.abs(vector).max()), 1e-12) / _QUERY_MOST)
        code = np.rint(vector / scale)
        apart = float(np.linalg.norm(vector - code * scale))
        query = (code + _QUERY_MOST).astype(np.uint8)[None]
        cosines = np.concatenate([block.products(query) for block in blocks])
        cosines *= scale
        error = max(block.error for block in blocks) * float(np.linalg.norm(vector))
        return cosines, error + max(block.longest for block in blocks) * apart + _CODE_ROUNDING


def _sizes(count: int, blocks: Sequence[int], *, rest: bool = True) -> Iterator[int]:
    """How so many parts are divided."""
    for size in blocks:
        whole, count = divmod(count, size)
        yield from [size] * whole
    if rest and count:
        yield count


@dataclass(frozen=True, slots=True)
class _Block:
    """Codes of some parts, packed for products with one query.

    `scales` (n,) are what a code of 1 stands for. `error` is how far the codes are from their
    parts at most, `longest` the length of the longest of what they stand for.
    """

    session: Any
    scales: Floats
    error: float
    longest: float

    def __len__(self) -> int:
        return len(self.scales)

    def products(self, query: NDArray[np.uint8]) -> Floats:
        """What the codes stand for · `query` (1, d), whose zero is `_QUERY_MOST`; shape (n,)."""
        sums: Floats = self.session.run(None, {"a": query})[0][0].astype(np.float32)
        sums *= self.scales
        return sums


def _pack(parts: Floats) -> _Block:
    codes = np.empty((parts.shape[1], len(parts)), np.int8)
    scales = np.empty(len(parts), np.float32)
    error = longest = 0.0
    for start in range(0, len(parts), _CODE_STEP):
        some = parts[start : start + _CODE_STEP]
        one = np.maximum(np.abs(some).max(axis=1), np.float32(1e-12)) / _PART_MOST
        rounded = np.rint(some / one[:, None])
        back = rounded * one[:, None]
        longest = max(longest, _longest(back))
        error = max(error, _longest(some - back))
        codes[:, start : start + len(some)] = rounded.T
        scales[start : start + len(some)] = one
    return _Block(_session(codes), scales, error, longest)


def _longest(rows: Floats) -> float:
    """The length of the longest row."""
    return float(_lengths(rows).max())


def _lengths(rows: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


def _session(codes: NDArray[np.int8]) -> Any:
    """a (m, d) · codes (d, n), in 32 bits. A constant is packed once, when the session is made:
    a product with it reads it at the speed of the memory, seven times as fast as with an input."""
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    made = runtime.InferenceSession(_model(codes), options, providers=["CPUExecutionProvider"])
    # The wrapper keeps the model's bytes, as large as the codes, to begin anew elsewhere.
    vars(made).pop("_model_bytes", None)
    return made


_UINT8, _INT8, _INT32 = 2, 3, 6


def _model(codes: NDArray[np.int8]) -> bytes:
    """An ONNX model of one node, c = MatMulInteger(a, codes), in the protocol buffer encoding."""

    def number(value: int) -> bytes:
        return bytes([value]) if value < 128 else bytes([value & 127 | 128]) + number(value >> 7)

    def field(place: int, value: bytes | str | int) -> bytes:
        if isinstance(value, int):
            return number(place << 3) + number(value)
        data = value.encode() if isinstance(value, str) else value
        return number(place << 3 | 2) + number(len(data)) + data

    def constant(name: str, kind: int, shape: tuple[int, ...], data: bytes) -> bytes:
        sizes = b"".join(field(1, size) for size in shape)
        return field(5, sizes + field(2, kind) + field(8, name) + field(9, data))

    def rows(name: str, kind: int, width: int) -> bytes:
        sizes = field(1, field(2, "m")) + field(1, field(1, width))
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))

    width, count = codes.shape
    node = b"".join(field(1, name) for name in ("a", "codes", "zero"))
    graph = field(1, node + field(2, "c") + field(4, "MatMulInteger")) + field(2, "g")
    graph += constant("codes", _INT8, codes.shape, codes.tobytes())
    graph += constant("zero", _UINT8, (), bytes([_QUERY_MOST]))
    graph += field(11, rows("a", _UINT8, width)) + field(12, rows("c", _INT32, count))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


LEADING: Final = 127
"""Directions kept: of MiniLM's 384 they hold 0.74 of the square of a length. For one query at a
cosine of 0.6 the bound leaves some 50 of 100,000 parts, where 64 leave 6,400; with what codes can
be off by, 200."""

SHORT_BLOCKS: Final = (16_384, 4_096, 1_024, 256)
"""Parts whose short forms are packed together: what is left over is looked at as it is."""

_SAMPLE: Final = 2048
_ROUNDS: Final = 2
_NOTHING_LEFT: Final = 1e-6
_ANEW: Final = 8
"""Directions are looked for anew once there are so many times the parts that they were found in."""
_MANY_AT_ONCE: Final = 256
_FEW_AT_ONCE: Final = 256
# What the float32 arithmetic can take away from the bound.
_BOUND_ROUNDING: Final = 1e-4
_OF_SQUARE: Final = 1e-5
# Vectors that the directions do not fit leave so much that multiplying all of them out is cheaper.
_TOO_MANY: Final = 1 / 32

Places = NDArray[np.int64]


class Projected:
    """Short forms of a growing number of parts. One thread takes them in, others may ask."""

    def __init__(self) -> None:
        self._blocks: tuple[_ShortBlock, ...] = ()
        self._axes: Floats | None = None
        self._found_in = 0

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def take_some(self, parts: Floats) -> bool:
        """Take in more of `parts` (unit vectors), a block at most; False where none are left.

        Those that are here are the first of them. Fewer than make a block are never taken in.
        """
        start, kept = 0, 0
        for size in _sizes(len(parts), SHORT_BLOCKS, rest=False):
            if kept < len(self._blocks) and len(self._blocks[kept]) == size:
                start, kept = start + size, kept + 1
                continue
            if self._axes is None or len(parts) >= _ANEW * self._found_in:
                # Blocks that are here keep theirs: should those fit badly, their bound is looser.
                self._axes, self._found_in = _leading(parts), len(parts)
            made = _shorten(parts[start : start + size], self._axes)
            self._blocks = (*self._blocks[:kept], made)
            return len(parts) - start - size >= SHORT_BLOCKS[-1]
        return False

    def could_be(self, vector: Floats, closer: float) -> tuple[Places, int] | None:
        """Places of the parts that could be so close to one vector; None where that is too many.

        With them, how many parts were looked at: more may come meanwhile.
        """
        found, start, short = [], 0, _Shortened(vector[None])
        for block in self._blocks:
            some = block.could_be(short.along(block.axes), closer)
            if len(some) > _TOO_MANY * len(block):
                return None
            found.append(start + some)
            start += len(block)
        return np.concatenate(found) if found else np.empty(0, np.int64), start

    def pairs(
        self, vectors: Floats, parts: Floats, closer: float
    ) -> Iterator[tuple[Places, Places]]:
        """(places among `vectors`, places among `parts`) of all pairs that could be so close.

        The first of `parts` are those that were taken in.
        """
        blocks = self._blocks
        known = sum(map(len, blocks))
        for first in range(0, len(vectors), _MANY_AT_ONCE):
            some, start = vectors[first : first + _MANY_AT_ONCE], 0
            short = _Shortened(some)
            for block in blocks:
                end = start + len(block)
                found = block.could_be(short.along(block.axes), closer)
                if len(found) > _TOO_MANY * len(some) * len(block):
                    near = (some @ parts[start:end].T).ravel() >= closer - _BOUND_ROUNDING
                    found = np.flatnonzero(near)
                at, place = np.divmod(found, len(block))
                yield first + at, start + place
                start = end
            if known < len(parts):
                newer = products_of(some, parts[known:]) if known else some @ parts.T
                found = np.flatnonzero(newer.ravel() >= closer - _BOUND_ROUNDING)
                at, place = np.divmod(found, len(parts) - known)
                yield first + at, known + place


class _Shortened:
    """Vectors along the directions of one block after another: most have the same ones."""

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._axes: Floats | None = None
        self._short: _ShortQueries | None = None

    def along(self, axes: Floats) -> _ShortQueries:
        """Their short forms, as codes."""
        if self._short is None or self._axes is not axes:
            self._axes, self._short = axes, _as_queries(_short(self._vectors, axes))
        return self._short


@dataclass(frozen=True, slots=True)
class _ShortQueries:
    """Codes (m, k) of short forms: their zero is `_QUERY_MOST`, and each row has its own scale.

    `apart` (m,) is how far each is from what it stands for, `lengths` (m,) how long that is.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float64]
    apart: Floats
    lengths: Floats


def _as_queries(short: Floats) -> _ShortQueries:
    scales = np.maximum(np.abs(short).max(axis=1), np.float32(1e-12)) / np.float32(_QUERY_MOST)
    codes = np.rint(short / scales[:, None])
    return _ShortQueries(
        (codes + _QUERY_MOST).astype(np.uint8),
        scales.astype(np.float64),
        _lengths(short - codes * scales[:, None]),
        _lengths(short),
    )


@dataclass(frozen=True, slots=True)
class _ShortBlock:
    """Codes of the short forms of some parts, all of one `scale`: their sums can be compared as
    they are. `error` and `longest` are as of a `_Block`."""

    session: Any
    axes: Floats
    count: int
    scale: float
    error: float
    longest: float

    def __len__(self) -> int:
        return self.count

    def could_be(self, queries: _ShortQueries, closer: float) -> Places:
        """Which pairs could be so close: places in a table (queries, parts), row by row."""
        off = self.error * queries.lengths + self.longest * queries.apart
        least = closer - _BOUND_ROUNDING - _CODE_ROUNDING - off.astype(np.float64)
        sums = self.session.run(None, {"a": queries.codes})[0]
        # No sum is that large: what is beyond it is beyond all.
        most = np.iinfo(np.int32).max
        wanted = np.clip(np.ceil(least / (self.scale * queries.scales)), -most, most)
        found: Places = np.flatnonzero(sums >= wanted.astype(np.int32)[:, None])
        return found


def _shorten(parts: Floats, axes: Floats) -> _ShortBlock:
    codes = np.empty((len(axes) + 1, len(parts)), np.int8)
    steps = range(0, len(parts), _CODE_STEP)
    short = [_short(parts[start : start + _CODE_STEP], axes) for start in steps]
    scale = max(1e-12, *(float(np.abs(some).max()) for some in short)) / _PART_MOST
    error = longest = 0.0
    for start, some in zip(steps, short, strict=True):
        rounded = np.rint(some / np.float32(scale))
        back = rounded * np.float32(scale)
        longest = max(longest, _longest(back))
        error = max(error, _longest(some - back))
        codes[:, start : start + len(some)] = rounded.T
    return _ShortBlock(_session(codes), axes, len(parts), scale, error, longest)


def _leading(parts: Floats) -> Floats:
    """The leading directions (LEADING, dimensions) of some of the parts, evenly spread.

    By subspace iteration from some of the parts: nearly what an eigen decomposition finds, whose
    many small steps wait for one another's threads, for seconds where other programs want the
    processors too.
    """
    some = parts[:: max(1, len(parts) // _SAMPLE)]
    square = (some.T @ some).astype(np.float64)
    axes = some[:: max(1, len(some) // LEADING)][:LEADING].astype(np.float64)
    for _ in range(_ROUNDS):
        # Twice the product: of more, those that lead would leave no digits for the others.
        axes = _orthonormal(axes @ square @ square)
    return np.ascontiguousarray(axes, np.float32)


def _orthonormal(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows, each less what the ones before have of it (Gram-Schmidt, twice), of length 1.

    One that is made of those before becomes 0.
    """
    found = np.zeros_like(rows)
    for at, row in enumerate(rows):
        left, before = row, found[:at]
        for _ in range(2):
            left = left - np.einsum("i,ij->j", np.einsum("ij,j->i", before, left), before)
        length = float(np.sqrt(left @ left))
        if length > _NOTHING_LEFT * float(np.sqrt(row @ row)):
            found[at] = left / length
    return found


def _short(rows: Floats, axes: Floats) -> Floats:
    along = products_of(rows, axes) if len(rows) <= _FEW_AT_ONCE else rows @ axes.T
    left = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", along, along)
    # Of two numbers that are nearly equal the difference is known to so many digits only.
    across = np.sqrt(np.maximum(left, 0.0) + np.float32(_OF_SQUARE))
    short: Floats = np.concatenate((along, across[:, None]), axis=1).astype(np.float32, copy=False)
    return short
