"""Vectors that exceed the limit for memory: LanceDB on disk, searched approximately.

Keys are numbers that never change their meaning. It needs the extra `large`; a folder that cannot
be read is rebuilt. Vectors are added in large batches: a thousand small additions take hundreds of
megabytes and slow down every query.
"""

from __future__ import annotations

import importlib.util
import json
import shutil
import uuid
from collections.abc import Iterable, Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from anaphora.errors import MissingExtra
from anaphora.index.maintenance import IndexLost

Batch = tuple[NDArray[np.int64], NDArray[np.float32]]

INDEX_FROM: Final = 10_000
"""Vectors from which a graph is built; below, a scan of the disk is fast and exact."""

UNINDEXED: Final = 8
"""The graph is rebuilt once 1/UNINDEXED of its vectors lies outside; LanceDB scans those."""

_REFINE: Final = 4
_PROBES: Final = 32
_LEAST_BREADTH: Final = 128
_META: Final = "ann.json"
_TABLE: Final = "vectors"
# LanceDB documents no errors of its own: it raises these if a file is torn, gone or refused.
ANN_ERRORS = (OSError, ValueError, RuntimeError)


@dataclass(frozen=True, slots=True)
class AnnMeta:
    """The state on disk: `count` vectors of `embedder` up to number `upto` of the database.

    `version` is LanceDB's; a table at another version was not finished. `indexed` is the number
    of vectors in the graph.
    """

    embedder: str
    generation: str = ""
    upto: int = 0
    count: int = 0
    indexed: int = 0
    version: int = 0


@cache
def available() -> bool:
    """Whether LanceDB is installed. Does not import it (1.7 s and more)."""
    return importlib.util.find_spec("lancedb") is not None


class AnnStore:
    """The vectors of one embedder in one folder. Readers are many, writers one at a time."""

    def __init__(self, folder: Path, embedder: str, dimensions: int) -> None:
        self.folder = folder
        self.meta = AnnMeta(embedder)
        self._dimensions = dimensions
        self._table: Any = None

    def open(self) -> AnnMeta:
        """Read the last finished state; an empty one if there is none of this embedder."""
        self._table = None
        empty = AnnMeta(self.meta.embedder)
        try:
            meta = AnnMeta(**json.loads((self.folder / _META).read_text(encoding="utf-8")))
            usable = meta.embedder == empty.embedder and (self.folder / meta.generation).is_dir()
        except (OSError, ValueError, TypeError):
            meta, usable = empty, False
        self.meta = meta if usable and meta.generation else empty
        return self.meta

    def search(
        self, vector: NDArray[np.float32], limit: int
    ) -> tuple[NDArray[np.int64], NDArray[np.float32], bool]:
        """Keys of the nearest vectors with their cosines, best first, and whether that is exact.

        Raises IndexLost if the table cannot be read.
        """
        exact = not self.meta.indexed
        try:
            if self._table is None:
                self._table = self._connect(self.meta.generation).open_table(_TABLE)
                # At the finished version: another process may be adding to the table.
                self._table.checkout(self.meta.version)
            query = self._table.search(vector).distance_type("cosine").limit(limit)
            if not exact:
                wide = max(_REFINE * limit, _LEAST_BREADTH)
                query = query.nprobes(_PROBES).refine_factor(_REFINE).ef(wide)
            nearest = query.select(["key", "_distance"]).to_arrow()
        except ANN_ERRORS as error:
            raise IndexLost(str(error).splitlines()[0] if str(error) else repr(error)) from error
        keys = nearest.column("key").to_numpy().astype(np.int64)
        cosines = 1.0 - nearest.column("_distance").to_numpy().astype(np.float32)
        return keys, cosines, exact

    def extend(self, batches: Iterable[Batch], upto: int) -> AnnMeta:
        """Add batches of (keys, unit vectors) and make them searchable; the new state."""
        meta = self.meta
        generation = meta.generation or uuid.uuid4().hex
        table = self._table_to_write(generation)
        previous_count = table.count_rows()
        if meta.generation and (previous_count != meta.count or table.version != meta.version):
            # A writer was killed: the table has more than was finished.
            table.checkout(meta.version)
            table.restore()
        table.add(self._reader(batches))
        count, indexed_count = table.count_rows(), meta.indexed
        if count - indexed_count >= max(INDEX_FROM, indexed_count // UNINDEXED):
            from lancedb.index import HnswSq

            # Optimising while there is a graph would extend it, as slowly as rebuilding it.
            for index in table.list_indices():
                table.drop_index(index.name)
            self._tidy(table)
            graph = HnswSq(distance_type="cosine", num_partitions=max(1, count // 50_000))
            table.create_index("vector", config=graph, replace=True)
            indexed_count = count
        elif not indexed_count:
            self._tidy(table)
        meta = AnnMeta(meta.embedder, generation, upto, count, indexed_count, table.version)
        fresh = self.folder / f"{_META}.new"
        fresh.write_text(json.dumps(asdict(meta)), encoding="utf-8")
        fresh.replace(self.folder / _META)
        self.meta = meta
        self._table = None
        for path in list(self.folder.iterdir()):
            if path.is_dir() and path.name != meta.generation:
                shutil.rmtree(path, ignore_errors=True)
        return self.meta

    def discard(self) -> None:
        """Remove everything."""
        self._table = None
        self.meta = AnnMeta(self.meta.embedder)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _tidy(self, table: Any) -> None:
        # Unverified files may belong to a write of another process: they are not deleted.
        table.optimize(cleanup_older_than=timedelta(hours=1), delete_unverified=False)

    def _table_to_write(self, generation: str) -> Any:
        import pyarrow as pa

        self.folder.mkdir(parents=True, exist_ok=True)
        base = self._connect(generation)
        with suppress(*ANN_ERRORS):
            return base.open_table(_TABLE)
        return base.create_table(_TABLE, schema=self._schema(pa))

    def _connect(self, generation: str) -> Any:
        if not available():
            raise MissingExtra("large", "lancedb")
        import lancedb

        return lancedb.connect(str(self.folder / generation))

    def _schema(self, pa: Any) -> Any:
        vector = pa.list_(pa.float32(), self._dimensions)
        return pa.schema([("key", pa.int64()), ("vector", vector)])

    def _reader(self, batches: Iterable[Batch]) -> Any:
        import pyarrow as pa

        schema = self._schema(pa)

        def rows() -> Iterator[Any]:
            for keys, vectors in batches:
                flat = pa.array(np.ascontiguousarray(vectors, np.float32).reshape(-1))
                column = pa.FixedSizeListArray.from_arrays(flat, self._dimensions)
                yield pa.RecordBatch.from_arrays([pa.array(keys), column], schema=schema)

        return pa.RecordBatchReader.from_batches(schema, rows())
