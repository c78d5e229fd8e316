"""Embedders beside the bundled one: a multilingual model, model folders, and endpoints."""
