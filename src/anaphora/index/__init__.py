"""Derived and disposable: in step with truth, answers which things match words and vectors."""
