"""Short forms of many vectors: finds those that can be near without reading the vectors whole.

`Quantized` stores each number as a byte: an approximate cosine of every part with a query, and how
far it can be from the exact one. The caller computes exact cosines for all that could be among the
best: the answer is that of an exact scan, from a quarter of the memory. The sums are computed by
ONNX Runtime's integer matrix product in one thread: several threads would wait for each other
while other programs use the processors.
The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.

`Projected` stores the coordinates of each vector along its leading directions (those of a principal
component analysis of a sample) and the length of the remainder, each as a byte: pairs that can be
close are found without multiplying the vectors out.
The bound, for x = a + b and q = c + d with a, c along the leading directions and b, d across them:
x·q ≤ a·c + |b| |d|, by Cauchy-Schwarz. It is itself one product, with one dimension more than there
are directions, and the error of the codes is added to it as above.
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
"""Sizes of the blocks that parts are packed in: as many as possible of the first size (6 MB of 384
dimensions), then of the second, and one of the remainder. As parts are added, the last blocks are
packed again: each part about four times."""

# Parts per step: making their codes takes 15 MB of 384 dimensions.
_CODE_STEP: Final = 2048
_PART_MOST: Final = 127
# Processors without VNNI add products in pairs in 16 bits: 2 · 128 · 127 fits.
_QUERY_MOST: Final = 64
# The most that float32 arithmetic around the integers can add.
_CODE_ROUNDING: Final = 1e-5

Floats = NDArray[np.float32]


class Quantized:
    """Codes of a growing number of parts. One thread adds parts, others may query meanwhile."""

    def __init__(self) -> None:
        self._blocks: tuple[_CodeBlock, ...] = ()

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def add_some(self, parts: Floats) -> bool:
        """Add the next block of `parts` (unit vectors); False if none are left.

        The parts that are packed already are the first of them.
        """
        start, full_blocks = 0, 0
        for size in _split_sizes(len(parts), BLOCKS):
            if full_blocks < len(self._blocks) and len(self._blocks[full_blocks]) == size:
                start, full_blocks = start + size, full_blocks + 1
                continue
            self._blocks = (*self._blocks[:full_blocks], _pack(parts[start : start + size]))
            return start + size < len(parts)
        return False

    def approximate(self, vector: Floats) -> tuple[Floats, float]:
        """The approximate product of each part with a vector, and the greatest possible error."""
        blocks = self._blocks
        scale = np.float32(max(float(np.abs(vector).max()), 1e-12) / _QUERY_MOST)
        code = np.rint(vector / scale)
        apart = float(np.linalg.norm(vector - code * scale))
        query = (code + _QUERY_MOST).astype(np.uint8)[None]
        cosines = np.concatenate([block.products(query) for block in blocks])
        cosines *= scale
        error = max(block.error for block in blocks) * float(np.linalg.norm(vector))
        return cosines, error + max(block.longest for block in blocks) * apart + _CODE_ROUNDING


def _split_sizes(count: int, blocks: Sequence[int], *, rest: bool = True) -> Iterator[int]:
    """The sizes of the blocks that so many parts are divided into."""
    for size in blocks:
        block_count, count = divmod(count, size)
        yield from [size] * block_count
    if rest and count:
        yield count


@dataclass(frozen=True, slots=True)
class _CodeBlock:
    """Codes of some parts, packed for products with one query.

    `scales` (n,) are the values of a code of 1. `error` is the greatest distance of decoded codes
    from their parts, `longest` the length of the longest decoded vector.
    """

    session: Any
    scales: Floats
    error: float
    longest: float

    def __len__(self) -> int:
        return len(self.scales)

    def products(self, query: NDArray[np.uint8]) -> Floats:
        """Decoded codes · `query` (1, d), with `_QUERY_MOST` as its zero point; shape (n,)."""
        sums: Floats = self.session.run(None, {"a": query})[0][0].astype(np.float32)
        sums *= self.scales
        return sums


def _pack(parts: Floats) -> _CodeBlock:
    codes = np.empty((parts.shape[1], len(parts)), np.int8)
    scales = np.empty(len(parts), np.float32)
    error = longest = 0.0
    for start in range(0, len(parts), _CODE_STEP):
        block = parts[start : start + _CODE_STEP]
        steps = np.maximum(np.abs(block).max(axis=1), np.float32(1e-12)) / _PART_MOST
        rounded_codes = np.rint(block / steps[:, None])
        restored_parts = rounded_codes * steps[:, None]
        longest = max(longest, _longest(restored_parts))
        error = max(error, _longest(block - restored_parts))
        codes[:, start : start + len(block)] = rounded_codes.T
        scales[start : start + len(block)] = steps
    return _CodeBlock(_session(codes), scales, error, longest)


def _longest(rows: Floats) -> float:
    """The length of the longest row."""
    return float(_lengths(rows).max())


def _lengths(rows: Floats) -> Floats:
    lengths: Floats = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    return lengths


def _session(codes: NDArray[np.int8]) -> Any:
    """a (m, d) · codes (d, n), in 32 bits. The codes are a constant, which is packed once: a
    product with it runs at the speed of memory, seven times as fast as with an input."""
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    options.enable_cpu_mem_arena = False
    session = runtime.InferenceSession(_model(codes), options, providers=["CPUExecutionProvider"])
    # The wrapper keeps the model's bytes, which are as large as the codes, for its fallback.
    vars(session).pop("_model_bytes", None)
    return session


_UINT8, _INT8, _INT32 = 2, 3, 6


def _model(codes: NDArray[np.int8]) -> bytes:
    """An ONNX model of one node, c = MatMulInteger(a, codes), in the protocol buffer encoding."""

    def number(integer: int) -> bytes:
        return (
            bytes([integer])
            if integer < 128
            else bytes([integer & 127 | 128]) + number(integer >> 7)
        )

    def field(field_number: int, content: bytes | str | int) -> bytes:
        if isinstance(content, int):
            return number(field_number << 3) + number(content)
        payload = content.encode() if isinstance(content, str) else content
        return number(field_number << 3 | 2) + number(len(payload)) + payload

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
"""Number of directions: of MiniLM's 384 they cover 0.74 of the square of a length. For one query at
a cosine of 0.6 the bound leaves some 50 of 100,000 parts, where 64 leave 6,400; with the error of
the codes, 200."""

SHORT_BLOCKS: Final = (16_384, 4_096, 1_024, 256)
"""Sizes of the blocks that short forms are packed in: the remainder is compared exactly."""

_SAMPLE: Final = 2048
_ROUNDS: Final = 2
_NOTHING_LEFT: Final = 1e-6
_ANEW: Final = 8
"""Directions are computed again once there are so many times the parts they were computed from."""
_MANY_AT_ONCE: Final = 256
_FEW_AT_ONCE: Final = 256
# The most that float32 arithmetic can take away from the bound.
_BOUND_ROUNDING: Final = 1e-4
_OF_SQUARE: Final = 1e-5
# If the directions fit badly and more than this share remains, multiplying all out is cheaper.
_TOO_MANY: Final = 1 / 32

Places = NDArray[np.int64]


class Projected:
    """Short forms of a growing number of parts. One thread adds parts, others may query."""

    def __init__(self) -> None:
        self._blocks: tuple[_ShortBlock, ...] = ()
        self._axes: Floats | None = None
        self._found_in = 0

    def __len__(self) -> int:
        return sum(map(len, self._blocks))

    def add_some(self, parts: Floats) -> bool:
        """Add the next block of `parts` (unit vectors); False if no full block is left.

        The parts that are packed already are the first of them.
        """
        start, full_blocks = 0, 0
        for size in _split_sizes(len(parts), SHORT_BLOCKS, rest=False):
            if full_blocks < len(self._blocks) and len(self._blocks[full_blocks]) == size:
                start, full_blocks = start + size, full_blocks + 1
                continue
            if self._axes is None or len(parts) >= _ANEW * self._found_in:
                # Earlier blocks keep their directions: if these fit badly, the bound is looser.
                self._axes, self._found_in = _find_axes(parts), len(parts)
            block = _pack_short(parts[start : start + size], self._axes)
            self._blocks = (*self._blocks[:full_blocks], block)
            return len(parts) - start - size >= SHORT_BLOCKS[-1]
        return False

    def find_near(self, vector: Floats, closer: float) -> tuple[Places, int] | None:
        """Indices of the parts that could be so close to one vector; None if there are too many.

        The second value is the number of parts that were compared: more may be added meanwhile.
        """
        near_places, start, short_vector = [], 0, _Shortened(vector[None])
        for block in self._blocks:
            hits = block.find_near(short_vector.project(block.axes), closer)
            if len(hits) > _TOO_MANY * len(block):
                return None
            near_places.append(start + hits)
            start += len(block)
        return np.concatenate(near_places) if near_places else np.empty(0, np.int64), start

    def pairs(
        self, vectors: Floats, parts: Floats, closer: float
    ) -> Iterator[tuple[Places, Places]]:
        """(indices in `vectors`, indices in `parts`) of all pairs that could be so close.

        The first of `parts` are the packed ones.
        """
        blocks = self._blocks
        packed_count = sum(map(len, blocks))
        for first_query in range(0, len(vectors), _MANY_AT_ONCE):
            batch, start = vectors[first_query : first_query + _MANY_AT_ONCE], 0
            short_batch = _Shortened(batch)
            for block in blocks:
                end = start + len(block)
                pairs = block.find_near(short_batch.project(block.axes), closer)
                if len(pairs) > _TOO_MANY * len(batch) * len(block):
                    is_near = (batch @ parts[start:end].T).ravel() >= closer - _BOUND_ROUNDING
                    pairs = np.flatnonzero(is_near)
                query, part = np.divmod(pairs, len(block))
                yield first_query + query, start + part
                start = end
            if packed_count < len(parts):
                newer = (
                    products_of(batch, parts[packed_count:]) if packed_count else batch @ parts.T
                )
                pairs = np.flatnonzero(newer.ravel() >= closer - _BOUND_ROUNDING)
                query, part = np.divmod(pairs, len(parts) - packed_count)
                yield first_query + query, packed_count + part


class _Shortened:
    """Short forms of vectors for one block after another: most blocks share their directions."""

    def __init__(self, vectors: Floats) -> None:
        self._vectors = vectors
        self._axes: Floats | None = None
        self._short: _ShortQueries | None = None

    def project(self, axes: Floats) -> _ShortQueries:
        """Their short forms, as codes."""
        if self._short is None or self._axes is not axes:
            short_forms = _short(self._vectors, axes)
            greatest_coordinates = np.maximum(np.abs(short_forms).max(axis=1), np.float32(1e-12))
            scales = greatest_coordinates / np.float32(_QUERY_MOST)
            codes = np.rint(short_forms / scales[:, None])
            queries = _ShortQueries(
                (codes + _QUERY_MOST).astype(np.uint8),
                scales.astype(np.float64),
                _lengths(short_forms - codes * scales[:, None]),
                _lengths(short_forms),
            )
            self._axes, self._short = axes, queries
        return self._short


@dataclass(frozen=True, slots=True)
class _ShortQueries:
    """Codes (m, k) of short forms: their zero is `_QUERY_MOST`, and each row has its own scale.

    `apart` (m,) is the distance of each short form from its decoded codes, `lengths` (m,) its
    length.
    """

    codes: NDArray[np.uint8]
    scales: NDArray[np.float64]
    apart: Floats
    lengths: Floats


@dataclass(frozen=True, slots=True)
class _ShortBlock:
    """Codes of the short forms of some parts, all of one `scale`: their sums are comparable.
    `error` and `longest` are as in `_Block`."""

    session: Any
    axes: Floats
    count: int
    scale: float
    error: float
    longest: float

    def __len__(self) -> int:
        return self.count

    def find_near(self, queries: _ShortQueries, closer: float) -> Places:
        """Which pairs could be so close: indices in a table (queries, parts), row by row."""
        rounding_errors = self.error * queries.lengths + self.longest * queries.apart
        least_sums = closer - _BOUND_ROUNDING - _CODE_ROUNDING - rounding_errors.astype(np.float64)
        sums = self.session.run(None, {"a": queries.codes})[0]
        # No sum is that large, so a clipped threshold still excludes every part.
        greatest_sum = np.iinfo(np.int32).max
        thresholds = np.clip(
            np.ceil(least_sums / (self.scale * queries.scales)), -greatest_sum, greatest_sum
        )
        pairs: Places = np.flatnonzero(sums >= thresholds.astype(np.int32)[:, None])
        return pairs


def _pack_short(parts: Floats, axes: Floats) -> _ShortBlock:
    codes = np.empty((len(axes) + 1, len(parts)), np.int8)
    steps = range(0, len(parts), _CODE_STEP)
    short_parts = [_short(parts[start : start + _CODE_STEP], axes) for start in steps]
    scale = (
        max(1e-12, *(float(np.abs(coordinates).max()) for coordinates in short_parts)) / _PART_MOST
    )
    error = longest = 0.0
    for start, coordinates in zip(steps, short_parts, strict=True):
        rounded_coordinates = np.rint(coordinates / np.float32(scale))
        restored_coordinates = rounded_coordinates * np.float32(scale)
        longest = max(longest, _longest(restored_coordinates))
        error = max(error, _longest(coordinates - restored_coordinates))
        codes[:, start : start + len(coordinates)] = rounded_coordinates.T
    return _ShortBlock(_session(codes), axes, len(parts), scale, error, longest)


def _find_axes(parts: Floats) -> Floats:
    """The leading directions (LEADING, dimensions) of an evenly spread sample of the parts.

    By subspace iteration, which comes close to an eigendecomposition. The latter takes many small
    steps in several threads, which wait for each other for seconds if other programs use the
    processors.
    """
    sample = parts[:: max(1, len(parts) // _SAMPLE)]
    square = (sample.T @ sample).astype(np.float64)
    axes = sample[:: max(1, len(sample) // LEADING)][:LEADING].astype(np.float64)
    for _ in range(_ROUNDS):
        # The product only twice: with more, the leading axes would leave no digits for the others.
        axes = _orthonormalise(axes @ square @ square)
    return np.ascontiguousarray(axes, np.float32)


def _orthonormalise(rows: NDArray[np.float64]) -> NDArray[np.float64]:
    """The rows made orthonormal in their order (Gram-Schmidt, twice).

    A row that depends on those before becomes 0.
    """
    axes = np.zeros_like(rows)
    for position, row in enumerate(rows):
        remainder, previous_axes = row, axes[:position]
        for _ in range(2):
            remainder = remainder - np.einsum(
                "i,ij->j", np.einsum("ij,j->i", previous_axes, remainder), previous_axes
            )
        length = float(np.sqrt(remainder @ remainder))
        if length > _NOTHING_LEFT * float(np.sqrt(row @ row)):
            axes[position] = remainder / length
    return axes


def _short(rows: Floats, axes: Floats) -> Floats:
    along = products_of(rows, axes) if len(rows) <= _FEW_AT_ONCE else rows @ axes.T
    squares = np.einsum("ij,ij->i", rows, rows) - np.einsum("ij,ij->i", along, along)
    # The difference of two nearly equal numbers has only so many correct digits.
    across = np.sqrt(np.maximum(squares, 0.0) + np.float32(_OF_SQUARE))
    short_forms: Floats = np.concatenate((along, across[:, None]), axis=1).astype(
        np.float32, copy=False
    )
    return short_forms
