"""The vector index: an exact scan of memory, LanceDB beyond a cap."""
