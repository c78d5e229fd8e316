"""The index of memories: follows the records of truth, answers by meaning, words and filters."""
