"""Derived and disposable: syncs with truth, answers which turns match words and vectors."""
