"""Run the tests of a change on the source before it: a test that passes there proves nothing."""
