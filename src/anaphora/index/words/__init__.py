"""The word index: segments on disk, postings in memory for what is newer, one BM25 over both."""
