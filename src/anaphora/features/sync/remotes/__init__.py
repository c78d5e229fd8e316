"""Remotes, through which devices exchange entries that the remotes cannot read."""
