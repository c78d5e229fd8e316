"""How things come in: memories, notes, conversations and projects, without their secrets."""
