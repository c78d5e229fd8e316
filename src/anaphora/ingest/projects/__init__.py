"""A project comes in: its files, sections, entities and history, and what ties them."""
