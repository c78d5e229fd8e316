"""Embedders beside the bundled one: model folders and endpoints."""
