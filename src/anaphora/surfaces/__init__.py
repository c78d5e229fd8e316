"""Thin surfaces over the facade: the command line first."""
