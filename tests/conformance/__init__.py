"""What the seeds say, row by row, against the product: `python -m tests.conformance` prints it."""
