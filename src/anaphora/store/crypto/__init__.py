"""Encryption at rest: keys, sealed rows, sealed threads. `open_home` in `home` opens a home."""
