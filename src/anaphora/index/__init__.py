"""Derived and disposable: follows truth, answers which turns match words and vectors."""
