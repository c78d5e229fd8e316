"""Chroma over the same texts, by itself: `python chroma_child.py FOLDER [MODEL]`.

In: FOLDER/vectors.npy (one vector a text), FOLDER/queries.npy, FOLDER/texts.json (texts and
questions); MODEL, a folder with model.onnx and tokenizer.json. Out: one line of JSON with times in
milliseconds. With MODEL, Chroma's own default embedding function runs it: class, code and settings
are Chroma's, only the download is replaced. It imports nothing of this project, so that Chroma need
not be installed beside it.
"""

from __future__ import annotations

import json
import shutil
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

ADDS = 50


def main() -> None:
    """Add everything in large batches, ask, add some more one by one."""
    import chromadb  # type: ignore[import-not-found,unused-ignore]
    import numpy as np

    folder = Path(sys.argv[1])
    given = json.loads((folder / "texts.json").read_text("utf-8"))
    vectors, queries = np.load(folder / "vectors.npy"), np.load(folder / "queries.npy")
    embed = _default_model(folder, Path(sys.argv[2])) if len(sys.argv) > 2 else None
    client = chromadb.PersistentClient(str(folder / "chroma"))
    collection = client.create_collection(
        "memories", metadata={"hnsw:space": "cosine"}, embedding_function=embed
    )
    found: dict[str, Any] = {}
    began = time.perf_counter()
    # By our vectors, which are those of the same model in 8 bits: its own would take an hour.
    for start in range(0, len(vectors), 5_000):
        some = vectors[start : start + 5_000]
        ids = [str(start + n) for n in range(len(some))]
        collection.add(ids=ids, embeddings=some, documents=given["texts"][start : start + 5_000])
    found["build_s"] = time.perf_counter() - began
    found["query_ms"] = [
        _timed(lambda q=q: collection.query(query_embeddings=q[None, :], n_results=3))  # type: ignore[misc]
        for q in [*queries[:20], *queries]
    ][20:]
    found["add_ms"] = [
        _timed(
            lambda n=n: collection.add(  # type: ignore[misc]
                ids=[f"one-{n}"], embeddings=vectors[n : n + 1], documents=["text"]
            )
        )
        for n in range(ADDS)
    ]
    if embed is not None:
        asked = given["questions"]
        ask = [
            _timed(lambda q=q: collection.query(query_texts=[q], n_results=3))  # type: ignore[misc]
            for q in [*asked[:20], *asked]
        ]
        found["whole_ms"] = ask[20:]
        found["embed_ms"] = [_timed(lambda q=q: embed([q])) for q in asked]  # type: ignore[misc]
        found["keep_ms"] = [
            _timed(lambda n=n: collection.add(ids=[f"kept-{n}"], documents=[given["texts"][n]]))  # type: ignore[misc]
            for n in range(ADDS)
        ]
    print(json.dumps(found))


def _default_model(folder: Path, model: Path) -> Any:
    from chromadb.utils.embedding_functions.onnx_mini_lm_l6_v2 import (  # type: ignore[import-not-found,unused-ignore]
        ONNXMiniLM_L6_V2,
    )

    # It looks for these files where it would have put its download.
    place = folder / "chroma-model" / "onnx"
    place.mkdir(parents=True)
    for name in ("model.onnx", "tokenizer.json"):
        shutil.copyfile(model / name, place / name)
    for name in ("config.json", "special_tokens_map.json", "tokenizer_config.json", "vocab.txt"):
        (place / name).touch()
    ONNXMiniLM_L6_V2.DOWNLOAD_PATH = place.parent
    return ONNXMiniLM_L6_V2()


def _timed(action: Callable[[], object]) -> float:
    began = time.perf_counter()
    action()
    return 1000 * (time.perf_counter() - began)


if __name__ == "__main__":
    main()
