"""The index of turns: in step with the threads of truth, asked by words and meaning."""
