"""Is recall ever worse than its parts? `python -m bench.parts --data DIR`.

Every question of the held-out sets is put to the whole ranking, to its modes "words" and "vector",
to a plain BM25 and to the bare cosine of the bundled embedder, over the same texts.
"""
