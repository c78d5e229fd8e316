"""Tests of what looks after a home."""
