"""Documents: files that are stored as searchable text, in versions."""
