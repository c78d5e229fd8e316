"""The index of turns: syncs with the threads of truth, answers by words and meaning."""
