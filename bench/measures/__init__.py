"""The measures that the field reports, on public sets, for BM25, cosine and Anaphora side by side.

`definitions` has the measures, each with its source; `run` asks, `report` puts into tables.
"""
