"""The index of memories: in step with the records of truth, asked by meaning, words and filters."""
