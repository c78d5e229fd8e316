"""Chroma over the same vectors, in an environment of its own: `python chroma_child.py FOLDER`.

In: FOLDER/vectors.npy (one vector a text), FOLDER/queries.npy. Out: one line of JSON with times in
milliseconds. It imports nothing of this project, so that Chroma need not be installed beside it.
"""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

ADDS = 50


def main() -> None:
    """Add everything in large batches, ask, add some more one by one."""
    import chromadb  # type: ignore[import-not-found,unused-ignore]
    import numpy as np

    folder = Path(sys.argv[1])
    vectors, queries = np.load(folder / "vectors.npy"), np.load(folder / "queries.npy")
    client = chromadb.PersistentClient(str(folder / "chroma"))
    collection = client.create_collection(
        "memories", metadata={"hnsw:space": "cosine"}, embedding_function=None
    )
    began = time.perf_counter()
    for start in range(0, len(vectors), 5_000):
        some = vectors[start : start + 5_000]
        ids = [str(start + n) for n in range(len(some))]
        collection.add(ids=ids, embeddings=some, documents=["text"] * len(some))
    built = time.perf_counter() - began
    asked = []
    for query in [*queries[:20], *queries]:
        began = time.perf_counter()
        collection.query(query_embeddings=query[None, :], n_results=3)
        asked.append(1000 * (time.perf_counter() - began))
    added = []
    for n in range(ADDS):
        began = time.perf_counter()
        collection.add(ids=[f"one-{n}"], embeddings=vectors[n : n + 1], documents=["text"])
        added.append(1000 * (time.perf_counter() - began))
    print(json.dumps({"build_s": built, "query_ms": asked[20:], "add_ms": added}))


if __name__ == "__main__":
    main()
