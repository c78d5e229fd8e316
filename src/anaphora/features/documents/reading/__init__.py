"""Documents: their text is read, cut into sections, and stored."""
