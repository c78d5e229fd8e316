"""Backups of a home, and homes out of backups; how anything is put in its place whole."""
