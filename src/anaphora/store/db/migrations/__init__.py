"""Schema changes, one file each, applied in order. A file that was released never changes."""
