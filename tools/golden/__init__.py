"""A recording of all that a build answers and writes, to be held against that of another build."""
