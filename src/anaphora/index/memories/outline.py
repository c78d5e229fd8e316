"""An outline of many vectors in a byte a number: what can be near is found without reading them.

In: unit vectors (parts, dimensions). Out: for a unit query, an approximate cosine of every part,
and how far from the exact one it can be at most. Whoever asks takes all that could be among the
best and computes those exactly: so an answer is that of an exact scan, from a quarter of the memory
that one reads. The sums are those of ONNX Runtime's whole-number matrix product, in one thread:
several would wait for each other where other programs want the processors too. It never decides
what is near.

The bound, for x ≈ x' and q ≈ q': |x·q - x'·q'| ≤ |x - x'| |q| + |x'| |q - q'|, by Cauchy-Schwarz.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.embed.onnx import onnx_runtime

# Parts at a time: what is needed to make their codes takes 15 MB of 384 dimensions.
_STEP: Final = 2048
_ROOM: Final = 8192
_MIDDLE: Final = 128
_PART_MOST: Final = 127
# Products of processors without VNNI are added in pairs in 16 bits: 2 · 255 · 64 fits there.
_QUERY_MOST: Final = 64
# What the float32 arithmetic around the whole numbers can add.
_ROUNDING: Final = 1e-5

Floats = NDArray[np.float32]

_lock = threading.Lock()
_product: Any = None


@dataclass(frozen=True, slots=True)
class Rough:
    """Approximate cosines (parts,), none further than `error` from the exact one."""

    cosines: Floats
    error: float


class Outline:
    """Codes of a growing number of parts. One thread adds to it, others may ask meanwhile."""

    def __init__(self, dimensions: int) -> None:
        self._codes = np.empty((0, dimensions), np.uint8)
        self._scales = np.empty(0, np.float32)
        self._count = 0
        self._error = 0.0
        self._longest = 0.0

    def __len__(self) -> int:
        return self._count

    def add(self, parts: Floats) -> None:
        """Take in more parts (unit vectors), behind those that are here."""
        self.reserve(self._count + len(parts))
        for start in range(0, len(parts), _STEP):
            some = parts[start : start + _STEP]
            scales = np.maximum(np.abs(some).max(axis=1), np.float32(1e-12)) / _PART_MOST
            codes = np.rint(some / scales[:, None])
            back = codes * scales[:, None]
            self._longest = max(self._longest, _longest(back))
            self._error = max(self._error, _longest(some - back))
            end = self._count + len(some)
            self._codes[self._count : end] = (codes + _MIDDLE).astype(np.uint8)
            self._scales[self._count : end] = scales
            # Last: who asks in another thread looks at so many.
            self._count = end

    def rough(self, vector: Floats) -> Rough:
        """The approximate cosine of each part with a unit vector; the product, for any other."""
        count = self._count
        scale = np.float32(max(float(np.abs(vector).max()), 1e-12) / _QUERY_MOST)
        code = np.rint(vector / scale)
        apart = float(np.linalg.norm(vector - code * scale))
        query = code.astype(np.int8)[:, None]
        sums = _whole_product(self._codes[:count], query)[:, 0]
        sums -= _MIDDLE * int(code.sum())
        cosines = sums.astype(np.float32)
        cosines *= self._scales[:count]
        cosines *= scale
        error = self._error * float(np.linalg.norm(vector)) + self._longest * apart + _ROUNDING
        return Rough(cosines, error)

    def reserve(self, needed: int) -> None:
        """Make room for so many parts in all."""
        if needed <= len(self._codes):
            return
        capacity = needed if not self._count else needed + min(needed // 2, _ROOM)
        codes = np.empty((capacity, self._codes.shape[1]), np.uint8)
        codes[: self._count] = self._codes[: self._count]
        scales = np.empty(capacity, np.float32)
        scales[: self._count] = self._scales[: self._count]
        self._codes, self._scales = codes, scales


def _longest(rows: Floats) -> float:
    """The length of the longest row."""
    return float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max()))


def _whole_product(codes: NDArray[np.uint8], query: NDArray[np.int8]) -> NDArray[np.int32]:
    """codes (n, d) · query (d, 1) in 32 bits."""
    global _product  # noqa: PLW0603 - one session serves every outline, and costs 10 ms to make
    with _lock:
        if _product is None:
            _product = _session()
    found: NDArray[np.int32] = _product.run(None, {"a": codes, "b": query})[0]
    return found


def _session() -> Any:
    runtime = onnx_runtime()
    options = runtime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 3
    return runtime.InferenceSession(_model(), options, providers=["CPUExecutionProvider"])


_UINT8, _INT8, _INT32 = 2, 3, 6


def _model() -> bytes:
    """An ONNX model of one node, c = MatMulInteger(a, b), in the protocol buffer encoding."""

    def field(number: int, value: bytes | str | int) -> bytes:
        if isinstance(value, int):
            return bytes([number << 3, value])
        data = value.encode() if isinstance(value, str) else value
        return bytes([number << 3 | 2, len(data)]) + data

    def tensor(name: str, kind: int) -> bytes:
        size = field(1, b"")
        shape = field(2, size + size)
        return field(1, name) + field(2, field(1, field(1, kind) + shape))

    node = field(1, "a") + field(1, "b") + field(2, "c") + field(4, "MatMulInteger")
    inputs = field(11, tensor("a", _UINT8)) + field(11, tensor("b", _INT8))
    graph = field(1, node) + field(2, "g") + inputs + field(12, tensor("c", _INT32))
    return field(1, 8) + field(7, graph) + field(8, field(2, 13))
