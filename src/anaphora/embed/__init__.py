"""Text to vectors: the protocol, the bundled model, the query cache, a word-hashing double."""
