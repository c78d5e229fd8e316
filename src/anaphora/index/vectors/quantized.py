"""Short forms of many vectors: what can be near is found without reading them whole.

`Quantized` keeps a byte a number: an approximate cosine of every part with a query, and how far
from the exact one it can be at most. Whoever asks computes exactly all that could be among the
best: an answer is that of an exact scan, from a quarter of the memory that one reads. The sums are
those of ONNX Runtime's whole-number matrix product, in one thread: several would wait for each
other where other programs want the processors too.
The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.

`Projected` keeps each vector by its leading directions, as a principal component analysis of some
of them finds them, and by the length of what is left of it: which pairs can be close is found
without multiplying them out.
The bound, for x = a + b and q = c + d with a, c along the leading directions and b, d across them:
x·q ≤ a·c + |b| |d|, by Cauchy-Schwarz. It is itself one product, of a number more than directions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.onnx import onnx_runtime
from anaphora.index.rows import GrowingColumn

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
        for size in _sizes(len(parts)):
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


def _sizes(count: int) -> Iterator[int]:
    """How so many parts are divided."""
    for size in BLOCKS:
        whole, count = divmod(count, size)
        yield from [size] * whole
    if count:
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
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))


def _session(codes: NDArray[np.int8]) -> Any:
    """a (1, d) · codes (d, n), in 32 bits. A constant is packed once, when the session is made:
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

    def tensor(name: str, kind: int, shape: tuple[int, ...]) -> bytes:
        sizes = b"".join(field(1, field(1, size)) for size in shape)
        return field(1, name) + field(2, field(1, field(1, kind) + field(2, sizes)))

    width, count = codes.shape
    node = b"".join(field(1, name) for name in ("a", "codes", "zero"))
    graph = field(1, node + field(2, "c") + field(4, "MatMulInteger")) + field(2, "g")
    graph += constant("codes", _INT8, codes.shape, codes.tobytes())
    graph += constant("zero", _UINT8, (), bytes([_QUERY_MOST]))
    graph += field(11, tensor("a", _UINT8, (1, width))) + field(12, tensor("c", _INT32, (1, count)))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))


LEADING: Final = 64
"""Directions kept: of MiniLM's 384 they hold 0.6 of the length, and leave 6 to 30 of 100,000 parts
for one query at a cosine of 0.8."""

_SAMPLE: Final = 8192
_PROJECT_STEP: Final = 16_384
# What the float32 arithmetic can take away from the bound.
_BOUND_ROUNDING: Final = 1e-4
_OF_SQUARE: Final = 1e-5
# Vectors that the directions do not fit leave so much that multiplying all of them out is cheaper.
_TOO_MANY: Final = 1 / 32

Places = NDArray[np.int64]


class Projected:
    """Short forms of a growing number of parts. One thread adds to it, others may ask meanwhile."""

    def __init__(self, parts: Floats) -> None:
        # The directions of these serve all that come: should they fit badly, the bound is looser.
        self._axes = _leading(parts)
        directions = self._axes.shape[1] + 1
        self._rows = GrowingColumn(np.float32, width=directions)
        self._codes = Quantized()

    def __len__(self) -> int:
        """How many parts it has: all that a single question needs of them."""
        return len(self._codes)

    @property
    def taken(self) -> int:
        """How many it has for `pairs`."""
        return len(self._rows)

    def extend(self, parts: Floats, upto: int) -> None:
        """Take in the first `upto` of the parts, but for those that are here, for `pairs`."""
        self._rows.reserve(len(parts))
        for start in range(len(self._rows), upto, _PROJECT_STEP):
            self._rows.add(_short(parts[start : min(start + _PROJECT_STEP, upto)], self._axes))

    def encode(self) -> None:
        """Make what was taken in ready for `could_be`."""
        # One question reads all rows once: the fewer bytes they have the better.
        while self._codes.take_some(self._rows.view()):
            pass

    def could_be(self, vector: Floats, closer: float, upto: int) -> Places | None:
        """Places of the parts that could be so close to one vector, None where that is too many.

        Of the first `upto`, which is no more than `len`.
        """
        near, error = self._codes.approximate(_short(vector[None], self._axes)[0])
        found = np.flatnonzero(near[:upto] >= closer - _BOUND_ROUNDING - error)
        return None if len(found) > _TOO_MANY * upto else found

    def pairs(
        self, vectors: Floats, parts: Floats, closer: float
    ) -> Iterator[tuple[Places, Places]]:
        """(places among `vectors`, places among `parts`) of all pairs that could be so close.

        `parts` are those that were taken in, all of them.
        """
        short, rows = _short(vectors, self._axes), self._rows.view()
        for start in range(0, len(rows), _PROJECT_STEP):
            end = min(start + _PROJECT_STEP, len(rows))
            least = closer - _BOUND_ROUNDING
            found = np.flatnonzero((short @ rows[start:end].T).ravel() >= least)
            if len(found) > _TOO_MANY * len(vectors) * (end - start):
                found = np.flatnonzero((vectors @ parts[start:end].T).ravel() >= least)
            at, place = np.divmod(found, end - start)
            yield at, place + start


def _leading(parts: Floats) -> Floats:
    """The leading directions (dimensions, LEADING) of some of the parts, evenly spread."""
    some = parts[:: max(1, len(parts) // _SAMPLE)].astype(np.float64)
    _, axes = np.linalg.eigh(some.T @ some)
    return np.ascontiguousarray(axes[:, ::-1][:, :LEADING], np.float32)


def _short(rows: Floats, axes: Floats) -> Floats:
    along = rows @ axes
    left = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", along, along)
    # Of two numbers that are nearly equal the difference is known to so many digits only.
    across = np.sqrt(np.maximum(left, 0.0) + np.float32(_OF_SQUARE))
    short: Floats = np.concatenate((along, across[:, None]), axis=1).astype(np.float32, copy=False)
    return short
