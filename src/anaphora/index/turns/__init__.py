"""The index of turns: follows the threads of truth, answers by words and meaning."""
