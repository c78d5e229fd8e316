"""The index of memories: syncs with the records of truth, answers by meaning, words and filters."""
