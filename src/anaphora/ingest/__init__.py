"""Writing memories, notes, conversations, documents and projects, without their secrets."""
