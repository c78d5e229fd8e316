"""A question and statements read together: the bundled reader, and what it is given."""
