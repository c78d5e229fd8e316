"""A feature of one folder, as a test registers it: short texts that stick to a home."""
