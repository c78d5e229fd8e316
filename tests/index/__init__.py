"""Tests of the index: see conftest.py for what they share."""
