"""How things come out: from a question to the turns that matter, within a budget."""
