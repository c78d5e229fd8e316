"""The word table of the bundled embedder, read where it lies: the reader has the same one.

An ONNX file is a protobuf message. Only what leads to an initializer is parsed here: the file's
pages are mapped, so that no model has a copy, and only the rows of words that came up are in
memory.
"""

from __future__ import annotations

import hashlib
import mmap
import sys
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final, TypeAlias

import numpy as np
import numpy.typing as npt

from anaphora.errors import EmbeddingError, ModelIntegrityError

VALUES: Final = "word.values"
SCALE: Final = "word.scale"
TABLE: Final = (VALUES, SCALE)
"""The initializers of the table: a row of 8-bit numbers for each word piece, and its scale. In that
of the multilingual network two of 4 bits share a byte, and 32 a scale."""

ROWS: Final = "word.whole"
ROW_SCALES: Final = "word.own"
"""The reader's inputs in their place: the rows of its word pieces, and their scales."""

Array: TypeAlias = npt.NDArray[np.int8] | npt.NDArray[np.uint8] | npt.NDArray[np.float32]

# Numbers of fields: `ModelProto.graph`, `GraphProto.initializer`, and of a `TensorProto`.
_GRAPH, _INITIALIZER = 7, 5
_DIMENSIONS, _TYPE, _NAME, _DATA = 1, 2, 8, 9
_TYPES: Final[Mapping[int, type[np.generic]]] = {1: np.float32, 2: np.uint8, 3: np.int8}
_VARINT, _WIDE, _MESSAGE, _NARROW = 0, 1, 2, 5

_Field: TypeAlias = tuple[int, int, int]
"""The number of a field, and where its content begins and ends; a whole number has no end (-1)."""


@dataclass(frozen=True, slots=True)
class WordTable:
    """Rows of 8-bit numbers, shape (pieces, dimensions), and their scales, shape (pieces, 1)."""

    values: npt.NDArray[np.int8]
    scale: npt.NDArray[np.float32]

    def rows(self, ids: npt.NDArray[np.int64]) -> dict[str, Array]:
        """What the reader gets for word pieces: their rows and scales, in the shape of `ids`."""
        return {ROWS: self.values[ids], ROW_SCALES: self.scale[ids]}


def read_table(model: Path, digests: Mapping[str, str]) -> WordTable:
    """The word table of an embedder's ONNX file; `digests` are the SHA-256 of its two parts.

    Raises ModelIntegrityError where it is another table than the reader was trained with, and
    EmbeddingError where the file cannot be read.
    """
    tensors = read_tensors(model, TABLE)
    for name, tensor in tensors.items():
        digest = hashlib.sha256(tensor.data).hexdigest()
        if digest != digests.get(name):
            raise ModelIntegrityError(f"{model} {name}", digests.get(name, "no hash"), digest)
    if sys.platform != "win32":
        # Taking the digest has brought all of its pages in.
        map_file(model).madvise(mmap.MADV_DONTNEED)
    values, scale = (tensors[name] for name in TABLE)
    # Floats have to be aligned; the file's are not.
    return WordTable(values.astype(np.int8, copy=False), scale.astype(np.float32))


def read_tensors(model: Path, names: Collection[str]) -> dict[str, Array]:
    """Initializers of an ONNX file by name, mapped and read-only. Raises EmbeddingError."""
    try:
        tensors = dict(_list_tensors(map_file(model), names))
    except (OSError, ValueError, IndexError, KeyError) as error:
        raise EmbeddingError(f"{model} cannot be read: {error!r}") from error
    if missing := set(names) - tensors.keys():
        raise EmbeddingError(f"{model} has no {', '.join(sorted(missing))}")
    return tensors


@cache
def map_file(path: Path) -> mmap.mmap:
    """The content of a model's file, mapped once in a process. OSError, ValueError."""
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def _list_tensors(content: mmap.mmap, names: Collection[str]) -> Iterator[tuple[str, Array]]:
    for number, start, end in _read_fields(content, 0, len(content)):
        if number != _GRAPH:
            continue
        for inner_field, begin, stop in _read_fields(content, start, end):
            if inner_field == _INITIALIZER:
                parts = list(_read_fields(content, begin, stop))
                name = next((content[a:b].decode() for n, a, b in parts if n == _NAME), "")
                if name in names:
                    yield name, _read_array(content, parts)


def _read_array(content: mmap.mmap, parts: list[_Field]) -> Array:
    shape: list[int] = []
    for number, start, end in parts:
        if number == _DIMENSIONS and end < 0:
            shape.append(start)
        elif number == _DIMENSIONS:
            at = start
            while at < end:
                size, at = _read_varint(content, at)
                shape.append(size)
    kind = next(_TYPES[code] for number, code, _ in parts if number == _TYPE)
    start, end = next((start, end) for number, start, end in parts if number == _DATA)
    count = (end - start) // np.dtype(kind).itemsize
    array: Array = np.frombuffer(content, kind, count, start).reshape(shape)
    return array


def _read_fields(content: mmap.mmap, at: int, end: int) -> Iterator[_Field]:
    while at < end:
        tag, at = _read_varint(content, at)
        kind = tag & 7
        if kind == _VARINT:
            number, at = _read_varint(content, at)
            yield tag >> 3, number, -1
        elif kind == _MESSAGE:
            size, at = _read_varint(content, at)
            yield tag >> 3, at, at + size
            at += size
        elif kind in (_WIDE, _NARROW):
            at += 8 if kind == _WIDE else 4
        else:
            raise ValueError(f"a field of kind {kind}")


def _read_varint(content: mmap.mmap, at: int) -> tuple[int, int]:
    number = shift = 0
    while True:
        byte = content[at]
        at += 1
        number |= (byte & 127) << shift
        shift += 7
        if byte < 128:
            return number, at
