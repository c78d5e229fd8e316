"""Exports and their import: one module for each kind of line, which writes it and reads it in.

`export` writes the file, `load` reads it; `lines` has the text of a line and its members.
"""
